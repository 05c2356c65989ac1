package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cutonce/cutonce/internal/target"
	"github.com/cutonce/cutonce/test/fleet"
)

// roundFor bounds one round.
const roundFor = 3 * time.Minute

// outcome is what a round came to.
type outcome struct {
	held            target.Action
	promoted, ready time.Duration
	changes         int
	applied, lost   int
	wrong           []string
}

func (o outcome) String() string {
	return fmt.Sprintf("%s; promoted %.1fs after the loss, every replica ready after %.1fs; %d changes, %d applied, %d lost", o.held,
		o.promoted.Seconds(), o.ready.Seconds(), o.changes, o.applied, o.lost)
}

// round loses the primary while one change is between its claim and its record, and others wherever they are.
func (r *rig) round(ctx context.Context, n int, chance *rand.Rand) (o outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, roundFor)
	defer cancel()
	if err := r.pair.follow(ctx); err != nil {
		return o, fmt.Errorf("making a standby: %w", err)
	}
	t := r.traffic(ctx, n)
	defer func() {
		changes, failed := t.end()
		err = errors.Join(err, errors.Join(failed...))
		if err == nil {
			err = r.judge(ctx, changes, &o)
		}
	}()
	for range 2 * callers {
		select {
		case <-t.settled:
		case <-ctx.Done():
			return o, fmt.Errorf("waiting for changes to flow: %w", ctx.Err())
		}
	}
	o.held = []target.Action{target.HoldAfter, target.HoldBefore}[n%2]
	release, err := r.hold(ctx, n, o.held, t)
	if err != nil {
		return o, fmt.Errorf("holding a send: %w", err)
	}
	return o, r.fail(ctx, chance, release, &o)
}

// restart starts one replica again on the new primary, where it compares the database with the witness: a promotion must not be
// taken for a restore from a backup, which would freeze applies.
func (r *rig) restart(ctx context.Context) error {
	r.replicas[1].Kill()
	again, err := r.fleet.Serve(ctx, r.replicas[1].Replica)
	if err != nil {
		return fmt.Errorf("starting a replica again after the promotion: %w", err)
	}
	r.replicas[1] = again
	said, _, err := r.fleet.Command(ctx, r.database, "restore", "status")
	if err == nil && said != "no restore was ever declared\n" {
		err = fmt.Errorf("the promotion was taken for a restore from a backup: %s", said)
	}
	return err
}

// hold has one change sent, and holds it at the target: between the claim and the record.
func (r *rig) hold(ctx context.Context, n int, how target.Action, t *traffic) (release func() error, err error) {
	campaign, err := r.fleet.Campaign(ctx)
	if err != nil {
		return nil, err
	}
	made, err := t.insist(ctx, n, "agent", func(ctx context.Context, who fleet.Caller) (fleet.Reply, error) {
		return who.Prepare(ctx, campaign, fleet.Budget+1, "")
	})
	if err != nil {
		return nil, err
	}
	c := &change{id: made.PreviewID, told: []string{"prepared"}, must: "applied"}
	gate := fmt.Sprintf("round-%d", n)
	if err := r.fleet.Ads.AddFault(ctx, target.Once(target.OpChange, campaign, target.Step{Action: how, Gate: gate})); err != nil {
		return nil, err
	}
	t.mu.Lock()
	t.changes = append(t.changes, c)
	t.mu.Unlock()
	t.running.Go(func() {
		if err := t.apply(ctx, n, c); err != nil {
			t.mu.Lock()
			t.failed = append(t.failed, err)
			t.mu.Unlock()
		}
	})
	held := target.Event{Stage: target.StageHeld, Match: target.Match{Resource: campaign}}
	return func() error { return r.fleet.Ads.Release(ctx, gate) }, r.fleet.Ads.Wait(ctx, held, 1)
}

// fail is the failover: the primary is gone, its standby takes over, the service finds it by itself.
func (r *rig) fail(ctx context.Context, chance *rand.Rand, release func() error, o *outcome) error {
	began := time.Now()
	if err := r.pair.lose(ctx); err != nil {
		return fmt.Errorf("losing the primary: %w", err)
	}
	if err := release(); err != nil {
		return err
	}
	pause(ctx, time.Duration(chance.Int64N(int64(time.Second))))
	if err := r.pair.promote(ctx); err != nil {
		return fmt.Errorf("promoting the standby: %w", err)
	}
	o.promoted = time.Since(began)
	for i, p := range r.replicas {
		if err := p.Ready(ctx); err != nil {
			return fmt.Errorf("replica %d does not find the new primary: %w", i, err)
		}
	}
	o.ready = time.Since(began)
	return r.restart(ctx)
}

// judge compares what was acknowledged with the new primary's tables and the target's counters.
func (r *rig) judge(ctx context.Context, changes []*change, o *outcome) error {
	counted, err := r.fleet.Ads.Counters(ctx)
	if err != nil {
		return err
	}
	conn, err := r.pair.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, c := range changes {
		key, err := r.fleet.Key(c.id)
		if err != nil {
			return err
		}
		stored, err := read(ctx, conn, c.id)
		if err != nil {
			return fmt.Errorf("reading %s: %w", c.id, err)
		}
		o.changes++
		if stored.status == "applied" {
			o.applied++
		}
		wrong, lost := stored.against(*c, counted.ByKey[key])
		o.wrong, o.lost = append(o.wrong, wrong...), o.lost+lost
	}
	return nil
}
