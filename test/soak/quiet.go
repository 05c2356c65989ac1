package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/internal/target"
	"github.com/cutonce/cutonce/test/fleet"
)

// settleWithin is how long the service may take, once nobody disturbs it any more, to settle or hand over all that is open.
const settleWithin = 60 * time.Second

// markedWithin is how long a lapsed lease may wait for a sweep on a busy machine.
const markedWithin = 5 * time.Second

// operator settles what was handed over, as the platform's own books have it, while everybody else goes on.
func (w *world) operator(ctx context.Context, over <-chan struct{}) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-over:
			return
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		_ = w.state(ctx, n%replicas) // a database that is away: next time
	}
}

const sqlHandedOver = `select preview_id from executions where state = 'unknown' and needs_operator and settle_at < clock_timestamp()`

// state says of everything that was handed over what the platform's books say.
func (w *world) state(ctx context.Context, replica int) error {
	ids, err := w.ids(ctx, sqlHandedOver)
	if err != nil {
		return err
	}
	for _, id := range ids {
		n, err := w.fleet.Effects(ctx, id)
		if err != nil {
			return err
		}
		said := notApplied
		if n > 0 {
			said = applied
		}
		r := &run{w: w, client: clients, id: id}
		_, _ = r.call(ctx, Act{Op: Resolve, Who: "oper", Replica: replica}, func(ctx context.Context, who fleet.Caller) (fleet.Reply, error) {
			return who.Resolve(ctx, id, said)
		}, func(c *Call) { c.Said = said })
	}
	return nil
}

func (w *world) ids(ctx context.Context, sql string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, longestCall)
	defer cancel()
	conn, err := pgx.Connect(ctx, w.database)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close(ctx) }()
	rows, err := conn.Query(ctx, sql)
	if err != nil {
		return nil, err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[[16]byte])
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(ids))
	for _, id := range ids {
		names = append(names, nameOf(id))
	}
	return names, nil
}

const (
	sqlOpen = `
select id from previews p left join executions e on e.preview_id = p.id
where p.state in ('needs_approval', 'pending', 'approved') or e.state in ('applying', 'unknown')`
	sqlStuck = `
select preview_id from executions where state = 'applying' and lease_until < clock_timestamp() - interval '5 seconds'`
	sqlFoundAbsent = `select preview_id from executions where state = 'not_applied' and reason in ('looked_up', 'resolved')`
	sqlAll         = `select id from previews`
)

// quiet returns when the target has nothing under way, nothing is open, and every "it did not happen" that rests on a look or on a
// word was looked at once more: what came late is contradicted openly by then, as it would be by the later looks by themselves.
func (w *world) quiet(ctx context.Context) error {
	if err := w.targetRests(ctx); err != nil {
		return err
	}
	if err := w.fleet.Ads.ClearFaults(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	for began := time.Now(); ; {
		if stuck, err := w.ids(ctx, sqlStuck); err == nil && len(stuck) > 0 && time.Since(began) > markedWithin {
			return fmt.Errorf("%v still count as applying, long after lease and sweep", stuck)
		}
		open, err := w.ids(ctx, sqlOpen)
		if err == nil && len(open) == 0 {
			break
		}
		if err := w.state(ctx, 0); ctx.Err() != nil {
			return fmt.Errorf("%d changes stay open (%v); last error %w", len(open), open, err)
		}
		pause(ctx, 100*time.Millisecond)
	}
	absent, err := w.ids(ctx, sqlFoundAbsent)
	if err != nil {
		return err
	}
	w.each(absent, func(i int, r *run) {
		_, _ = r.call(ctx, Act{Op: Probe, Who: "oper", Replica: i % replicas}, func(ctx context.Context, who fleet.Caller) (fleet.Reply, error) {
			return who.Do(ctx, "POST", "/v1/previews/"+r.id+"/probe", nil)
		})
	})
	return nil
}

// targetRests waits for requests that the target holds back. A doubled one arrives twice and ends once.
func (w *world) targetRests(ctx context.Context) error {
	counted, err := w.fleet.Ads.Counters(ctx)
	if err != nil {
		return err
	}
	waiting, err := w.fleet.Ads.Faults(ctx)
	if err != nil {
		return err
	}
	ends := counted.Total.Received - int(w.doubles.Load())
	for _, f := range waiting {
		if f.Do[0].Action == target.DuplicateDelivery {
			ends++
		}
	}
	if ends <= 0 {
		return nil
	}
	return w.fleet.Ads.Wait(ctx, target.Event{Stage: target.StageDone, Match: target.Match{Op: target.OpChange}}, ends)
}

// finally reads every change once more, as a caller.
func (w *world) finally(ctx context.Context) error {
	all, err := w.ids(ctx, sqlAll)
	if err != nil {
		return err
	}
	w.each(all, func(i int, r *run) {
		_, _ = r.call(ctx, Act{Op: Read, Who: approvers[0], Replica: i % replicas}, r.status)
	})
	return nil
}

// each runs through changes, a few at once.
func (w *world) each(ids []string, do func(i int, r *run)) {
	places := make(chan struct{}, perReplica)
	var all sync.WaitGroup
	for i, id := range ids {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			do(i, &run{w: w, client: clients, id: id})
		})
	}
	all.Wait()
}
