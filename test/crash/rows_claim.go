package main

import (
	"context"
	"net/http"
	"time"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/target"
	"github.com/cutonce/cutonce/internal/wire"
	"github.com/cutonce/cutonce/test/fleet"
)

func c1(w *world) {
	w.startBoth(fleet.Replica{}, true)
	c := w.prepared(small)
	var calls []*call
	for i := range 40 {
		agent := w.agent()
		if i%2 == 1 {
			agent = agent.At(w.other)
		}
		calls = append(calls, async(func() (fleet.Reply, error) { return agent.Apply(w.ctx, c.id) }))
	}
	for _, call := range calls {
		r := w.answered(call)
		want(w, "an apply among many", r.Status, "applied", "unknown")
	}
	w.ends(c, applied(commit.ByReceipt, commit.ByLookup))
	want(w, "claims", w.events(c, "claimed"), 1)
	want(w, "sends", w.sends(c), 1)
	want(w, "requests at the platform", w.tally(c.id).Received, 1)
}

func (w *world) sends(c *change) int {
	return w.number(`select count(*) from attempts where preview_id = $1 and kind = 'send'`, uuidOf(w, c.id))
}

func c2(w *world) {
	w.start(fleet.Replica{Stops: []string{"before-claim"}})
	c := w.prepared(small)
	lost := w.applying(c)
	w.reached("before-claim")
	w.recover()
	w.unheard(lost)
	want(w, "the status after the crash", w.status(c).Status, "approved")
	want(w, "requests at the platform", w.tally(c.id).Received, 0)
	want(w, "claims", w.events(c, "claimed"), 0)
	want(w, "somebody else's apply", w.apply(c).Status, "applied", "unknown")
	w.ends(c, applied(commit.ByReceipt, commit.ByLookup))
}

// longLease is one in which a commit can hang for a while.
var longLease = []string{"CUTONCE_CLOCK_LEASE=6s"}

func c3(w *world) {
	proxy := w.proxied()
	w.onClose(w.noStandby)
	w.start(fleet.Replica{Stops: []string{"before-confirm"}, Env: longLease})

	// Committed here, but not at the standby that does not exist; the wait for it is cancelled; then the process dies in doubt.
	c := w.prepared(small)
	w.standby("'nowhere'")
	lost := w.applying(c)
	w.cancelWait()
	w.reached("before-confirm")
	w.standby("''")
	w.recover()
	w.unheard(lost)
	want(w, "the status in doubt", w.status(c).Status, "applying", "unknown")
	w.free()
	w.ends(c, absent)
	want(w, "requests at the platform", w.tally(c.id).Received, 0)

	// The same, and the process lives: it sends once a second write was acknowledged, and not before.
	c = w.prepared(small)
	w.standby("'nowhere'")
	doubted := w.applying(c)
	w.cancelWait()
	w.becomes("the second write to wait", sqlWaits, confirming)
	want(w, "requests at the platform while in doubt", w.tally(c.id).Received, 0)
	w.standby("''")
	want(w, "an apply whose doubt was settled", w.answered(doubted).Status, "applied", "unknown")
	w.ends(c, applied(commit.ByReceipt, commit.ByLookup))

	// The acknowledgement is lost on its way.
	c = w.prepared(small)
	fired := proxy.Arm(theClaim, wire.AfterItIsDone)
	want(w, "an apply whose claim was not acknowledged", w.apply(c).Status, "applied", "unknown")
	w.fired(fired)
	w.ends(c, applied(commit.ByReceipt, commit.ByLookup))
	want(w, "sends", w.sends(c), 1)
}

// standby names the standby that commits wait for.
func (w *world) standby(name string) {
	w.exec(`alter system set synchronous_standby_names = ` + name)
	w.exec(`select pg_reload_conf()`)
	w.becomes("the new setting to be in force", `select current_setting('synchronous_standby_names') = `+name)
}

// noStandby ends what standby began, however the row has ended.
func (w *world) noStandby() {
	for _, sql := range []string{`alter system reset synchronous_standby_names`, `select pg_reload_conf()`} {
		_, _ = w.db.Exec(context.WithoutCancel(w.ctx), sql)
	}
}

// sqlWaits asks whether one session waits for its standby, in a statement that begins so: Postgres shows the first kilobyte.
const (
	sqlWaits   = `select count(*) = 1 from pg_stat_activity where datname = current_database() and wait_event = 'SyncRep' and query like $1`
	claiming   = "%freeze_epoch%"
	confirming = "%set claimed_by = e.claimed_by%"
)

// cancelWait cancels the claim's wait for its standby.
func (w *world) cancelWait() {
	w.becomes("the claim to wait for its standby", sqlWaits, claiming)
	w.exec(`select pg_cancel_backend(pid) from pg_stat_activity
		where datname = current_database() and wait_event = 'SyncRep' and query like $1`, claiming)
}

func c4(w *world) {
	w.start(fleet.Replica{Stops: []string{"after-claim", "before-send"}})
	early, late := w.prepared(small), w.prepared(small)
	lost := []*call{w.applying(early)}
	w.reached("after-claim")
	lost = append(lost, w.applying(late))
	w.reached("before-send")
	w.recover()
	for _, call := range lost {
		w.unheard(call)
	}
	for _, c := range []*change{early, late} {
		w.lapses(c)
		w.unsettled(c)
	}
	w.free()
	for _, c := range []*change{early, late} {
		w.ends(c, absent)
		want(w, "requests at the platform", w.tally(c.id).Received, 0)
		want(w, "sends", w.sends(c), 1)
		want(w, "settled after its time", w.number(
			`select count(*) from executions where preview_id = $1 and finished_at >= settle_at`, uuidOf(w, c.id)), 1)
	}
	// The target is free again, for a change of its own.
	again := w.preparedAt(late.campaign, small)
	want(w, "another change of the target", w.apply(again).Status, "applied", "unknown")
	w.ends(again, applied(commit.ByReceipt, commit.ByLookup))
}

// unsettled: a lapsed change reads as unknown at once, nobody applies it again, and it holds its own target.
func (w *world) unsettled(c *change) {
	r, err := w.agent().Apply(w.ctx, c.id)
	w.must(err)
	want(w, "applying what has lapsed", r.Code, "outcome_unknown", "target_refused", "")
	if r.Status == "not_applied" {
		return // a busy machine: it has been looked up by now
	}
	want(w, "the status after the lease", r.Status, "unknown")
	want(w, "next", r.Next, "check_status")
}

func c5(w *world) {
	front := w.tlsFront()
	w.start(fleet.Replica{Stops: []string{"before-send"}, Target: front.url, Env: front.env})

	// The platform no longer speaks TLS when it comes to the send.
	c := w.prepared(small)
	refused := w.applying(c)
	w.reached("before-send")
	front.refuse.Store(true)
	w.pass("before-send")
	w.neverLeft(w.answered(refused))
	front.refuse.Store(false)
	want(w, "applying again", w.apply(c).Status, "applied", "unknown")
	w.ends(c, applied(commit.ByReceipt, commit.ByLookup))
	w.c5Refused()
	w.c5Cut()
}

func (w *world) neverLeft(r fleet.Reply) {
	want(w, "a send that never left", r.HTTP, http.StatusServiceUnavailable)
	want(w, "a send that never left", r.Code, "target_unavailable")
	want(w, "the status after a send that never left", r.Status, "approved")
	want(w, "it may be tried again", r.Retryable != nil && *r.Retryable, true)
}

// c5Refused: nobody listens where the platform was, and a name that nobody knows.
func (w *world) c5Refused() {
	proxy, through, err := wire.Through(w.f.Ads.BaseURL)
	w.must(err)
	w.onClose(proxy.Close)
	gone := w.launch(fleet.Replica{Database: w.database, Target: through, Stops: []string{"before-send"}})
	nameless := w.launch(fleet.Replica{
		Database: w.database, Target: "http://ads.invalid", Env: []string{"CUTONCE_ADS_ALLOW_PLAIN_HTTP=true"},
	})
	w.must(gone.Ready(w.ctx))
	w.must(nameless.Ready(w.ctx))

	c := w.prepared(small)
	agent := w.agent().At(gone)
	refused := async(func() (fleet.Reply, error) { return agent.Apply(w.ctx, c.id) })
	w.must(gone.Reached(w.soon(), "before-send"))
	proxy.Close()
	w.must(gone.Pass("before-send"))
	w.neverLeft(w.answered(refused))
	r, err := w.agent().At(nameless).Apply(w.ctx, c.id)
	w.must(err)
	w.neverLeft(r)
	// Blind replicas would use up the looks that an unknown outcome gets before it is the operators'.
	gone.Kill()
	nameless.Kill()
	want(w, "requests at the platform", w.tally(c.id).Received, 0)
	want(w, "applying where there is a platform", w.apply(c).Status, "applied", "unknown")
	w.ends(c, applied(commit.ByReceipt, commit.ByLookup))
}

// c5Cut: once a byte may have left, nothing but a look tells what became of it.
func (w *world) c5Cut() {
	proxy, through, err := wire.Through(w.f.Ads.BaseURL)
	w.must(err)
	w.onClose(proxy.Close)
	cut := w.launch(fleet.Replica{Database: w.database, Target: through})
	w.must(cut.Ready(w.ctx))
	for _, tc := range []struct {
		at  wire.Cut
		end ending
	}{{wire.BeforeTheServer, absent}, {wire.WhileItWorks, applied(commit.ByLookup)}} {
		c := w.prepared(small)
		see := w.blind(c)
		if tc.at == wire.WhileItWorks { // and the answer does not overtake the cut
			w.fault(target.OpChange, c, target.Step{Action: target.HoldAfter, Gate: c.id})
		}
		fired := proxy.Arm("PATCH /v1/campaigns/"+c.campaign, tc.at)
		r, err := w.agent().At(cut).Apply(w.ctx, c.id)
		w.must(err)
		w.fired(fired)
		want(w, "an apply that was cut off", r.Code, "outcome_unknown")
		if tc.end.effects == 1 {
			w.arrived(target.StageEffect, c)
			w.must(w.f.Ads.Release(w.ctx, c.id))
		}
		see()
		w.ends(c, tc.end)
	}
	cut.Kill()
}

// shortly bounds what would otherwise be waited for in vain.
const shortly = 10 * time.Second
