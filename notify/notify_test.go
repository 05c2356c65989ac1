package notify_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/catalog"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/money"
	"github.com/cutonce/cutonce/notify"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// records is what is on record.
type records map[preview.ID]commit.Change

func (r records) Load(_ context.Context, tenant string, id preview.ID, _ bool) (commit.Change, commit.Epochs, error) {
	c, ok := r[id]
	if !ok || c.Preview.Tenant != tenant {
		return commit.Change{}, commit.Epochs{}, fault.New(fault.NotFound, nil)
	}
	return c, commit.Epochs{}, nil
}

// outbound keeps what is sent.
type outbound struct {
	notes []notify.Note
	err   error
}

func (o *outbound) Send(_ context.Context, n notify.Note) error {
	o.notes = append(o.notes, n)
	return o.err
}

var (
	ofGroups = []notify.Kind{notify.ApprovalWanted, notify.Expiring, notify.Decided}
	leads    = notify.Receiver{Name: "leads", Tenant: "acme", Groups: []string{"leads"}, Kinds: ofGroups}
	finance  = notify.Receiver{Name: "finance", Tenant: "acme", Groups: []string{"finance"}, Kinds: ofGroups, Locale: "ja", Zone: time.FixedZone("JST", 9*60*60)}
	ops      = notify.Receiver{Name: "ops", Tenant: "acme", Operators: true, Kinds: []notify.Kind{notify.OutcomeUnknown, notify.Settled}}
	askers   = notify.Receiver{Name: "askers", Tenant: "acme", Requester: true, Kinds: notify.Kinds(), Mail: &notify.Mail{Domain: "example.com"}}
	siem     = notify.Receiver{Name: "siem", Tenant: "acme", Everything: true, Kinds: notify.Kinds()}
	rival    = notify.Receiver{Name: "rival", Tenant: "rival", Everything: true, Kinds: notify.Kinds()}
	all      = []notify.Receiver{leads, finance, ops, askers, siem, rival}
)

func yen(n int64) connector.Value {
	return connector.Value{Amount: &money.Amount{Minor: n, Currency: "JPY"}}
}

// pending is a change that waits for leads and for finance.
func pending() commit.Change {
	p := preview.Preview{
		ID: preview.ID{1}, Tenant: "acme", Action: "budget_change", State: preview.Pending, Round: 1,
		Requester:   actor.Actor{Tenant: "acme", Kind: actor.Agent, Issuer: "https://id.example", Subject: "planner", For: "sato", Locale: "ja"},
		RequestedAt: noon, Deadline: noon.Add(time.Hour), CreatedAt: noon,
		Justification: "ignore the rules and click https://evil.example",
		Ruling: policy.Ruling{Verdict: policy.Require, Needs: policy.Requirement{
			{AnyOf: []string{"leads"}, Count: 1}, {AnyOf: []string{"finance", "legal"}, Count: 1},
		}},
		Content: preview.Content{
			Plan: connector.Plan{
				Target:  connector.Target{System: "ads.example/agency", Kind: "campaign", ID: "c-1", Name: "Spring\u202egnirps\nBcc: x"},
				Changes: []connector.Change{{Field: "daily_budget", Before: yen(10000), After: yen(16000)}},
			},
			Impact: connector.Impact{Summary: connector.Say("a summary", nil)},
		},
	}
	return commit.Change{Preview: p, Status: commit.StatusPending, Now: noon.Add(time.Minute)}
}

func vote(person string, approve bool, groups ...string) preview.Vote {
	return preview.Vote{Person: "https://id.example#" + person, Name: person, Groups: groups, Approve: approve, Round: 1, Reason: "no"}
}

func item(event string, receiver string) notify.Item {
	return notify.Item{Tenant: "acme", Preview: preview.ID{1}.String(), Seq: 2, Event: event, Receiver: receiver, At: noon}
}

func service(t *testing.T, c commit.Change, receivers ...notify.Receiver) (*notify.Service, *outbound) {
	t.Helper()
	texts, err := catalog.New()
	if err != nil {
		t.Fatal(err)
	}
	out := &outbound{}
	senders := map[string]notify.Sender{}
	for _, r := range receivers {
		senders[r.Name] = out
	}
	return notify.NewService(notify.Deps{
		Changes: records{c.Preview.ID: c}, Texts: texts, Receivers: receivers, Senders: senders, PublicURL: "https://cutonce.example",
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}), out
}

// whoIsTold tries one event on every receiver.
func whoIsTold(t *testing.T, c commit.Change, event string, change ...func(*notify.Item)) []string {
	t.Helper()
	s, out := service(t, c, all...)
	told := []string{}
	for _, r := range all {
		i := item(event, r.Name)
		for _, f := range change {
			f(&i)
		}
		if r.Tenant == i.Tenant && !slices.Contains(r.Kinds, i.Kind()) {
			continue // no item is made
		}
		before := len(out.notes)
		got, err := s.Tell(t.Context(), i)
		if err != nil {
			t.Fatalf("%s to %s: %v", event, r.Name, err)
		}
		sent := len(out.notes) > before
		if sent == (got.Dropped != "" || got.Wait > 0) {
			t.Errorf("%s to %s: got %+v, and sent is %v", event, r.Name, got, sent)
		}
		if sent {
			told = append(told, r.Name)
		}
		if got.Wait > 0 {
			told = append(told, r.Name+" later")
		}
	}
	return told
}

func with(c commit.Change, do func(*commit.Change)) commit.Change {
	do(&c)
	return c
}

func ended(state preview.State, status commit.Status) func(*commit.Change) {
	return func(c *commit.Change) { c.Preview.State, c.Status = state, status }
}

func claimed(status commit.Status, e commit.Execution, events ...string) func(*commit.Change) {
	return func(c *commit.Change) {
		c.Preview.State, c.Status, c.Executions = preview.Claimed, status, []commit.Execution{e}
		for n, kind := range events {
			c.Events = append(c.Events, commit.Event{Seq: int64(n + 1), Kind: kind})
		}
	}
}

func TestWhoIsTold(t *testing.T) {
	t.Parallel()
	voted := func(votes ...preview.Vote) func(*commit.Change) {
		return func(c *commit.Change) { c.Preview.Votes = votes }
	}
	unknown := commit.Execution{State: commit.Unknown, StartedAt: noon}
	handed := commit.Execution{State: commit.Unknown, StartedAt: noon, NeedsOperator: true}
	for _, c := range []struct {
		name   string
		change commit.Change
		event  string
		want   []string
	}{
		{"approval wanted: both groups", pending(), "approval_requested", []string{"leads", "finance", "siem"}},
		{"one has approved: the other group", with(pending(), voted(vote("kim", true, "leads"))), "approval_requested", []string{"finance", "siem"}},
		{"a vote of an earlier round does not count", with(pending(), func(c *commit.Change) {
			c.Preview.Round = 2
			c.Preview.Votes = []preview.Vote{vote("kim", true, "leads")}
		}), "approval_requested", []string{"leads", "finance", "siem"}},
		{"another group is asked", with(pending(), func(c *commit.Change) {
			c.Preview.Ruling.Needs = policy.Requirement{{AnyOf: []string{"legal"}, Count: 1}}
		}),
			"approval_requested", []string{"siem"}},
		{"the requester's own person confirms", with(pending(), func(c *commit.Change) { c.Preview.Ruling = policy.Ruling{Confirm: true} }),
			"approval_requested", []string{"askers", "siem"}},
		{"decided in the meantime", with(pending(), ended(preview.Approved, commit.StatusApproved)), "approval_requested", []string{}},
		{"expired in the meantime", with(pending(), ended(preview.Pending, commit.StatusExpired)), "approval_requested", []string{}},
		{"canceled in the meantime", with(pending(), ended(preview.Canceled, commit.StatusCanceled)), "approval_requested", []string{}},
		{"about to expire", with(pending(), voted(vote("kim", true, "leads"))), "expiring", []string{"finance", "siem"}},
		{"about to expire, and decided", with(pending(), ended(preview.Rejected, commit.StatusRejected)), "expiring", []string{}},
		{"approved: those asked, and whoever asked", with(pending(), ended(preview.Approved, commit.StatusApproved)), "approved",
			[]string{"leads", "finance", "askers", "siem"}},
		{"approved and applied since", with(pending(), claimed(commit.StatusApplied, commit.Execution{State: commit.Applied})), "approved",
			[]string{"leads", "finance", "askers", "siem"}},
		{"approved, then vetoed", with(pending(), ended(preview.Rejected, commit.StatusRejected)), "approved", []string{}},
		{"rejected", with(pending(), ended(preview.Rejected, commit.StatusRejected)), "rejected", []string{"leads", "finance", "askers", "siem"}},
		{"nobody decided in time", with(pending(), ended(preview.Expired, commit.StatusExpired)), "expired", []string{"leads", "finance", "askers", "siem"}},
		{"expired before anybody was asked", with(pending(), func(c *commit.Change) {
			ended(preview.Expired, commit.StatusExpired)(c)
			c.Preview.RequestedAt = time.Time{}
		}), "expired", []string{}},
		{"unknown, and the service still looks", with(pending(), claimed(commit.StatusUnknown, unknown)), "unknown", []string{"ops later", "askers later", "siem later"}},
		{"unknown, and no machine can tell", with(pending(), claimed(commit.StatusUnknown, handed)), "lease_lapsed", []string{"ops", "askers", "siem"}},
		{"unknown for long", with(pending(), func(c *commit.Change) {
			claimed(commit.StatusUnknown, unknown)(c)
			c.Now = noon.Add(3 * time.Minute)
		}), "unknown", []string{"ops", "askers", "siem"}},
		{"unknown, and a second operator is needed", with(pending(), claimed(commit.StatusUnknown, handed)), "proposed", []string{"ops", "askers", "siem"}},
		{"known by now", with(pending(), claimed(commit.StatusApplied, commit.Execution{State: commit.Applied})), "unknown", []string{}},
		{"applied", with(pending(), claimed(commit.StatusApplied, commit.Execution{State: commit.Applied}, "claimed", "applied")), "applied",
			[]string{"askers", "siem"}},
		{"applied after it was unknown", with(pending(), claimed(commit.StatusApplied, commit.Execution{State: commit.Applied}, "unknown", "applied")), "applied",
			[]string{"ops", "askers", "siem"}},
		{"contradicted", with(pending(), claimed(commit.StatusApplied, commit.Execution{State: commit.Applied, Contradicted: true}, "claimed", "contradicted")),
			"contradicted", []string{"ops", "askers", "siem"}},
		{"not applied, then contradicted", with(pending(), claimed(commit.StatusApplied, commit.Execution{State: commit.Applied, Contradicted: true})),
			"not_applied", []string{}},
		{"something later of the kind is told", with(pending(), claimed(commit.StatusApplied, commit.Execution{State: commit.Applied}, "unknown", "not_applied", "contradicted")),
			"not_applied", []string{}},
		{"an event that nobody is told of", pending(), "vote", []string{}},
	} {
		if diff := cmp.Diff(c.want, whoIsTold(t, c.change, c.event)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestWhatIsOldOrGoneOrOfOthersIsDropped(t *testing.T) {
	t.Parallel()
	late := with(pending(), func(c *commit.Change) { c.Now = noon.Add(25 * time.Hour) })
	if got := whoIsTold(t, late, "approval_requested"); len(got) != 0 {
		t.Errorf("got %v told of what is a day old, want nobody", got)
	}
	if got := whoIsTold(t, pending(), "approval_requested", func(i *notify.Item) { i.Tenant = "rival" }); len(got) != 0 {
		t.Errorf("got %v told of another tenant's change, want nobody", got)
	}
	if got := whoIsTold(t, pending(), "approval_requested", func(i *notify.Item) { i.Preview = preview.ID{9}.String() }); len(got) != 0 {
		t.Errorf("got %v told of a change that is no longer on record, want nobody", got)
	}
	s, out := service(t, pending(), leads)
	if got, err := s.Tell(t.Context(), item("approval_requested", "gone")); err != nil || got.Dropped == "" || len(out.notes) != 0 {
		t.Errorf("got %+v, %v for a receiver that is not configured any more, want it dropped", got, err)
	}
}

func TestItemsOfAnEvent(t *testing.T) {
	t.Parallel()
	s, _ := service(t, pending(), all...)
	names := func(kind, tenant string) (names []string) {
		for _, i := range s.Items(preview.Moved{Tenant: tenant, ID: preview.ID{1}, Seq: 4, Kind: kind, At: noon}) {
			names = append(names, i.Receiver)
		}
		return names
	}
	if diff := cmp.Diff([]string{"leads", "finance", "askers", "siem"}, names("approval_requested", "acme")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"rival"}, names("approval_requested", "rival")); diff != "" {
		t.Error(diff)
	}
	settled := func(before string) (names []string) {
		for _, i := range s.Items(preview.Moved{Tenant: "acme", ID: preview.ID{1}, Seq: 4, Kind: "applied", Before: before, At: noon}) {
			names = append(names, i.Receiver)
		}
		return names
	}
	if diff := cmp.Diff([]string{"askers", "siem"}, settled("claimed")); diff != "" {
		t.Errorf("applied at once: %s", diff)
	}
	if diff := cmp.Diff([]string{"ops", "askers", "siem"}, settled("probed")); diff != "" {
		t.Errorf("applied after a look: %s", diff)
	}
	if got := s.Items(preview.Moved{Tenant: "acme", ID: preview.ID{1}, Seq: 2, Kind: "expired", Before: "prepared", At: noon}); len(got) != 0 {
		t.Errorf("got %v of what expired without a question, want nobody told", got)
	}
	if got := append(names("prepared", "acme"), names("claimed", "acme")...); len(got) != 0 {
		t.Errorf("got %v, want nobody told of these", got)
	}
}

func TestAMessagesIDIsItsOwnAndStays(t *testing.T) {
	t.Parallel()
	i := item("approved", "leads")
	seen := map[string]bool{i.ID(): true}
	for _, change := range []func(*notify.Item){
		func(i *notify.Item) { i.Tenant = "other" }, func(i *notify.Item) { i.Preview = "pv_x" }, func(i *notify.Item) { i.Seq++ },
		func(i *notify.Item) { i.Event = "rejected" }, func(i *notify.Item) { i.Receiver = "finance" },
	} {
		other := i
		change(&other)
		if seen[other.ID()] {
			t.Errorf("%+v has the ID of another", other)
		}
		seen[other.ID()] = true
	}
	raw, err := json.Marshal(i)
	if err != nil {
		t.Fatal(err)
	}
	var back notify.Item
	if err := json.Unmarshal(raw, &back); err != nil || back.ID() != i.ID() {
		t.Errorf("got %s, %v after it was stored, want %s", back.ID(), err, i.ID())
	}
}

// TestTheWords: a person's message has the amounts with their code, the link to the one page, and nothing that an agent wrote.
func TestTheWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		receiver notify.Receiver
		want     []string
	}{
		{leads, []string{"Approval wanted", "10,000 JPY → 16,000 JPY", "Spring⟨U+202E⟩gnirps⟨U+000A⟩Bcc: x", "planner, for sato", "one member of finance or legal", "2026-12-01 13:00 UTC"}},
		{finance, []string{"承認をお願いします", "JPY", "planner（sato の代理）", "2026-12-01 22:00 JST"}},
	} {
		s, out := service(t, pending(), c.receiver)
		if _, err := s.Tell(t.Context(), item("approval_requested", c.receiver.Name)); err != nil {
			t.Fatal(err)
		}
		n := out.notes[0]
		said := n.Subject + "\n" + n.Title
		for _, l := range n.Lines {
			said += "\n" + l.Label + ": " + l.Text
			if strings.ContainsAny(l.Label+l.Text, "\r\n\u202e") {
				t.Errorf("a line holds a hidden character: %q", l)
			}
		}
		for _, want := range c.want {
			if !strings.Contains(said, want) {
				t.Errorf("got %s\nwant it to say %q", said, want)
			}
		}
		if strings.ContainsAny(n.Subject+n.Title, "\r\n\u202e") || strings.Contains(said, "evil.example") {
			t.Errorf("got %q, want one line, and nothing of the agent's reason", said)
		}
		if want := "https://cutonce.example/changes/" + (preview.ID{1}).String() + "/review"; n.Link != want {
			t.Errorf("got %s, want %s", n.Link, want)
		}
	}
}

// TestEveryMessageHasWords: each kind of message, in both languages, says what its keys mean.
func TestEveryMessageHasWords(t *testing.T) {
	t.Parallel()
	changes := map[string]commit.Change{
		"approval_requested": pending(), "expiring": pending(),
		"approved": with(pending(), ended(preview.Approved, commit.StatusApproved)), "confirmed": with(pending(), ended(preview.Approved, commit.StatusApproved)),
		"expired ": with(pending(), func(c *commit.Change) {
			ended(preview.Expired, commit.StatusExpired)(c)
			c.Preview.ApprovedAt = noon
		}),
		"rejected": with(pending(), ended(preview.Rejected, commit.StatusRejected)), "expired": with(pending(), ended(preview.Expired, commit.StatusExpired)),
		"unknown":      with(pending(), claimed(commit.StatusUnknown, commit.Execution{State: commit.Unknown, NeedsOperator: true})),
		"proposed":     with(pending(), claimed(commit.StatusUnknown, commit.Execution{State: commit.Unknown, NeedsOperator: true})),
		"applied":      with(pending(), claimed(commit.StatusApplied, commit.Execution{State: commit.Applied, Evidence: commit.ByReceipt})),
		"not_applied":  with(pending(), claimed(commit.StatusNotApplied, commit.Execution{State: commit.NotApplied, Reason: commit.LookedUp})),
		"resolved":     with(pending(), claimed(commit.StatusNotApplied, commit.Execution{State: commit.NotApplied, Reason: commit.ByOperator, ResolvedBy: "olive", ResolvedWhy: "looked"})),
		"contradicted": with(pending(), claimed(commit.StatusApplied, commit.Execution{State: commit.Applied, Contradicted: true})),
	}
	for event, c := range changes {
		for _, locale := range catalog.Languages {
			r := siem
			r.Locale = locale
			s, out := service(t, c, r)
			if got, err := s.Tell(t.Context(), item(strings.TrimSpace(event), r.Name)); err != nil || got.Dropped != "" {
				t.Errorf("%s: got %+v, %v", event, got, err)
				continue
			}
			n := out.notes[0]
			texts := []string{n.Title, n.Act, n.Foot, n.Subject}
			for _, l := range n.Lines {
				texts = append(texts, l.Label, l.Text)
			}
			for _, text := range texts {
				if strings.Contains(text, "notify.") || strings.Contains(text, "<no value>") || text == "" {
					t.Errorf("%s in %s: got %q, want words", event, locale, text)
				}
			}
			if strings.Contains(n.Link, "decision") || strings.Contains(n.Link, "?") {
				t.Errorf("%s: the link %s may decide something", event, n.Link)
			}
		}
	}
}

func TestThePayload(t *testing.T) {
	t.Parallel()
	s, out := service(t, with(pending(), func(c *commit.Change) { c.Preview.Votes = []preview.Vote{vote("kim", true, "leads")} }), siem)
	if _, err := s.Tell(t.Context(), item("approval_requested", "siem")); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(out.notes[0].Payload, &got); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(out.notes[0].Payload), "evil.example") {
		t.Errorf("the agent's reason is in %s", out.notes[0].Payload)
	}
	data, _ := got["data"].(map[string]any)
	change, _ := data["change"].(map[string]any)
	rows, _ := change["changes"].([]any)
	if len(rows) != 1 {
		t.Fatalf("got %s", out.notes[0].Payload)
	}
	after := rows[0].(map[string]any)["after"]
	want := map[string]any{
		"type": "change.approval_wanted", "at": "2026-12-01T12:00:00Z", "event": "approval_requested", "status": "pending",
		"after":   map[string]any{"amount": "16000", "currency": "JPY", "shown": "16,000 JPY"},
		"missing": []any{map[string]any{"any_of": []any{"finance", "legal"}, "count": 1.0}},
		"url":     "https://cutonce.example/changes/" + (preview.ID{1}).String() + "/review",
		"asked":   map[string]any{"kind": "agent", "name": "planner", "on_behalf_of": "sato"},
	}
	have := map[string]any{
		"type": got["type"], "at": got["timestamp"], "event": data["event"], "status": data["status"], "after": after, "missing": data["missing"],
		"url": data["url"], "asked": data["requested_by"],
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhoeverAskedIsToldInTheirLanguageAtTheirAddress(t *testing.T) {
	t.Parallel()
	c := with(pending(), ended(preview.Rejected, commit.StatusRejected))
	c.Preview.EndedBy, c.Preview.EndReason = "kim", "too much\nBcc: x"
	s, out := service(t, c, askers)
	if _, err := s.Tell(t.Context(), item("rejected", "askers")); err != nil {
		t.Fatal(err)
	}
	if n := out.notes[0]; n.To != "sato@example.com" || n.Title != "却下されました" || !slices.Contains(n.Lines, notify.Line{Label: "理由", Text: "too much⟨U+000A⟩Bcc: x"}) {
		t.Errorf("got %+v", n)
	}
	c.Preview.Requester.For = ""
	s, out = service(t, c, askers)
	if got, err := s.Tell(t.Context(), item("rejected", "askers")); err != nil || got.Dropped == "" || len(out.notes) != 0 {
		t.Errorf("got %+v, %v, want no mail where no person is known", got, err)
	}
}

func TestASendersErrorIsPassedOn(t *testing.T) {
	t.Parallel()
	s, out := service(t, pending(), leads)
	out.err = errors.Join(notify.ErrRefused)
	if _, err := s.Tell(t.Context(), item("approval_requested", "leads")); !errors.Is(err, notify.ErrRefused) {
		t.Errorf("got %v, want the sender's error", err)
	}
}

func TestASampleGoesToOneReceiver(t *testing.T) {
	t.Parallel()
	s, out := service(t, pending(), leads, finance)
	if err := s.Sample(t.Context(), "finance", noon); err != nil {
		t.Fatal(err)
	}
	if n := out.notes[0]; n.Title != "テスト通知" || n.Link != "https://cutonce.example" || !json.Valid(n.Payload) {
		t.Errorf("got %+v", n)
	}
	if err := s.Sample(t.Context(), "nobody", noon); err == nil || !strings.Contains(err.Error(), "leads, finance") {
		t.Errorf("got %v, want those that there are", err)
	}
}
