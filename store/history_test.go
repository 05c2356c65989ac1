package store_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/audit"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/preview"
	"github.com/cutonce/cutonce/store"
)

// found lists a tenant's changes a few at a time, as the names that the test gave them.
func (r *rig) found(f commit.Filter, names map[preview.ID]string) []string {
	r.t.Helper()
	f.Tenant, f.Limit = "acme", 2
	var got []string
	for {
		page, next, err := r.store.List(r.t.Context(), f)
		if err != nil {
			r.t.Fatalf("%+v: %v", f, err)
		}
		for _, c := range page {
			got = append(got, names[c.Preview.ID])
		}
		if f.Cursor = next; next == "" {
			return got
		}
	}
}

func (r *rig) wantFound(f commit.Filter, names map[preview.ID]string, want ...string) {
	r.t.Helper()
	got := r.found(f, names)
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		r.t.Errorf("%+v (-want +got):\n%s", f, diff)
	}
}

// TestHistoryIsSearched: by whoever asked, decided or settled, by target, action, status and time, and by all of them together.
func TestHistoryIsSearched(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	names := map[preview.ID]string{}
	name := func(p preview.Preview, as string) preview.Preview { names[p.ID] = as; return p }

	began, err := r.store.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	voted := name(r.pending("a"), "voted")
	if _, err := r.approve(voted, "Kim@Agency.example"); err != nil {
		t.Fatal(err)
	}
	name(r.pending("b"), "waiting")
	between, err := r.store.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	later := name(r.prepare("a", "newer"), "later")
	if _, err := r.approvals.Request(t.Context(), agent("bot"), later.ID, ""); err != nil {
		t.Fatal(err)
	}
	r.wantFound(commit.Filter{}, names, "voted", "waiting", "later")
	r.wantFound(commit.Filter{Person: "kim@agency"}, names, "voted")
	r.wantFound(commit.Filter{Person: "KIM"}, names, "voted")
	r.wantFound(commit.Filter{Person: "nobody"}, names)
	r.wantFound(commit.Filter{Person: "bot"}, names, "voted", "waiting", "later")
	r.wantFound(commit.Filter{Person: "bot", TargetID: "a"}, names, "voted", "later")
	r.wantFound(commit.Filter{Person: "kim", Status: commit.StatusPending}, names)
	r.wantFound(commit.Filter{TargetID: "a"}, names, "voted", "later")
	r.wantFound(commit.Filter{Status: commit.StatusPending}, names, "waiting", "later")
	r.wantFound(commit.Filter{Since: began, Until: between}, names, "voted", "waiting")
	r.wantFound(commit.Filter{Since: between}, names, "later")
	r.wantFound(commit.Filter{Until: began}, names)
	r.wantFound(commit.Filter{Since: began, Until: between, Person: "bot", Status: commit.StatusPending}, names, "waiting")
	r.wantFound(commit.Filter{Contradicted: true}, names)
	// Another tenant finds nothing by any of them.
	for _, f := range []commit.Filter{{Person: "kim"}, {TargetID: "a"}, {Since: began}, {Contradicted: true}} {
		f.Tenant, f.Limit = "rival", 10
		if page, _, err := r.store.List(t.Context(), f); err != nil || len(page) > 0 {
			t.Errorf("%+v: got %d changes, %v, want none of another tenant's", f, len(page), err)
		}
	}
}

// TestASettlerIsFound: an operator's word makes a change theirs to be found by, and proof against it makes it an incident.
func TestASettlerIsFound(t *testing.T) {
	t.Parallel()
	r := newRig(t, hasty)
	r.target.script(func(_ context.Context, _ connector.Plan, _ connector.Call, do func() error) (connector.Receipt, error) {
		return connector.Receipt{}, errors.Join(do(), errors.New("no reply"))
	})
	r.target.looks(func(connector.Call) (connector.Finding, error) { return connector.Finding{}, errors.New("down") })
	p := r.prepare("a", "new")
	names := map[preview.ID]string{p.ID: "settled"}
	if c, err := r.apply(p); err != nil || c.Status != commit.StatusUnknown {
		t.Fatalf("got %s, %v, want unknown", c.Status, err)
	}
	by := operator("olive")
	for deadline := time.Now().Add(30 * time.Second); ; {
		_, err := r.commits.Resolve(t.Context(), commit.Resolution{Key: commit.Key{ID: p.ID}, By: by, Reason: "not in the log", Evidence: "ticket 1"})
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond) // too early until a late effect is no longer to be expected
	}
	r.wantFound(commit.Filter{Person: "olive"}, names, "settled")
	r.wantFound(commit.Filter{Contradicted: true}, names)
	r.target.looks(nil)
	if c, err := r.commits.Probe(t.Context(), by, p.ID); err != nil || c.Status != commit.StatusApplied {
		t.Fatalf("got %s, %v, want applied", c.Status, err)
	}
	r.wantFound(commit.Filter{Contradicted: true}, names, "settled")
	r.wantFound(commit.Filter{Contradicted: true, Person: "olive", Status: commit.StatusApplied}, names, "settled")
}

// TestTooManyPeopleAreSaidSo: a text that means everybody is refused in words.
func TestTooManyPeopleAreSaidSo(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 101 {
		who := agent("bot")
		who.For = "person-" + string(rune('a'+i%26)) + string(rune('a'+i/26)) + "@agency.example"
		if _, err := r.prepareAs(who, "", "a", "new"); err != nil {
			t.Fatal(err)
		}
	}
	_, _, err := r.store.List(t.Context(), commit.Filter{Tenant: "acme", Person: "agency", Limit: 5})
	if fault.CodeOf(err) != fault.InvalidInput {
		t.Errorf("got %v, want invalid_input", err)
	}
	page, _, err := r.store.List(t.Context(), commit.Filter{Tenant: "acme", Person: "person-aa@", Limit: 5})
	if err != nil || len(page) != 1 {
		t.Errorf("got %d changes, %v, want one", len(page), err)
	}
}

// TestATrailShowsWhatWasForged: the record of one change, checked by itself and against its seal.
func TestATrailShowsWhatWasForged(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	keys := sealKey(t).Trusted()
	p := r.prepare("a", "new")
	if _, err := r.apply(p); err != nil {
		t.Fatal(err)
	}
	prove := func() audit.Proof {
		t.Helper()
		trail, err := r.store.Trail(t.Context(), "acme", p.ID)
		if err != nil {
			t.Fatal(err)
		}
		return keys.Prove(trail)
	}
	r.sealAll()
	if got := prove(); got.Flaw != "" || !got.Recomputed || !got.Vouched || got.Sealed != got.Events || got.Unsealed != 0 {
		t.Fatalf("got %+v, want a record that is whole and sealed", got)
	}
	if _, err := r.store.Trail(t.Context(), "rival", p.ID); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("another tenant's: got %v, want not_found", err)
	}
	forge := func(sql string, want audit.Flaw, at int64) {
		t.Helper()
		r.forging(func(tx pgx.Tx) error {
			for _, table := range []string{"audit_events", "seal_leaves"} {
				sql = `alter table ` + table + ` disable trigger user; ` + sql + `; alter table ` + table + ` enable trigger user`
			}
			_, err := tx.Exec(t.Context(), sql)
			return err
		})
		if got := prove(); got.Flaw != want || got.At != at {
			t.Errorf("%s: got %s at event %d, want %s at %d", sql, got.Flaw, got.At, want, at)
		}
	}
	forge(`update seal_leaves set seq = 4 where seq = 3`, audit.FlawMissing, 4)
	forge(`update seal_leaves set seq = 3 where seq = 4`, "", 0)
	forge(`update seal_leaves set head = decode(repeat('00', 32), 'hex')`, audit.FlawSealed, 3)
	forge(`update audit_events set actor = 'human:somebody' where seq = 2`, audit.FlawHash, 2)
}

// TestAnExportIsOnRecord: who took out what, before it left, in the chain of their tenant's controls, and no claim waits for it.
func TestAnExportIsOnRecord(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.prepare("a", "new")
	auditor := person("audrey")
	auditor.Roles = []string{actor.RoleAuditor}
	var got []preview.ID
	order := commit.ExportOrder{Format: "csv", Filter: commit.Filter{TargetID: "a", Statuses: []commit.Status{commit.StatusApproved}, Since: time.Now().Add(-time.Hour)}}
	for range 2 {
		more, err := r.commits.Export(t.Context(), auditor, order, func(c commit.Change) error { got = append(got, c.Preview.ID); return nil })
		if err != nil || more {
			t.Fatalf("got more %t, %v", more, err)
		}
	}
	if want := []preview.ID{p.ID, p.ID}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, who := range []actor.Actor{person("kim"), agent("bot")} {
		if _, err := r.commits.Export(t.Context(), who, order, nil); fault.CodeOf(err) != fault.Forbidden {
			t.Errorf("%s: got %v, want forbidden", who.Subject, err)
		}
	}
	failed := errors.New("the connection is gone")
	if _, err := r.commits.Export(t.Context(), auditor, order, func(commit.Change) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("got %v, want what the receiver said", err)
	}
	var said []string
	rows, err := r.pool.Query(t.Context(), `select convert_from(body, 'UTF8') from control_events where scope = 'acme' and kind = 'exported' and actor = $1 order by seq`, auditor.ID())
	if err != nil {
		t.Fatal(err)
	}
	if said, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil || len(said) != 3 {
		t.Fatalf("on record: got %v, %v, want three", said, err)
	}
	if got, want := said[0], `{"format":"csv","since":"`+order.Since.UTC().Format(time.RFC3339Nano)+`","statuses":["approved"],"target":"a"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	r.sealAll()
}

// TestAnEventSaysWhichRequestCausedIt: what a request caused leads to its lines in the log; the chain covers that as all else.
func TestAnEventSaysWhichRequestCausedIt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx := store.InRequest(t.Context(), "req-4711")
	p, err := r.previews.Prepare(ctx, agent("bot"), preview.Request{Action: "text_change", Input: input("a", "new")})
	if err != nil {
		t.Fatal(err)
	}
	if c, err := r.commits.Apply(store.InRequest(t.Context(), "req-4712"), agent("bot"), "text_change", p.Preview.ID, 10*time.Second); err != nil || c.Status != commit.StatusApplied {
		t.Fatalf("got %s, %v, want applied", c.Status, err)
	}
	c, err := r.commits.Status(t.Context(), agent("bot"), p.Preview.ID, 0, true)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{`"request_id":"req-4711"`, `"request_id":"req-4712"`} {
		if got := c.Events[i].Body; !strings.Contains(got, want) {
			t.Errorf("event %d: got %s, want %s", i+1, got, want)
		}
	}
	trail, err := r.store.Trail(t.Context(), "acme", p.Preview.ID)
	if err != nil {
		t.Fatal(err)
	}
	if got := (audit.Keys{}).Prove(trail); got.Flaw != "" {
		t.Errorf("the chain: got %s at event %d", got.Flaw, got.At)
	}
	sweep := r.prepare("b", "new")
	if got := r.status(sweep.ID); strings.Contains(got.Events[0].Body, "request_id") {
		t.Errorf("got %s, want nothing of a request where there was none", got.Events[0].Body)
	}
}

// TestAnExportIsBounded: it ends where it must and says so, and only so many are written at a time.
func TestAnExportIsBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, target := range []string{"a", "b", "c"} {
		r.prepare(target, "new")
	}
	auditor := person("audrey")
	auditor.Roles = []string{actor.RoleAuditor}
	r.commits.MostExported = 2
	n := 0
	count := func(commit.Change) error { n++; return nil }
	if more, err := r.commits.Export(t.Context(), auditor, commit.ExportOrder{Format: "csv"}, count); err != nil || !more || n != 2 {
		t.Errorf("got %d changes, more %t, %v, want two and more", n, more, err)
	}
	r.commits.MostExported = 3
	if more, err := r.commits.Export(t.Context(), auditor, commit.ExportOrder{Format: "csv"}, count); err != nil || more || n != 5 {
		t.Errorf("got %d changes, more %t, %v, want all three", n-2, more, err)
	}
	begun, release, done := make(chan struct{}, 2), make(chan struct{}), make(chan error, 2)
	for range 2 {
		go func() {
			first := true
			_, err := r.commits.Export(context.WithoutCancel(t.Context()), auditor, commit.ExportOrder{Format: "csv"}, func(commit.Change) error {
				if first {
					first = false
					begun <- struct{}{}
					<-release
				}
				return nil
			})
			done <- err
		}()
	}
	<-begun
	<-begun
	if _, err := r.commits.Export(t.Context(), auditor, commit.ExportOrder{Format: "csv"}, count); fault.CodeOf(err) != fault.RateLimited {
		t.Errorf("a third at once: got %v, want rate_limited", err)
	}
	close(release)
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if _, err := r.commits.Export(t.Context(), auditor, commit.ExportOrder{Format: "csv"}, count); err != nil {
		t.Errorf("after them: %v", err)
	}
}
