package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
)

// unhurried is for tests with more to do than a busy machine does in the time of one send.
func unhurried(r *rig) { r.clocks.LeaseFor, r.clocks.SendFor = time.Minute, 30*time.Second }

// TestAThousandAppliesOfOneIDOverTwoReplicas: half of the callers do not wait and are told that it is being applied, while the
// target holds the one send; the other half are told its outcome. All of them share two small pools.
func TestAThousandAppliesOfOneIDOverTwoReplicas(t *testing.T) {
	t.Parallel()
	const callers = 1000
	here := newRig(t, unhurried)
	there := here.replica()
	begun, resume := here.target.stuck(receipt)
	p := here.prepare("a", "new")
	apply := func(i int, wait time.Duration, want commit.Status) {
		r := []*rig{here, there}[i%2]
		c, err := r.commits.Apply(t.Context(), agent("bot"), "text_change", p.ID, wait)
		if err != nil || c.Status != want || c.Preview.ID != p.ID {
			t.Errorf("caller %d: got %s of %s, %v, want %s of %s", i, c.Status, c.Preview.ID, err, want, p.ID)
		}
	}
	var hasty, patient sync.WaitGroup
	for i := range callers / 2 {
		patient.Go(func() { apply(i, commit.MaxWait, commit.StatusApplied) })
		hasty.Go(func() { apply(i, 0, commit.StatusApplying) })
	}
	receive(t, begun)
	hasty.Wait()
	var connections int
	here.scalar(&connections, `select count(*) from pg_stat_activity where datname = current_database() and application_name = 'cutonce'`)
	close(resume)
	patient.Wait()
	if most := 2 * (8 + 2); connections > most { // each store: its pool of eight, and the two for recording
		t.Errorf("got %d connections, want at most %d", connections, most)
	}
	c := here.status(p.ID)
	if got := here.target.total(); got != 1 || len(c.Attempts) != 1 || countOf(here.kinds(p.ID), "claimed") != 1 {
		t.Errorf("got %d effects, %d attempts, events %v, want one of each", got, len(c.Attempts), here.kinds(p.ID))
	}
}

// TestASmallPoolServesManyCallers: 64 callers share four connections, on every path that there is.
func TestASmallPoolServesManyCallers(t *testing.T) {
	t.Parallel()
	r := newRig(t, unhurried, func(r *rig) { r.conns = 4 })
	r.rules.by = byText
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			if err := r.wholeLife(t.Context(), i); err != nil {
				t.Errorf("caller %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	if got := r.target.total(); got != 16 {
		t.Errorf("got %d effects, want 16", got)
	}
}

// wholeLife takes a change, which it shares with the three callers of the same number modulo 16, through every call.
func (r *rig) wholeLife(ctx context.Context, i int) error {
	id := fmt.Sprint(i % 16)
	made, err := r.previews.Prepare(ctx, agent("bot"), preview.Request{Action: "text_change", Input: input(id, "1 lead"), Key: id})
	if err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	p := made.Preview
	if _, err := r.approvals.Request(ctx, agent("bot"), p.ID, "please"); err != nil {
		return fmt.Errorf("request: %w", err)
	}
	if _, err := r.approve(p, "kim"); err != nil && !errors.Is(err, fault.InProgress) {
		return fmt.Errorf("approve: %w", err)
	}
	c, err := r.apply(p)
	if err != nil || c.Status != commit.StatusApplied {
		return fmt.Errorf("apply: got %s, %w", c.Status, err)
	}
	if _, err := r.previews.Cancel(ctx, agent("bot"), p.ID, ""); !errors.Is(err, fault.InProgress) {
		return fmt.Errorf("cancel: got %w, want in_progress", err)
	}
	if err := r.commits.Sweep(ctx); err != nil {
		return fmt.Errorf("sweep: %w", err)
	}
	_, err = r.commits.Why(ctx, person("kim"), p.ID)
	return err
}

// TestNoPathTakesASecondConnection runs every path on a pool of one connection: who asks for another while holding it waits
// for itself.
func TestNoPathTakesASecondConnection(t *testing.T) {
	t.Parallel()
	r := newRig(t, hasty, func(r *rig) { r.conns = 1 })
	waitsForItself(t, r)
	p := r.pending("a", policy.Seats{AnyOf: []string{"leads"}, Count: 1})
	if _, err := r.approve(p, "kim"); err != nil {
		t.Fatal(err)
	}
	r.rules.set(people(policy.Seats{AnyOf: []string{"leads"}, Count: 2}))
	_, err := r.apply(p)
	wantCode(t, err, fault.ApprovalRequired) // sent back
	r.rules.set(automatic)
	if _, err := r.previews.Cancel(t.Context(), agent("bot"), p.ID, ""); err != nil {
		t.Error(err)
	}
	q := r.unknown("b")
	busy := r.prepareOther("b")
	_, err = r.apply(busy)
	wantCode(t, err, fault.TargetBusy)
	r.settleable(q.ID)
	if c, err := r.commits.Resolve(t.Context(), didNot(q.ID)); err != nil || c.Status != commit.StatusNotApplied {
		t.Errorf("resolve: got %s, %v", c.Status, err)
	}
	if c, err := r.apply(busy); err != nil || c.Status != commit.StatusApplied {
		t.Errorf("apply: got %s, %v", c.Status, err)
	}
	if _, err := r.commits.Why(t.Context(), person("kim"), p.ID); err != nil {
		t.Error(err)
	}
	if _, _, _, err := r.approvals.Queue(t.Context(), person("kim", "leads"), approvals.Page{}); err != nil {
		t.Error(err)
	}
	if _, _, err := r.commits.List(t.Context(), agent("bot"), commit.Filter{}); err != nil {
		t.Error(err)
	}
	r.target.script(func(context.Context, connector.Plan, connector.Call, func() error) (connector.Receipt, error) {
		return connector.Receipt{}, connector.NotSent(errors.New("refused"))
	})
	_, err = r.apply(r.prepare("c", "new"))
	wantCode(t, err, fault.TargetUnavailable)
}

// waitsForItself shows the trap: a transaction on a pool of one that takes a second connection.
func waitsForItself(t *testing.T, r *rig) {
	t.Helper()
	config := r.pool.Config()
	config.MaxConns = 1
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	err = pgx.BeginFunc(ctx, pool, func(pgx.Tx) error {
		_, err := pool.Exec(ctx, `select 1`)
		return err
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the naive transaction got %v; it was expected to wait for itself", err)
	}
}
