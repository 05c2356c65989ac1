package main

import (
	"sync"
	"sync/atomic"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/target"
	"github.com/cutonce/cutonce/test/fleet"
)

// roomy clocks leave a send the time that a restart of Postgres takes.
var roomy = []string{"CUTONCE_CLOCK_SEND=15s", "CUTONCE_CLOCK_LEASE=20s"}

func d1(w *world) {
	w.start(fleet.Replica{Stops: []string{"before-record"}, Env: roomy})
	prepared, stop := w.preparing()

	// The process lives through it.
	c := w.prepared(small)
	lived := w.applying(c)
	w.reached("before-record")
	w.must(w.f.Cluster.Kill(w.ctx))
	w.pass("before-record")
	w.says("recording an outcome failed")
	w.must(w.f.Cluster.Start(w.ctx))
	want(w, "an apply whose database died under it", w.answered(lived).Code, "", "outcome_unknown")
	w.ends(c, applied(commit.ByReceipt, commit.ByLookup))

	// It does not, and neither does Postgres: between claim and record both are gone.
	c = w.prepared(small)
	w.fault(target.OpChange, c, target.Step{Action: target.HoldAfter, Gate: c.id})
	lost := w.applying(c)
	w.arrived(target.StageEffect, c)
	stop()
	w.must(w.f.Cluster.Kill(w.ctx))
	w.first.Kill()
	w.must(w.f.Cluster.Start(w.ctx))
	w.must(w.f.Ads.Release(w.ctx, c.id))
	w.recover()
	w.unheard(lost)
	w.becomes("the claim to be there", `select count(*) = 1 from executions where preview_id = $1`, uuidOf(w, c.id))
	w.shortenLease(c)
	w.ends(c, applied(commit.ByLookup))
	if prepared.Load() == 0 {
		w.fail("nothing was prepared beside it")
	}
}

// shortenLease lets a lease end now, so that nobody has to wait for it.
func (w *world) shortenLease(c *change) {
	w.unguarded(`update executions set lease_until = least(lease_until, clock_timestamp()), settle_at = least(settle_at, clock_timestamp())
		where preview_id = $1`, uuidOf(w, c.id))
}

// preparing prepares changes all the time until stop is called. What was answered must be there in the end.
func (w *world) preparing() (answered *atomic.Int64, stop func()) {
	answered = &atomic.Int64{}
	agent, campaign := w.agent(), w.campaign()
	done := make(chan struct{})
	var running sync.WaitGroup
	var ids []string
	running.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case <-w.ctx.Done():
				return
			default:
			}
			if r, err := agent.Prepare(w.ctx, campaign, small+n, ""); err == nil && r.Code == "" {
				ids = append(ids, r.PreviewID)
				answered.Add(1)
			}
		}
	})
	return answered, func() {
		close(done)
		running.Wait()
		for _, id := range ids {
			c := &change{id: id, beside: true}
			w.changes = append(w.changes, c)
			w.ends(c, rests(commit.StatusApproved))
		}
	}
}
