package main

import (
	"net/http"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/target"
	"github.com/cutonce/cutonce/internal/wire"
	"github.com/cutonce/cutonce/test/fleet"
)

func p1(w *world) {
	w.start(fleet.Replica{Stops: []string{"before-create"}})
	campaign, agent := w.campaign(), w.agent()
	lost := async(func() (fleet.Reply, error) { return agent.Prepare(w.ctx, campaign, small, "k1") })
	w.reached("before-create")
	w.recover()
	w.unheard(lost)
	want(w, "previews before the retry", w.number(`select count(*) from previews`), 0)
	r, err := w.agent().Prepare(w.ctx, campaign, small, "k1")
	w.must(err)
	want(w, "the retry", r.HTTP, http.StatusCreated)
	c := w.track(r, campaign)
	w.replays(c, "k1")
	want(w, "previews after the retries", w.number(`select count(*) from previews`), 1)
	w.ends(c, rests(commit.StatusApproved))
}

func p2(w *world) {
	w.start(fleet.Replica{Stops: []string{"after-create"}})
	campaign, agent := w.campaign(), w.agent()
	lost := async(func() (fleet.Reply, error) { return agent.Prepare(w.ctx, campaign, small, "k1") })
	w.reached("after-create")
	w.recover()
	w.unheard(lost)
	want(w, "previews before the retry", w.number(`select count(*) from previews`), 1)
	r, err := w.agent().Prepare(w.ctx, campaign, small, "k1")
	w.must(err)
	want(w, "the retry is a replay", r.Replayed, true)
	c := w.track(r, campaign)
	w.replays(c, "k1")
	r, err = w.agent().Prepare(w.ctx, campaign, small+1, "k1")
	w.must(err)
	want(w, "the key with another body", r.HTTP, http.StatusUnprocessableEntity)
	want(w, "the key with another body", r.Code, "idempotency_conflict")
	want(w, "previews after the retries", w.number(`select count(*) from previews`), 1)
	w.ends(c, rests(commit.StatusApproved))
}

// replays wants that preparing again with the key, and without one, gives the same preview.
func (w *world) replays(c *change, key string) {
	for _, k := range []string{key, ""} {
		r, err := w.agent().Prepare(w.ctx, c.campaign, small, k)
		w.must(err)
		want(w, "preparing again is a replay", r.Replayed, true)
		want(w, "preparing again", r.PreviewID, c.id)
	}
}

// The bodies of audit events mark statements on the way to Postgres, whose texts travel only once.
const (
	theRejection = `"approve":false`
	theClaim     = `,"digest":"`
	theRecord    = `,"detail":`
)

func a1(w *world) {
	proxy := w.proxied()
	w.start(fleet.Replica{Stops: []string{"after-decision"}})
	c, kim := w.pending(), w.as("kim")
	lost := async(func() (fleet.Reply, error) { return kim.Decide(w.ctx, c.id, "approve", c.digest) })
	w.reached("after-decision")
	w.recover()
	w.unheard(lost)
	again := w.decide("kim", "approve", c)
	want(w, "the decision repeated", again.HTTP, http.StatusOK)
	want(w, "the decision repeated", again.Status, "approved")
	want(w, "events of the approval", w.events(c, "approved"), 1)
	w.apply(c)
	w.ends(c, applied(commit.ByReceipt, commit.ByLookup))
	want(w, "a veto after the claim", w.decide("kim", "reject", c).Code, "in_progress")

	// The other decision, whose acknowledgement alone is lost.
	c = w.pending()
	fired := proxy.Arm(theRejection, wire.AfterItIsDone)
	want(w, "a decision without acknowledgement", w.decide("kim", "reject", c).Code, "internal")
	w.fired(fired)
	again = w.decide("kim", "reject", c)
	want(w, "the rejection repeated", again.HTTP, http.StatusOK)
	want(w, "the rejection repeated", again.Status, "rejected")
	want(w, "events of the rejection", w.events(c, "rejected"), 1)
	want(w, "an approval after the same person's rejection", w.decide("kim", "approve", c).Code, "conflict")
	w.ends(c, rests(commit.StatusRejected))

	c = w.pending()
	want(w, "approving", w.decide("kim", "approve", c).Status, "approved")
	want(w, "a veto before the claim", w.decide("kim", "reject", c).Status, "rejected")
	w.ends(c, rests(commit.StatusRejected))
}

func (w *world) events(c *change, kind string) int {
	return w.number(`select count(*) from audit_events where preview_id = $1 and kind = $2`, uuidOf(w, c.id), kind)
}

func (w *world) fired(fired chan struct{}) {
	select {
	case <-fired:
	case <-w.soon().Done():
		w.fail("the proxy never saw what it should cut off")
	}
}

// move is one of two things that are tried on a change at once.
type move func(c *change) *call

func (w *world) deciding(person, decision string, at *fleet.Process) move {
	return func(c *change) *call {
		caller := w.as(person).At(at)
		return async(func() (fleet.Reply, error) { return caller.Decide(w.ctx, c.id, decision, c.digest) })
	}
}

// race holds the change until both moves wait for it, in this order, and then lets them go.
func (w *world) race(c *change, first, second move) (fleet.Reply, fleet.Reply) {
	release := w.hold(c.id)
	a := first(c)
	w.blocked(1)
	b := second(c)
	w.blocked(2)
	release()
	return w.answered(a), w.answered(b)
}

func a2(w *world) {
	w.start(fleet.Replica{})
	here, there := w.first, w.second()
	approve, reject := w.deciding("kim", "approve", here), w.deciding("tanaka", "reject", there)

	c := w.pending()
	won, lost := w.race(c, approve, reject)
	want(w, "approve before a veto", won.HTTP, http.StatusOK)
	want(w, "a veto", lost.Status, "rejected")
	w.ends(c, rests(commit.StatusRejected))

	c = w.pending()
	won, lost = w.race(c, reject, approve)
	want(w, "reject before approve", won.Status, "rejected")
	want(w, "approve after reject", lost.Code, "conflict")
	want(w, "approve after reject is told who won", lost.Change.Status, "rejected")
	w.ends(c, rests(commit.StatusRejected))

	c = w.pending()
	_, lost = w.race(c, approve, w.deciding("tanaka", "approve", there))
	want(w, "a second approver", lost.Code, "conflict")
	want(w, "votes", w.number(`select count(*) from decisions where preview_id = $1`, uuidOf(w, c.id)), 1)
	want(w, "events of approval", w.events(c, "approved"), 1)
	w.a2Apply(c, reject)
	w.a2Expiry(approve)
}

// a2Apply: apply against a veto, in both orders, and before the approval.
func (w *world) a2Apply(c *change, reject move) {
	apply := move(w.applying)
	won, lost := w.race(c, apply, reject)
	want(w, "a veto after the claim", lost.Code, "in_progress")
	if won.Status != "approved" { // or a busy machine had used up the lease
		w.ends(c, applied(commit.ByReceipt, commit.ByLookup))
	} else {
		w.apply(c)
		w.ends(c, applied(commit.ByReceipt, commit.ByLookup))
	}

	c = w.pending()
	early, err := w.agent().Apply(w.ctx, c.id)
	w.must(err)
	want(w, "apply before the approval", early.Code, "approval_required")
	want(w, "approving", w.decide("kim", "approve", c).Status, "approved")
	_, lost = w.race(c, reject, apply)
	want(w, "apply after a veto", lost.Code, "rejected")
	w.ends(c, rests(commit.StatusRejected))
}

// a2Expiry: a decision that waits for its row until the change has expired is too late, whatever the sweeper does.
func (w *world) a2Expiry(approve move) {
	c := w.pending()
	w.expiresIn(c, "1 second")
	release := w.hold(c.id)
	late := approve(c)
	w.blocked(1)
	w.becomes("the deadline to pass", `select deadline <= clock_timestamp() from previews where id = $1`, uuidOf(w, c.id))
	release()
	want(w, "approve after the deadline", w.answered(late).Code, "expired")
	w.ends(c, rests(commit.StatusExpired))

	c = w.pending()
	w.expiresIn(c, "5 seconds")
	want(w, "approve before the deadline", w.decide("kim", "approve", c).Status, "approved")
	w.ends(c, rests(commit.StatusApproved))
}

// expiresIn moves a change's deadline, which nobody but the database's owner can do, and only with the guards off.
func (w *world) expiresIn(c *change, in string) {
	w.unguarded(`update previews set deadline = clock_timestamp() + $2::interval where id = $1`, uuidOf(w, c.id), in)
}

// unguarded writes with the schema's triggers off.
func (w *world) unguarded(sql string, args ...any) {
	tx, err := w.db.Begin(w.ctx)
	w.must(err)
	_, err = tx.Exec(w.ctx, `set local session_replication_role = replica`)
	w.must(err)
	tag, err := tx.Exec(w.ctx, sql, args...)
	w.must(err)
	w.must(tx.Commit(w.ctx))
	if tag.RowsAffected() == 0 {
		w.fail("nothing was written by %s", sql)
	}
}

func a3(w *world) {
	w.start(fleet.Replica{Stops: []string{"before-send"}, Env: roomy})
	// Between the last look and the write: the platform's own precondition refuses.
	c := w.approved()
	late := w.applying(c)
	w.reached("before-send")
	w.moveTarget(c, "123000")
	w.pass("before-send")
	want(w, "applying to a target that moved at the last moment", w.answered(late).Code, "drifted")
	w.ends(c, notApplied(commit.ByReceipt, commit.Drifted))

	c = w.approved()
	w.moveTarget(c, "123000")
	r := w.apply(c)
	want(w, "applying to a target that moved", r.Code, "drifted")
	want(w, "columns of the drift", len(r.Change.Outcome.Columns), 1)
	w.ends(c, notApplied(commit.NoneNeeded, commit.Drifted))

	// A plan that is not what was approved, as only the database's owner could forge it.
	c = w.approved()
	w.unguarded(`
		update previews set document = convert_to(replace(convert_from(document, 'UTF8'), '200000', '200001'), 'UTF8'),
			digest = sha256(convert_to(replace(convert_from(document, 'UTF8'), '200000', '200001'), 'UTF8')) where id = $1`, uuidOf(w, c.id))
	r = w.apply(c)
	want(w, "applying what was not approved", r.Code, "approval_required")
	want(w, "deciding on what was shown before", w.decide("kim", "approve", c).Code, "digest_mismatch")
	w.ends(c, rests(commit.StatusNeedsApproval))
}

// approved is a change that a person has approved.
func (w *world) approved() *change {
	c := w.pending()
	want(w, "approving", w.decide("kim", "approve", c).Status, "approved")
	return c
}

// moveTarget is somebody else's change of the campaign.
func (w *world) moveTarget(c *change, yen string) {
	_, err := w.f.Ads.EditCampaign(w.ctx, c.campaign, target.CampaignEdit{DailyBudget: yen})
	w.must(err)
}
