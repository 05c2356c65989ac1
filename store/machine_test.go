package store_test

import (
	"context"
	"errors"
	"flag"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/fault"
)

// The actions of this file are about sending and settling; those of machine_life_test.go come before.

type executing = func(context.Context, connector.Plan, connector.Call, func() error) (connector.Receipt, error)

// modes are what a target makes of a send: one for each class of outcome, and more for the unknown.
var modes = map[string]executing{
	"ok": nil,
	"lost": func(_ context.Context, _ connector.Plan, _ connector.Call, do func() error) (connector.Receipt, error) {
		return connector.Receipt{}, errors.Join(do(), errors.New("the reply was lost"))
	},
	"silent": func(context.Context, connector.Plan, connector.Call, func() error) (connector.Receipt, error) {
		return connector.Receipt{}, context.DeadlineExceeded
	},
	"panics": func(_ context.Context, _ connector.Plan, _ connector.Call, do func() error) (connector.Receipt, error) {
		_ = do()
		panic("after the effect")
	},
	"never left": func(context.Context, connector.Plan, connector.Call, func() error) (connector.Receipt, error) {
		return connector.Receipt{}, connector.NotSent(errors.New("connection refused"))
	},
	"refused": func(context.Context, connector.Plan, connector.Call, func() error) (connector.Receipt, error) {
		return connector.Receipt{}, connector.Rejected(422, "no")
	},
	"drifted": func(context.Context, connector.Plan, connector.Call, func() error) (connector.Receipt, error) {
		return connector.Receipt{}, &connector.DriftedError{}
	},
	"unreadable": nil, // the read before the send fails
	"hangs":      nil, // see late
}

var modeNames = append(slices.Sorted(func(yield func(string) bool) {
	for name := range modes {
		if !yield(name) {
			return
		}
	}
}), "ok", "hangs", "hangs", "lost", "silent")

// late is a send that the target holds. resume lets it go on; what comes of it is chosen then.
type late struct {
	begun, resume chan struct{}
	mode          string
}

func newLate() *late { return &late{begun: make(chan struct{}), resume: make(chan struct{})} }

func (l *late) execute(_ context.Context, _ connector.Plan, _ connector.Call, do func() error) (connector.Receipt, error) {
	close(l.begun)
	<-l.resume
	switch l.mode {
	case "receipt":
		return receipt(do)
	case "lost":
		if err := do(); err != nil {
			return connector.Receipt{}, err
		}
		return connector.Receipt{}, errors.New("the reply was lost")
	case "refused":
		return connector.Receipt{}, connector.Rejected(422, "no")
	case "never left":
		return connector.Receipt{}, connector.NotSent(errors.New("never left after all"))
	}
	return connector.Receipt{}, errors.New("the run is over")
}

// held reports whether a change of the same target is under way or not known.
func (m *model) held(c *modelled) bool {
	return slices.ContainsFunc(m.changes, func(o *modelled) bool {
		return o != c && o.target == c.target && (o.status == commit.StatusUnknown || o.status == commit.StatusApplying)
	})
}

func (m *model) apply(t *rapid.T) {
	c, r := m.prefer(t, in(commit.StatusApproved)), m.replica(t)
	if who := m.caller(t); who.Subject != c.who.Subject && rapid.Bool().Draw(t, "a stranger") {
		_, err := r.commits.Apply(r.t.Context(), who, "text_change", c.p.ID, 0)
		wantFault(t, err, fault.NotFound)
		return
	}
	mode := rapid.SampledFrom(modeNames).Draw(t, "target")
	leaves := c.status == commit.StatusApproved && !m.held(c) && (c.version == m.versions[c.target] || mode == "unreadable")
	wait := contentWait
	if mode == "hangs" && leaves {
		c.late, wait = newLate(), 0
		r.target.script(c.late.execute)
	} else {
		r.target.script(modes[mode])
	}
	if mode == "unreadable" {
		r.target.reads(func(connector.Reading) (connector.Reading, error) {
			return connector.Reading{}, errors.New("no answer")
		})
	}
	if c.status == commit.StatusApplying {
		wait = 0
	}
	got, err := r.commits.Apply(r.t.Context(), c.who, "text_change", c.p.ID, wait)
	if c.late != nil && leaves {
		select {
		case <-c.late.begun:
		case <-time.After(20 * time.Second):
			t.Fatalf("nothing was sent: %s, %v", m.r.status(c.p.ID).Status, err)
		}
	}
	r.target.script(nil)
	r.target.reads(nil)
	switch {
	case c.status == commit.StatusNeedsApproval, c.status == commit.StatusPending:
		wantFault(t, err, fault.ApprovalRequired)
	case c.status != commit.StatusApproved:
		wantFault(t, err, "")
	case m.held(c):
		wantFault(t, err, fault.TargetBusy)
	case !leaves:
		wantFault(t, err, "")
		c.ends(commit.StatusNotApplied, "drifted")
	default:
		m.sent(t, c, mode, err)
	}
	if got.Status != c.status {
		t.Fatalf("apply said %s, want %s", got.Status, c.status)
	}
}

func (m *model) sent(t *rapid.T, c *modelled, mode string, err error) {
	var want fault.Code
	c.current = true
	switch mode {
	case "ok", "lost", "panics":
		m.takesPlace(c)
		c.status = commit.StatusApplied
		if mode != "ok" {
			c.status = commit.StatusUnknown
		}
	case "silent":
		c.status = commit.StatusUnknown
	case "never left", "unreadable":
		want = fault.TargetUnavailable
	case "refused", "drifted":
		c.ends(commit.StatusNotApplied, mode)
		c.answered = true
	case "hangs":
		c.status = commit.StatusApplying
	}
	wantFault(t, err, want)
}

func (m *model) takesPlace(c *modelled) {
	c.effects++
	m.versions[c.target]++
	m.texts[c.target] = c.text
}

// ends settles a change in the model. Proof of the effect after "not applied" is a contradiction.
func (c *modelled) ends(s commit.Status, reason string) {
	c.contradicted = c.contradicted || c.status == commit.StatusNotApplied && s == commit.StatusApplied
	c.status, c.reason, c.answered = s, reason, false
}

// lapse lets the lease of a send end that the target still holds, with or without a mark after it.
func (m *model) lapse(t *rapid.T) {
	c := m.pick(t, func(c *modelled) bool { return c.status == commit.StatusApplying })
	m.r.exec(`update executions set lease_until = clock_timestamp() - interval '1 s' where preview_id = $1`, c.p.ID.UUID())
	c.status = commit.StatusUnknown
	if rapid.Bool().Draw(t, "mark") {
		if _, err := m.replica(t).store.MarkLapsed(m.r.t.Context(), 100); err != nil {
			t.Fatal(err)
		}
	}
}

// resume lets the target go on with a send, whenever that is: in time, after the lease, after somebody has settled it.
func (m *model) resume(t *rapid.T) {
	c := m.pick(t, func(c *modelled) bool { return c.late != nil })
	m.resumeAs(c, rapid.SampledFrom([]string{"receipt", "receipt", "lost", "refused", "never left"}).Draw(t, "what comes of it"))
}

func (m *model) resumeAs(c *modelled, mode string) {
	l := c.late
	c.late, l.mode = nil, mode
	close(l.resume)
	m.r.await(`select not exists (select from attempts where preview_id = $1 and kind = 'send' and result is null)`, c.p.ID.UUID())
	unsettled := c.status == commit.StatusApplying || c.status == commit.StatusUnknown
	inTime := c.version == m.versions[c.target]
	switch {
	case mode == "never left" && c.status == commit.StatusApplying:
		c.status = commit.StatusApproved
	case mode == "never left" && unsettled:
		c.ends(commit.StatusNotApplied, "never_left")
	case mode == "refused", mode != "never left" && !inTime: // the target's precondition
		if c.current && unsettled {
			c.ends(commit.StatusNotApplied, "refused")
			c.answered = true
		}
	case mode == "lost":
		m.takesPlace(c)
		if c.status == commit.StatusApplying {
			c.status = commit.StatusUnknown
		}
	case mode == "receipt":
		m.takesPlace(c)
		c.ends(commit.StatusApplied, "")
	}
}

// settle lets the time pass after which "absent" proves something.
func (m *model) settle(t *rapid.T) {
	m.settleNow(m.pick(t, func(c *modelled) bool { return c.status == commit.StatusUnknown && !c.settled }))
}

func (m *model) settleNow(c *modelled) {
	m.r.settleNow(c.p.ID)
	c.settled = true
}

// cloud makes the target's look-ups tell nothing, or something again.
func (m *model) cloud(*rapid.T) {
	m.dumb = !m.dumb
	if m.dumb {
		m.r.target.looks(cannotTell)
	} else {
		m.r.target.looks(nil)
	}
}

// looked is what a look-up makes of a change.
func (c *modelled) looked(m *model) {
	if c.status == commit.StatusUnknown {
		c.current = false // the look fences off the sender
	}
	switch {
	case m.dumb:
	case c.effects > 0:
		c.ends(commit.StatusApplied, "")
	case c.status == commit.StatusUnknown && c.settled:
		c.ends(commit.StatusNotApplied, "looked_up")
	}
}

func (m *model) sweep(t *rapid.T) {
	m.r.exec(`update executions set next_probe_at = clock_timestamp() where state = 'unknown'`)
	if err := m.replica(t).commits.Sweep(m.r.t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range m.changes {
		if c.status == commit.StatusUnknown {
			c.looked(m)
		}
	}
}

// look is an operator's "look now", which may come after an outcome was settled, too.
func (m *model) look(t *rapid.T) { m.lookAt(t, m.prefer(t, (*modelled).worthALook)) }

func (m *model) lookAt(t *rapid.T, c *modelled) {
	_, err := m.replica(t).commits.Probe(m.r.t.Context(), operator("ito"), c.p.ID)
	if !c.worthALook() {
		wantFault(t, err, fault.Conflict)
		return
	}
	wantFault(t, err, "")
	c.looked(m)
}

func (c *modelled) worthALook() bool {
	return c.status == commit.StatusUnknown ||
		c.status == commit.StatusNotApplied && (c.reason == "looked_up" || c.reason == "resolved" || c.answered)
}

// resolve is an operator's word, right or wrong.
func (m *model) resolve(t *rapid.T) {
	m.resolveAs(t, m.prefer(t, in(commit.StatusUnknown)), rapid.Bool().Draw(t, "it happened"))
}

func (m *model) resolveAs(t *rapid.T, c *modelled, yes bool) {
	said := commit.Resolution{
		Key: commit.Key{ID: c.p.ID}, By: operator(rapid.SampledFrom([]string{"ito", "abe"}).Draw(t, "operator")), Applied: yes,
		Reason: "seen in the log", Evidence: "target log",
	}
	_, err := m.replica(t).commits.Resolve(m.r.t.Context(), said)
	if c.status == commit.StatusUnknown && !yes && !c.settled {
		wantFault(t, err, fault.Conflict) // too early
		return
	}
	if c.status == commit.StatusUnknown {
		c.looked(m)
	}
	word := commit.StatusNotApplied
	if yes {
		word = commit.StatusApplied
	}
	switch c.status {
	case commit.StatusUnknown: // the target could not tell
		c.stated = true
		c.ends(word, "resolved")
	case word: // the same again, or what the look has found
	default:
		wantFault(t, err, fault.Conflict)
		return
	}
	wantFault(t, err, "")
}

// overtake settles a change while the target still holds its send.
func (m *model) overtake(t *rapid.T) {
	c := m.pick(t, func(c *modelled) bool {
		return c.late != nil && (c.status == commit.StatusApplying || c.status == commit.StatusUnknown)
	})
	c.status = commit.StatusUnknown
	m.settleNow(c)
	if m.dumb {
		m.resolveAs(t, c, false)
	} else {
		m.sweep(t)
	}
}

// finish settles what is left: nothing is a dead end, and a look at what was called not applied finds what happened after all.
func (m *model) finish(t *rapid.T) {
	if m.dumb {
		m.cloud(t)
	}
	for _, c := range m.changes {
		if c.late != nil {
			m.resumeAs(c, "receipt")
		}
		if c.status == commit.StatusUnknown && !c.settled {
			m.settleNow(c)
		}
	}
	m.sweep(t)
	for _, c := range m.changes {
		if c.worthALook() {
			m.lookAt(t, c)
		}
		switch n := c.effects; {
		case c.status == commit.StatusUnknown, c.status == commit.StatusApplying:
			t.Fatalf("%s of %s is %s for ever", c.text, c.target, c.status)
		case c.status == commit.StatusApplied && n != 1 && !c.stated, c.status != commit.StatusApplied && n != 0:
			t.Fatalf("%s of %s ends %s with %d effects", c.text, c.target, c.status, n)
		}
	}
	m.check(t)
}

// release lets every send go that a run has left at the target.
func (m *model) release() {
	for _, c := range m.changes {
		if c.late != nil {
			close(c.late.resume)
		}
	}
	m.r.target.script(nil)
	m.r.target.reads(nil)
	m.r.target.looks(nil)
}

// TestAnyOrderOfCallsKeepsThePromise drives two replicas of the whole core, on Postgres, against the model.
func TestAnyOrderOfCallsKeepsThePromise(t *testing.T) {
	t.Parallel()
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		_ = checks.Value.Set("60") // lives; some ten seconds. Give -rapid.checks for more
	}
	r := newRig(t, unhurried, func(r *rig) {
		r.clocks.PreviewTTL, r.clocks.ApprovalFor, r.clocks.ApplyWindow = time.Hour, time.Hour, time.Hour
		r.clocks.LeaseFor, r.clocks.SettleFor = time.Hour, time.Microsecond
	})
	r.rules.by = byText
	hands := []*rig{r, r.replica()}
	run, seen := 0, map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		run++
		m := &model{r: r, hands: hands, run: run, versions: map[string]int{}, texts: map[string]string{}}
		defer m.release()
		t.Repeat(map[string]func(*rapid.T){
			"prepare": m.prepare, "prepare too": m.prepare, "undo": m.undo, "request": m.request, "vote": m.vote, "vote too": m.vote,
			"cancel": m.cancel, "expire": m.expire, "apply": m.apply, "apply too": m.apply, "and again": m.apply, "lapse": m.lapse, "overtake": m.overtake, "resume": m.resume,
			"settle": m.settle, "cloud": m.cloud, "sweep": m.sweep, "look": m.look, "resolve": m.resolve, "move": m.move,
			"": m.check,
		})
		m.finish(t)
		m.tally(seen)
	})
	t.Log(seen) // what the lives of this seed came to
}

func (m *model) tally(seen map[string]int) {
	for _, c := range m.changes {
		seen[string(c.status)+" "+c.reason]++
		for what, is := range map[string]bool{"contradicted": c.contradicted, "stated": c.stated, "undo": c.reverts != "", "vetoed": c.vetoed != ""} {
			if is {
				seen[what]++
			}
		}
	}
}
