package store_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
)

// model is what the promise says of a handful of changes, in plain Go: no clock, no lock, no database.
type model struct {
	r        *rig
	run      int
	changes  []*modelled
	versions map[string]int
}

type modelled struct {
	p       preview.Preview
	target  string
	text    string
	version int
	needs   int // people; 0 is automatic
	votes   map[string]bool
	status  commit.Status
	effects int
	settled bool // absent would prove something
}

func (m *modelled) open() bool {
	return m.status == commit.StatusNeedsApproval || m.status == commit.StatusPending || m.status == commit.StatusApproved
}

// byText rules by the first letter of the text, so that a change keeps its ruling.
func byText(f policy.Facts) policy.Ruling {
	switch f.Input.Text("text")[0] {
	case '1':
		return people(leads)
	case '2':
		return people(policy.Seats{AnyOf: []string{"leads"}, Count: 2})
	case 'd':
		return policy.Ruling{Verdict: policy.Deny, Rule: "ceiling", Version: policyVersion}
	}
	return automatic
}

func (m *model) any(t *rapid.T) *modelled {
	if len(m.changes) == 0 {
		t.Skip("nothing prepared yet")
	}
	return m.changes[rapid.IntRange(0, len(m.changes)-1).Draw(t, "change")]
}

func (m *model) prepare(t *rapid.T) {
	target := rapid.SampledFrom([]string{"x", "y"}).Draw(t, "target")
	text := rapid.SampledFrom([]string{"auto", "1 lead", "2 leads", "deny", "auto too"}).Draw(t, "text")
	got := m.r.mustPrepare(agent("bot"), "", m.key(target), text)
	for i := len(m.changes) - 1; i >= 0; i-- {
		c := m.changes[i]
		if c.target != target || c.text != text || !c.open() {
			continue
		}
		if c.version == m.versions[target] {
			if !got.Replayed || got.Preview.ID != c.p.ID {
				t.Fatalf("got a new preview, want %s again", c.p.ID)
			}
			return
		}
		break
	}
	if got.Replayed {
		t.Fatalf("got %s again, want a new preview", got.Preview.ID)
	}
	c := &modelled{p: got.Preview, target: target, text: text, version: m.versions[target], votes: map[string]bool{}, status: commit.StatusApproved}
	switch text[0] {
	case '1', '2':
		c.needs, c.status = int(text[0]-'0'), commit.StatusNeedsApproval
	case 'd':
		c.status = commit.StatusDenied
	}
	m.changes = append(m.changes, c)
}

// key makes the targets of one run its own.
func (m *model) key(target string) string { return fmt.Sprintf("%s%d", target, m.run) }

func (m *model) request(t *rapid.T) {
	c := m.any(t)
	if _, err := m.r.approvals.Request(m.r.t.Context(), agent("bot"), c.p.ID, "please"); err != nil {
		t.Fatal(err)
	}
	if c.status == commit.StatusNeedsApproval {
		c.status = commit.StatusPending
	}
}

func (m *model) vote(t *rapid.T) {
	c := m.any(t)
	who := rapid.SampledFrom([]string{"kim", "KIM", "lee", "choi", "sato"}).Draw(t, "who")
	yes := rapid.Bool().Draw(t, "approve")
	_, err := m.r.approvals.Decide(m.r.t.Context(), person(who, "leads"), c.p.ID, approvals.Decision{Approve: yes, Reason: "because", Digest: c.p.Digest})
	name := strings.ToLower(who)
	switch {
	case who == "sato", c.needs == 0:
		wantFault(t, err, fault.Forbidden)
	case yes && c.votes[name]: // the same decision again
	case yes && c.status == commit.StatusPending:
		c.votes[name] = true
		if len(c.votes) >= c.needs {
			c.status = commit.StatusApproved
		}
	case !yes && (c.status == commit.StatusPending || c.status == commit.StatusApproved):
		c.status = commit.StatusRejected
		delete(c.votes, name)
	}
}

func wantFault(t *rapid.T, err error, want fault.Code) {
	if !errors.Is(err, want) {
		t.Fatalf("got %v, want %s", err, want)
	}
}

func (m *model) cancel(t *rapid.T) {
	c := m.any(t)
	_, err := m.r.previews.Cancel(m.r.t.Context(), agent("bot"), c.p.ID, "")
	switch {
	case c.open(), c.status == commit.StatusCanceled:
		if err != nil {
			t.Fatal(err)
		}
		c.status = commit.StatusCanceled
	case err == nil:
		t.Fatalf("canceled what was %s", c.status)
	}
}

// lapse lets a deadline pass, with or without a sweep after it.
func (m *model) lapse(t *rapid.T) {
	c := m.any(t)
	if !c.open() {
		t.Skip("no clock runs")
	}
	m.r.shortly(c.p.ID, -time.Second)
	c.status = commit.StatusExpired
	if rapid.Bool().Draw(t, "sweep") {
		if _, err := m.r.store.MarkLapsed(m.r.t.Context(), 100); err != nil {
			t.Fatal(err)
		}
	}
}

func (m *model) busy(c *modelled) bool {
	for _, o := range m.changes {
		if o != c && o.target == c.target && o.status == commit.StatusUnknown {
			return true
		}
	}
	return false
}

func (m *model) apply(t *rapid.T) {
	c := m.any(t)
	mode := rapid.SampledFrom([]string{"ok", "ok", "lost", "silent", "never left", "refused"}).Draw(t, "target")
	m.r.target.script(modes[mode])
	got, err := m.r.apply(c.p)
	m.r.target.script(nil)
	switch {
	case c.status == commit.StatusNeedsApproval, c.status == commit.StatusPending:
		wantFault(t, err, fault.ApprovalRequired)
	case c.status != commit.StatusApproved:
	case m.busy(c):
		wantFault(t, err, fault.TargetBusy)
	case c.version != m.versions[c.target]:
		c.status = commit.StatusNotApplied
	default:
		m.sent(t, c, mode, err)
	}
	if got.Status != c.status {
		t.Fatalf("apply said %s, want %s", got.Status, c.status)
	}
}

func (m *model) sent(t *rapid.T, c *modelled, mode string, err error) {
	switch mode {
	case "ok", "lost":
		c.effects++
		m.versions[c.target]++
		c.status = commit.StatusApplied
		if mode == "lost" {
			c.status = commit.StatusUnknown
		}
	case "silent":
		c.status = commit.StatusUnknown
	case "never left":
		wantFault(t, err, fault.TargetUnavailable)
	case "refused":
		c.status = commit.StatusNotApplied
	}
}

type executing = func(context.Context, connector.Plan, connector.Call, func() error) (connector.Receipt, error)

var modes = map[string]executing{
	"ok": nil,
	"lost": func(_ context.Context, _ connector.Plan, _ connector.Call, do func() error) (connector.Receipt, error) {
		return connector.Receipt{}, errors.Join(do(), errors.New("the reply was lost"))
	},
	"silent": func(context.Context, connector.Plan, connector.Call, func() error) (connector.Receipt, error) {
		return connector.Receipt{}, context.DeadlineExceeded
	},
	"never left": func(context.Context, connector.Plan, connector.Call, func() error) (connector.Receipt, error) {
		return connector.Receipt{}, connector.NotSent(errors.New("connection refused"))
	},
	"refused": func(context.Context, connector.Plan, connector.Call, func() error) (connector.Receipt, error) {
		return connector.Receipt{}, connector.Rejected(422, "no")
	},
}

// settle lets the time pass after which "absent" proves something.
func (m *model) settle(t *rapid.T) {
	c := m.any(t)
	if c.status != commit.StatusUnknown || c.settled {
		t.Skip("nothing to settle")
	}
	m.r.exec(`update executions set lease_until = clock_timestamp() - interval '1 s', settle_at = clock_timestamp() - interval '1 s' where preview_id = $1`, c.p.ID.UUID())
	c.settled = true
}

func (m *model) sweep(t *rapid.T) {
	m.r.exec(`update executions set next_probe_at = clock_timestamp() where state = 'unknown'`)
	if err := m.r.commits.Sweep(m.r.t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range m.changes {
		switch {
		case c.status != commit.StatusUnknown:
		case c.effects > 0:
			c.status = commit.StatusApplied
		case c.settled:
			c.status = commit.StatusNotApplied
		}
	}
}

func (m *model) resolve(t *rapid.T) {
	c := m.any(t)
	said := commit.Resolution{Key: commit.Key{ID: c.p.ID}, By: operator("ito"), Applied: c.effects > 0, Reason: "seen in the log", Evidence: "target log"}
	_, err := m.r.commits.Resolve(m.r.t.Context(), said)
	switch {
	case c.status != commit.StatusUnknown:
	case said.Applied:
		c.status = commit.StatusApplied
	case !c.settled:
		wantFault(t, err, fault.Conflict)
	default:
		c.status = commit.StatusNotApplied
	}
}

func (m *model) move(t *rapid.T) {
	target := rapid.SampledFrom([]string{"x", "y"}).Draw(t, "target")
	m.r.target.move(m.key(target), "somebody else's")
	m.versions[target]++
}

func (m *model) check(t *rapid.T) {
	for _, c := range m.changes {
		got := m.r.status(c.p.ID)
		if got.Status != c.status {
			t.Fatalf("%s of %s: got %s, want %s", c.text, c.target, got.Status, c.status)
		}
		m.r.target.mu.Lock()
		n := m.r.target.effects[commit.IdempotencyKey(secret, "acme", c.p.ID, 0)]
		m.r.target.mu.Unlock()
		if n != c.effects || n > 1 {
			t.Fatalf("%s of %s: got %d effects, want %d", c.text, c.target, n, c.effects)
		}
	}
}

// finish settles what is still unknown: nothing is a dead end.
func (m *model) finish(t *rapid.T) {
	for _, c := range m.changes {
		if c.status == commit.StatusUnknown && !c.settled {
			m.r.exec(`update executions set lease_until = clock_timestamp() - interval '1 s', settle_at = clock_timestamp() - interval '1 s' where preview_id = $1`, c.p.ID.UUID())
			c.settled = true
		}
	}
	m.sweep(t)
	m.check(t)
}

// TestAnyOrderOfCallsKeepsThePromise drives the whole core, on Postgres, against the model.
func TestAnyOrderOfCallsKeepsThePromise(t *testing.T) {
	t.Parallel()
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		_ = checks.Value.Set("50") // lives; some ten seconds. Give -rapid.checks for more
	}
	r := newRig(t, func(r *rig) { r.clocks.LeaseFor = time.Minute })
	r.rules.by = byText
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		m := &model{r: r, run: run, versions: map[string]int{}}
		t.Repeat(map[string]func(*rapid.T){
			"prepare": m.prepare, "prepare too": m.prepare, "request": m.request, "vote": m.vote, "vote too": m.vote, "cancel": m.cancel,
			"lapse": m.lapse, "apply": m.apply, "apply too": m.apply, "settle": m.settle, "sweep": m.sweep, "resolve": m.resolve, "move": m.move,
			"": m.check,
		})
		m.finish(t)
	})
}

// TestTimeZonesOfTheServerChangeNothing: a session far from UTC, with half an hour in its offset.
func TestTimeZonesOfTheServerChangeNothing(t *testing.T) {
	t.Parallel()
	for _, zone := range []string{"Asia/Kolkata", "America/St_Johns", "Pacific/Kiritimati"} {
		t.Run(zone, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(r *rig) { r.zone = zone })
			var got string
			r.scalar(&got, `show timezone`)
			if got != zone {
				t.Fatalf("got time zone %s, want %s", got, zone)
			}
			p := r.pending("a")
			if left := time.Until(p.Deadline); left < 30*time.Second || left > time.Minute+time.Second {
				t.Errorf("got %s left to decide, want about a minute", left)
			}
			if _, err := r.approve(p, "kim"); err != nil {
				t.Fatal(err)
			}
			c, err := r.apply(p)
			if err != nil || c.Status != commit.StatusApplied {
				t.Fatalf("got %s, %v, want applied", c.Status, err)
			}
			c = r.status(p.ID)
			e := c.Executions[0]
			if d := e.LeaseUntil.Sub(e.StartedAt); d != r.clocks.LeaseFor || c.Now.Sub(e.StartedAt) > time.Minute {
				t.Errorf("got a lease of %s from %s, want %s from about %s", d, e.StartedAt, r.clocks.LeaseFor, c.Now)
			}
			q := r.pending("b")
			r.shortly(q.ID, 0)
			if got := r.status(q.ID).Status; got != commit.StatusExpired {
				t.Errorf("got %s, want expired", got)
			}
		})
	}
}
