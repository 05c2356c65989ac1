package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/cutonce/cutonce/internal/target"
	"github.com/cutonce/cutonce/test/fleet"
)

// client runs one cycle after the other until the time is over, and ends the last one.
func (w *world) client(ctx context.Context, n int, over <-chan struct{}) {
	for i := 0; ; i++ {
		select {
		case <-over:
			return
		case <-ctx.Done():
			return
		default:
		}
		w.cycle(ctx, n, i, Plan(w.seed, n, i))
	}
}

// run is one cycle under way.
type run struct {
	w        *world
	client   int
	id, key  string
	campaign string
	digest   string
}

func (w *world) cycle(ctx context.Context, client, n int, c Cycle) {
	r := &run{w: w, client: client, campaign: w.campaigns.of(client, c.Campaign), key: fmt.Sprintf("soak-%d-%d-%d", w.seed, client, n)}
	if !r.prepare(ctx, c) {
		return
	}
	w.cycles.Add(1)
	r.disturb(ctx, c)
	pause(ctx, c.Wait)
	for _, stage := range c.Stages {
		if decides(stage) && r.digest == "" {
			r.look(ctx, stage[0].Replica)
		}
		var all sync.WaitGroup
		for _, a := range stage {
			all.Go(func() { r.act(ctx, a) })
		}
		all.Wait()
	}
}

// prepareTries is how often a prepare is repeated under its key; a replica that is down costs one.
const prepareTries = 30

// prepare repeats the call, through one replica after the other, until it is answered.
func (r *run) prepare(ctx context.Context, c Cycle) bool {
	for i := range prepareTries {
		a := c.Prepare
		a.Replica = (a.Replica + i) % replicas
		if i > 0 {
			a.Patience = 0
		}
		reply, err := r.call(ctx, a, func(ctx context.Context, who fleet.Caller) (fleet.Reply, error) {
			return who.Prepare(ctx, r.campaign, c.Yen, r.key)
		}, func(call *Call) { call.Yen = c.Yen })
		if err == nil && reply.HTTP < 500 {
			r.id = reply.PreviewID
			return r.id != ""
		}
		pause(ctx, 100*time.Millisecond)
	}
	return false
}

// disturb does what is to go wrong at the target.
func (r *run) disturb(ctx context.Context, c Cycle) {
	if c.Fault != nil {
		f := *c.Fault
		f.Resource = r.campaign
		if f.Do[0].Action == target.DuplicateDelivery {
			r.w.doubled.Store(r.campaign, true)
			r.w.doubles.Add(1)
		}
		_ = r.w.fleet.Ads.AddFault(ctx, f) // without it, the cycle is an undisturbed one
	}
	if c.Drift > 0 {
		_, _ = r.w.fleet.Ads.EditCampaign(ctx, r.campaign, target.CampaignEdit{DailyBudget: strconv.Itoa(c.Drift)})
	}
}

func decides(stage []Act) bool {
	for _, a := range stage {
		if a.Op == Approve || a.Op == Reject {
			return true
		}
	}
	return false
}

// look gets the digest that a decision carries.
func (r *run) look(ctx context.Context, replica int) {
	for i := range replicas {
		reply, err := r.call(ctx, Act{Op: Read, Who: approvers[0], Replica: (replica + i) % replicas}, r.status)
		if err == nil && reply.Change != nil {
			r.digest = reply.Change.Digest
			return
		}
	}
}

func (r *run) status(ctx context.Context, who fleet.Caller) (fleet.Reply, error) {
	return who.Status(ctx, r.id, 0)
}

func (r *run) act(ctx context.Context, a Act) {
	do := r.status
	switch a.Op {
	case Request:
		do = func(ctx context.Context, who fleet.Caller) (fleet.Reply, error) { return who.Request(ctx, r.id) }
	case Apply:
		do = func(ctx context.Context, who fleet.Caller) (fleet.Reply, error) { return who.Apply(ctx, r.id) }
	case Cancel:
		do = func(ctx context.Context, who fleet.Caller) (fleet.Reply, error) { return who.Cancel(ctx, r.id) }
	case Approve, Reject:
		if r.digest == "" {
			return // nobody could see what it is about
		}
		do = func(ctx context.Context, who fleet.Caller) (fleet.Reply, error) {
			return who.Decide(ctx, r.id, string(a.Op), r.digest)
		}
	}
	_, _ = r.call(ctx, a, do)
}

// call makes a call and writes it down. A client that has lost patience hangs up.
func (r *run) call(
	ctx context.Context, a Act, do func(context.Context, fleet.Caller) (fleet.Reply, error), more ...func(*Call),
) (fleet.Reply, error) {
	patience := longestCall
	if a.Patience > 0 {
		patience = a.Patience
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c := Call{Client: r.client, Preview: r.id, Key: r.key, Op: a.Op, Who: a.Who, Replica: a.Replica}
	for _, add := range more {
		add(&c)
	}
	return r.w.journal.ask(ctx, c, func(ctx context.Context) (fleet.Reply, error) { return do(ctx, r.w.at(a.Who, a.Replica)) })
}

func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
