package main

import (
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/target"
	"github.com/cutonce/cutonce/preview"
	"github.com/cutonce/cutonce/test/fleet"
)

// The budgets that rows ask for: small passes by policy, large needs an approver.
const (
	small = fleet.Budget + 1000
	large = 2 * fleet.Budget
)

// call is one under way.
type call struct {
	done  chan struct{}
	reply fleet.Reply
	err   error
}

func async(do func() (fleet.Reply, error)) *call {
	c := &call{done: make(chan struct{})}
	go func() { defer close(c.done); c.reply, c.err = do() }()
	return c
}

// answered waits for the answer.
func (w *world) answered(c *call) fleet.Reply {
	select {
	case <-c.done:
	case <-w.soon().Done():
		w.fail("a call was never answered")
	}
	w.must(c.err)
	return c.reply
}

// unheard wants that the caller never heard an answer, as of a process that was killed.
func (w *world) unheard(c *call) {
	select {
	case <-c.done:
	case <-w.soon().Done():
		w.fail("a call to a dead process never ended")
	}
	if c.err == nil {
		w.fail("got the answer %d %s %s of a process that was killed, want none", c.reply.HTTP, c.reply.Status, c.reply.Code)
	}
}

func (w *world) campaign() string {
	id, err := w.f.Campaign(w.ctx)
	w.must(err)
	return id
}

// prepared is a change that was answered.
func (w *world) prepared(yen int) *change { return w.preparedAt(w.campaign(), yen) }

func (w *world) preparedAt(campaign string, yen int) *change {
	r, err := w.agent().Prepare(w.ctx, campaign, yen, "")
	w.must(err)
	want(w, "preparing", r.HTTP, http.StatusCreated)
	return w.track(r, campaign)
}

// track remembers a change of which a caller was told.
func (w *world) track(r fleet.Reply, campaign string) *change {
	c := &change{id: r.PreviewID, campaign: campaign}
	w.changes = append(w.changes, c)
	c.digest = w.status(c).Change.Digest
	return c
}

// pending is a change that waits for approvers.
func (w *world) pending() *change {
	c := w.prepared(large)
	r, err := w.agent().Request(w.ctx, c.id)
	w.must(err)
	want(w, "asking for approval", r.Status, "pending")
	return c
}

func (w *world) status(c *change) fleet.Reply {
	r, err := w.agent().Status(w.ctx, c.id, 0)
	w.must(err)
	return r
}

// decide is a decision on what was shown.
func (w *world) decide(person, decision string, c *change) fleet.Reply {
	r, err := w.as(person).Decide(w.ctx, c.id, decision, c.digest)
	w.must(err)
	return r
}

func (w *world) applying(c *change) *call {
	agent := w.agent()
	return async(func() (fleet.Reply, error) { return agent.Apply(w.ctx, c.id) })
}

// apply applies, again where the answer says that nothing was sent and that it may be tried again: a busy machine can use up
// a short lease before the send.
func (w *world) apply(c *change) fleet.Reply {
	for {
		r, err := w.agent().Apply(w.ctx, c.id)
		w.must(err)
		if r.Code != "target_unavailable" || r.Retryable == nil || !*r.Retryable {
			return r
		}
	}
}

// fault tells the platform what goes wrong with the next request about a change.
func (w *world) fault(op target.Op, c *change, steps ...target.Step) {
	w.must(w.f.Ads.AddFault(w.ctx, target.Fault{Match: target.Match{Op: op, Resource: c.campaign}, Do: steps}))
}

// blind makes look-ups of a change hang until the function that it returns is called.
func (w *world) blind(c *change) (see func()) {
	gate := "look-ups of " + c.id
	w.must(w.f.Ads.AddFault(w.ctx, target.Fault{
		Match: target.Match{Op: target.OpLookup, Resource: c.campaign}, Times: target.Forever,
		Do: []target.Step{{Action: target.HoldBefore, Gate: gate}},
	}))
	return func() { w.must(w.f.Ads.Release(w.ctx, gate)) }
}

// arrived waits until the platform has come so far with a change.
func (w *world) arrived(stage target.Stage, c *change) {
	w.must(w.f.Ads.Wait(w.soon(), target.Event{Stage: stage, Match: target.Match{Op: target.OpChange, Resource: c.campaign}}, 1))
}

// tally is what the platform counted for a change.
func (w *world) tally(id string) target.Tally {
	key, err := w.f.Key(id)
	w.must(err)
	tally, err := w.f.Ads.CountersFor(w.ctx, key)
	w.must(err)
	return tally
}

// ending is how a change must end.
type ending struct {
	status       commit.Status
	reasons      []commit.Reason
	evidence     []commit.Evidence
	effects      int
	contradicted bool
}

// applied is an end with one effect, known by any of the kinds of evidence.
func applied(by ...commit.Evidence) ending {
	return ending{status: commit.StatusApplied, reasons: []commit.Reason{""}, evidence: by, effects: 1}
}

// notApplied is an end without an effect.
func notApplied(evidence commit.Evidence, because ...commit.Reason) ending {
	return ending{status: commit.StatusNotApplied, reasons: because, evidence: []commit.Evidence{evidence}}
}

// absent is what a look-up says of a send that never arrived.
var absent = notApplied(commit.ByLookup, commit.LookedUp)

// rests is a status of a change that was not applied at all.
func rests(s commit.Status) ending {
	return ending{status: s, reasons: []commit.Reason{""}, evidence: []commit.Evidence{""}}
}

// ends waits until the change has ended so, and fixes what it ended as: it must read the same from then on.
func (w *world) ends(c *change, e ending) {
	last := ""
	err := fleet.Until(w.soon(), "", func() bool {
		r, err := w.agent().Status(w.ctx, c.id, 0)
		if err == nil {
			last = r.Status
		}
		return err == nil && r.Status == string(e.status)
	})
	if err != nil {
		w.fail("change %s: got %s, want %s (evidence %v)", c.id, last, e.status, e.evidence)
	}
	w.reads(c)
	if !slices.Contains(e.evidence, c.evidence) || !slices.Contains(e.reasons, c.reason) ||
		c.effects != e.effects || c.contradicted != e.contradicted {
		w.fail("change %s: got %s, evidence %q, reason %q, contradicted %t, N=%d; want evidence %q, reason %q, contradicted %t, N=%d",
			c.id, c.status, c.evidence, c.reason, c.contradicted, c.effects, e.evidence, e.reasons, e.contradicted, e.effects)
	}
	c.ended = true
}

// reads fills in how a change stands now.
func (w *world) reads(c *change) {
	r := w.status(c)
	c.status, c.reason, c.evidence, c.contradicted = commit.Status(r.Status), "", "", false
	if o := r.Change.Outcome; o != nil {
		c.reason, c.evidence, c.contradicted = commit.Reason(o.Reason), commit.Evidence(o.Evidence), o.Contradicted
	}
	c.effects = w.tally(c.id).Effects
}

// lapses waits until a change's lease has ended, by the database's clock, and reads as unknown at once.
func (w *world) lapses(c *change) {
	w.becomes("the lease to lapse", `select lease_until <= clock_timestamp() from executions where preview_id = $1`, uuidOf(w, c.id))
}

func uuidOf(w *world, id string) uuid.UUID {
	parsed, ok := preview.ParseID(id)
	if !ok {
		w.fail("%q is no preview ID", id)
	}
	return parsed.UUID()
}

// soonEnough is how long after lease and sweep something may still be applying, on a machine that is busy.
const soonEnough = 5 * time.Second
