package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cutonce/cutonce/test/fleet"
)

const sqlCancelWaits = `select count(pg_cancel_backend(pid)) from pg_stat_activity where wait_event = 'SyncRep'`

// doubt is a claim whose commit waits for a standby that is gone, until the wait is cancelled: the server then calls it committed,
// and it is so on this server only. Nothing may be sent on it, and when the server is lost too, the claim is.
func (r *rig) doubt(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, roundFor)
	defer cancel()
	if err := r.pair.follow(ctx); err != nil {
		return fmt.Errorf("making a standby: %w", err)
	}
	campaign, err := r.fleet.Campaign(ctx)
	if err != nil {
		return err
	}
	agent := r.at("agent", 0)
	made, err := agent.Prepare(ctx, campaign, fleet.Budget+1, "")
	if err != nil || made.Status != "approved" {
		return fmt.Errorf("got %d %s (%w), want an approved change", made.HTTP, made.Status, err)
	}
	if err := r.pair.standby.Crash(ctx); err != nil {
		return err
	}
	if err := r.applyInDoubt(ctx, agent, made.PreviewID); err != nil {
		return err
	}
	key, err := r.fleet.Key(made.PreviewID)
	if err != nil {
		return err
	}
	if seen, err := r.fleet.Ads.CountersFor(ctx, key); err != nil || seen.Received > 0 {
		return fmt.Errorf("the target received it %d times (%w), want nothing sent on a commit in doubt", seen.Received, err)
	}
	if err := errors.Join(r.pair.lose(ctx), r.pair.standby.Start(ctx), r.pair.promote(ctx)); err != nil {
		return err
	}
	for i, p := range r.replicas {
		if err := p.Ready(ctx); err != nil {
			return fmt.Errorf("replica %d does not find the new primary: %w", i, err)
		}
	}
	return r.afterDoubt(ctx, agent, made.PreviewID, key)
}

// applyInDoubt applies, and cancels every wait for the standby until the service has given up.
func (r *rig) applyInDoubt(ctx context.Context, agent fleet.Caller, id string) error {
	type answer struct {
		reply fleet.Reply
		err   error
	}
	answered := make(chan answer, 1)
	go func() {
		reply, err := agent.Apply(ctx, id)
		answered <- answer{reply, err}
	}()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for cancelled := 0; ; {
		select {
		case a := <-answered:
			switch {
			case cancelled == 0:
				return fmt.Errorf("got %d %s before a wait was cancelled: the commit did not wait for its standby", a.reply.HTTP, a.reply.Status)
			case a.err == nil && (a.reply.Status == "applied" || a.reply.Code == "outcome_unknown"):
				return fmt.Errorf("got %d %s %s of a claim in doubt, want nothing sent", a.reply.HTTP, a.reply.Code, a.reply.Status)
			}
			return nil
		case <-tick.C:
		}
		var n int
		if err := r.pair.ask(ctx, sqlCancelWaits, &n); err != nil {
			return err
		}
		cancelled += n
	}
}

// afterDoubt: the new primary knows no claim; the change is applied as if nothing had been, once.
func (r *rig) afterDoubt(ctx context.Context, agent fleet.Caller, id, key string) error {
	now, err := agent.Status(ctx, id, 0)
	if err != nil || now.Status != "approved" {
		return fmt.Errorf("got %d %s (%w) after the claim was lost with its server, want it approved", now.HTTP, now.Status, err)
	}
	done, err := agent.Apply(ctx, id)
	if err != nil || done.Status != "applied" {
		return fmt.Errorf("got %d %s %s (%w), want it applied", done.HTTP, done.Code, done.Status, err)
	}
	if seen, err := r.fleet.Ads.CountersFor(ctx, key); err != nil || seen.Effects != 1 || seen.Received != 1 {
		return fmt.Errorf("got %+v (%w), want one effect", seen, err)
	}
	return nil
}
