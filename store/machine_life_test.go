package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
)

// model is what the promise says of a handful of changes, in plain Go: no clock, no lock, no database.
type model struct {
	r *rig
	// hands are the replicas: each call goes to one of them.
	hands    []*rig
	run      int
	changes  []*modelled
	versions map[string]int
	texts    map[string]string
	// dumb is set while the target's look-ups cannot tell.
	dumb bool
}

// modelled is one change.
type modelled struct {
	p       preview.Preview
	who     actor.Actor
	target  string
	text    string
	before  string
	reverts string
	version int
	needs   int // people; 0 is automatic
	votes   map[string]bool
	vetoed  string // who rejected it
	status  commit.Status
	reason  string // why not applied
	// answered: an answer of the target said so, perhaps to a second delivery.
	answered bool
	effects  int
	// late is a send that the target holds; current is set while nobody has looked since.
	late         *late
	current      bool
	settled      bool // absent would prove something
	stated       bool // a person's word counted
	contradicted bool
}

func (m *modelled) open() bool {
	return m.status == commit.StatusNeedsApproval || m.status == commit.StatusPending || m.status == commit.StatusApproved
}

func (m *modelled) claimed() bool {
	switch m.status {
	case commit.StatusApplying, commit.StatusUnknown, commit.StatusApplied, commit.StatusNotApplied:
		return true
	}
	return false
}

// byText rules by the first letter of the text, so that a change keeps its ruling.
func byText(f policy.Facts) policy.Ruling {
	switch needsOf(f.Input.Text("text")) {
	case 1:
		return people(leads)
	case 2:
		return people(policy.Seats{AnyOf: []string{"leads"}, Count: 2})
	case -1:
		return policy.Ruling{Verdict: policy.Deny, Rule: "ceiling", Version: policyVersion}
	}
	return automatic
}

// needsOf is how many people a text needs, and -1 for one that is denied.
func needsOf(text string) int {
	switch {
	case strings.HasPrefix(text, "1"):
		return 1
	case strings.HasPrefix(text, "2"):
		return 2
	case strings.HasPrefix(text, "d"):
		return -1
	}
	return 0
}

func (m *model) any(t *rapid.T) *modelled {
	return m.pick(t, func(*modelled) bool { return true })
}

// pick draws one of the changes that fit.
func (m *model) pick(t *rapid.T, fits func(*modelled) bool) *modelled {
	var some []*modelled
	for _, c := range m.changes {
		if fits(c) {
			some = append(some, c)
		}
	}
	if len(some) == 0 {
		t.Skip("there is none")
	}
	return some[rapid.IntRange(0, len(some)-1).Draw(t, "change")]
}

// prefer draws mostly one of those that fit, and now and then any other: both what works and what is refused are wanted.
func (m *model) prefer(t *rapid.T, fits func(*modelled) bool) *modelled {
	if slices.ContainsFunc(m.changes, fits) && rapid.IntRange(0, 4).Draw(t, "one that fits") > 0 {
		return m.pick(t, fits)
	}
	return m.any(t)
}

func in(some ...commit.Status) func(*modelled) bool {
	return func(c *modelled) bool { return slices.Contains(some, c.status) }
}

func (m *model) replica(t *rapid.T) *rig {
	return m.hands[rapid.IntRange(0, len(m.hands)-1).Draw(t, "replica")]
}

func (m *model) caller(t *rapid.T) actor.Actor {
	return agent(rapid.SampledFrom([]string{"bot", "bot", "bot2"}).Draw(t, "caller"))
}

// key makes the targets of one run its own.
func (m *model) key(target string) string { return fmt.Sprintf("%s%d", target, m.run) }

func (m *model) prepare(t *rapid.T) {
	who, target := m.caller(t), rapid.SampledFrom([]string{"x", "y"}).Draw(t, "target")
	text := rapid.SampledFrom([]string{"auto", "auto too", "auto again", "1 lead", "2 leads", "deny"}).Draw(t, "text")
	got, err := m.replica(t).previews.Prepare(m.r.t.Context(), who, preview.Request{Action: "text_change", Input: input(m.key(target), text)})
	wantFault(t, err, "")
	m.prepared(t, got, modelled{who: who, target: target, text: text})
}

// undo prepares what would put the target back to what a change found.
func (m *model) undo(t *rapid.T) {
	c := m.any(t)
	got, err := m.replica(t).previews.Undo(m.r.t.Context(), c.who, c.p.ID, "put it back", "")
	if !c.claimed() {
		wantFault(t, err, fault.Conflict)
		return
	}
	wantFault(t, err, "")
	m.prepared(t, got, modelled{who: c.who, target: c.target, text: c.before, reverts: c.p.ID.String()})
}

// prepared adds a preview, or finds the open one that the call must have been given again.
func (m *model) prepared(t *rapid.T, got preview.Prepared, c modelled) {
	c.p, c.version, c.before, c.votes = got.Preview, m.versions[c.target], m.texts[c.target], map[string]bool{}
	for i := len(m.changes) - 1; i >= 0; i-- {
		o := m.changes[i]
		if o.who.Subject != c.who.Subject || o.target != c.target || o.text != c.text || o.reverts != c.reverts || !o.open() || o.version != c.version {
			continue
		}
		if !got.Replayed || got.Preview.ID != o.p.ID {
			t.Fatalf("got a new preview, want %s again", o.p.ID)
		}
		return
	}
	if got.Replayed {
		t.Fatalf("got %s again, want a new preview", got.Preview.ID)
	}
	if got.Preview.Reverts != c.reverts {
		t.Fatalf("got a preview that undoes %q, want %q", got.Preview.Reverts, c.reverts)
	}
	switch c.needs = needsOf(c.text); c.needs {
	case 0:
		c.status = commit.StatusApproved
	case -1:
		c.status = commit.StatusDenied
	default:
		c.status = commit.StatusNeedsApproval
	}
	m.changes = append(m.changes, &c)
}

func (m *model) request(t *rapid.T) {
	c := m.prefer(t, in(commit.StatusNeedsApproval))
	_, err := m.replica(t).approvals.Request(m.r.t.Context(), c.who, c.p.ID, "please")
	wantFault(t, err, "")
	if c.status == commit.StatusNeedsApproval {
		c.status = commit.StatusPending
	}
}

func (m *model) vote(t *rapid.T) {
	c := m.prefer(t, func(c *modelled) bool {
		return c.needs > 0 && (c.status == commit.StatusPending || c.status == commit.StatusApproved)
	})
	who := rapid.SampledFrom([]string{"kim", "KIM", "lee", "choi", "sato"}).Draw(t, "who")
	yes := rapid.Bool().Draw(t, "approve")
	_, err := m.replica(t).approvals.Decide(m.r.t.Context(), person(who, "leads"), c.p.ID,
		approvals.Decision{Approve: yes, Reason: "because", Digest: c.p.Digest})
	wantFault(t, err, c.voted(strings.ToLower(who), yes))
}

// voted is what becomes of a vote, and what its author is told.
func (m *modelled) voted(name string, yes bool) fault.Code {
	switch {
	case name == "sato", m.needs <= 0:
		return fault.Forbidden
	case yes && m.vetoed == name:
		return fault.Conflict
	case yes && m.votes[name], !yes && m.vetoed == name: // the same decision again
		return ""
	case m.claimed():
		return fault.InProgress
	case m.status == commit.StatusExpired:
		return fault.Expired
	case !yes && (m.status == commit.StatusPending || m.status == commit.StatusApproved):
		m.status, m.vetoed = commit.StatusRejected, name
		return ""
	case yes && m.status == commit.StatusPending:
		m.votes[name] = true
		if len(m.votes) >= m.needs {
			m.status = commit.StatusApproved
		}
		return ""
	}
	return fault.Conflict
}

// wantFault compares what a caller was told; an empty code is none.
func wantFault(t *rapid.T, err error, want fault.Code) {
	if want == "" && err != nil || want != "" && !errors.Is(err, want) {
		t.Fatalf("got %v, want %q", err, want)
	}
}

func (m *model) cancel(t *rapid.T) {
	c, who := m.any(t), m.caller(t)
	_, err := m.replica(t).previews.Cancel(m.r.t.Context(), who, c.p.ID, "")
	switch {
	case who.Subject != c.who.Subject:
		wantFault(t, err, fault.NotFound)
	case c.open(), c.status == commit.StatusCanceled:
		wantFault(t, err, "")
		c.status = commit.StatusCanceled
	case c.claimed():
		wantFault(t, err, fault.InProgress)
	case c.status == commit.StatusExpired:
		wantFault(t, err, fault.Expired)
	default:
		wantFault(t, err, fault.Conflict)
	}
}

// expire lets a deadline pass, with or without a sweep after it.
func (m *model) expire(t *rapid.T) {
	c := m.pick(t, (*modelled).open)
	if rapid.IntRange(0, 3).Draw(t, "patience") > 0 {
		t.Skip("most are applied before")
	}
	m.r.shortly(c.p.ID, 0)
	c.status = commit.StatusExpired
	if rapid.Bool().Draw(t, "sweep") {
		if _, err := m.replica(t).store.MarkLapsed(m.r.t.Context(), 100); err != nil {
			t.Fatal(err)
		}
	}
}

func (m *model) move(t *rapid.T) {
	target := rapid.SampledFrom([]string{"x", "y"}).Draw(t, "target")
	m.r.target.move(m.key(target), "somebody else's")
	m.versions[target]++
	m.texts[target] = "somebody else's"
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
		if len(got.Executions) > 0 && got.Executions[0].Contradicted != c.contradicted {
			t.Fatalf("%s of %s: got contradicted %v, want %v", c.text, c.target, !c.contradicted, c.contradicted)
		}
	}
}
