package store_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
	"github.com/cutonce/cutonce/store"
)

func openOutbox(t testing.TB, r *rig) *store.Outbox {
	t.Helper()
	o, err := store.OpenOutbox(t.Context(), store.Config{URL: r.url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Close)
	if err := o.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	return o
}

// keep is a hand that writes what it gets into a table of the test's, in the relay's transaction.
func (r *rig) keep() func(context.Context, pgx.Tx, []preview.Moved) error {
	r.t.Helper()
	r.exec(`create table if not exists kept (preview_id uuid, seq bigint, kind text)`)
	r.exec(`grant insert on kept to cutonce_worker`)
	return func(ctx context.Context, tx pgx.Tx, moved []preview.Moved) error {
		for _, m := range moved {
			if _, err := tx.Exec(ctx, `insert into kept values ($1, $2, $3)`, m.ID.UUID(), m.Seq, m.Kind); err != nil {
				return err
			}
		}
		return nil
	}
}

func (r *rig) kept() (kinds []string) {
	r.t.Helper()
	rows, err := r.pool.Query(r.t.Context(), `select kind from kept order by preview_id, seq`)
	if err == nil {
		kinds, err = pgx.CollectRows(rows, pgx.RowTo[string])
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return kinds
}

// relayUntil relays until n events are kept, or fails.
func (r *rig) relayUntil(n int, relay func() error) {
	r.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if err := relay(); err != nil {
			r.t.Fatal(err)
		}
		if got := r.kept(); len(got) >= n {
			return
		} else if time.Now().After(deadline) {
			r.t.Fatalf("got %v, want %d events", got, n)
		}
	}
}

func TestTwoReplicasMakeEachEventIntoDeliveriesOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	replicas := []*store.Outbox{openOutbox(t, r), openOutbox(t, r)}
	hand := r.keep()
	for _, id := range []string{"a", "b", "c"} {
		if _, err := r.apply(r.prepare(id, "new")); err != nil {
			t.Fatal(err)
		}
	}
	r.relayUntil(9, func() error {
		failed := make([]error, len(replicas))
		var both sync.WaitGroup
		for n, o := range replicas {
			both.Go(func() { _, failed[n] = o.Relay(t.Context(), 2, hand) })
		}
		both.Wait()
		return errors.Join(failed...)
	})
	want := slices.Repeat([]string{"prepared", "claimed", "applied"}, 3)
	if got := r.kept(); !slices.Equal(got, want) {
		t.Errorf("got %v, want each once: %v", got, want)
	}
}

// TestAHandThatFailsLosesNothing: the place and what is written move together, or neither.
func TestAHandThatFailsLosesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o, hand := openOutbox(t, r), r.keep()
	r.prepare("a", "new")
	crash := errors.New("the process ends here")
	r.relayUntil(0, func() error {
		if _, err := o.Relay(t.Context(), 10, func(ctx context.Context, tx pgx.Tx, moved []preview.Moved) error {
			return errors.Join(hand(ctx, tx, moved), crash)
		}); err != nil && !errors.Is(err, crash) {
			return err
		}
		return nil
	})
	if got := r.kept(); len(got) != 0 {
		t.Fatalf("got %v from a transaction that failed, want nothing", got)
	}
	r.relayUntil(1, func() error { _, err := o.Relay(t.Context(), 10, hand); return err })
	if got := r.kept(); !slices.Equal(got, []string{"prepared"}) {
		t.Errorf("got %v, want the event once", got)
	}
}

func TestWhatIsAboutToExpireIsTakenOncePerDeadline(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.rules.set(people(policy.Seats{AnyOf: []string{"leads"}, Count: 1}))
	o, hand := openOutbox(t, r), r.keep()
	p := r.prepare("a", "new")
	if _, err := r.approvals.Request(t.Context(), agent("bot"), p.ID, "please"); err != nil {
		t.Fatal(err)
	}
	scan := func() {
		t.Helper()
		if err := o.Expiring(t.Context(), "expiring", time.Hour, 10, hand); err != nil {
			t.Fatal(err)
		}
	}
	scan()
	if got := r.kept(); len(got) != 0 {
		t.Fatalf("got %v, want nothing before the last quarter of the time", got)
	}
	r.shiftDeadline(p.ID, 10*time.Second)
	scan()
	scan()
	if got := r.kept(); !slices.Equal(got, []string{"expiring"}) {
		t.Errorf("got %v, want it once", got)
	}
}

// shiftDeadline makes a pending change end so long from now, as if most of its time were over.
func (r *rig) shiftDeadline(id preview.ID, left time.Duration) {
	r.t.Helper()
	r.forging(func(tx pgx.Tx) error {
		_, err := tx.Exec(r.t.Context(), `
			update previews set deadline = clock_timestamp() + $2, requested_at = clock_timestamp() - interval '1 hour' where id = $1`,
			id.UUID(), left)
		return err
	})
}

// TestTheQueuesSchemaIsTheOneThatIsTested: a newer River brings tables that the migrations' comments, templates of test databases and
// doctor must know.
func TestTheQueuesSchemaIsTheOneThatIsTested(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	m, err := rivermigrate.New(riverpgxv5.New(r.pool), nil)
	if err != nil {
		t.Fatal(err)
	}
	all := m.AllVersions()
	if got := all[len(all)-1].Version; got != store.QueueVersion {
		t.Errorf("River's schema is at version %d, want %d: say so in a new migration and in store.QueueVersion", got, store.QueueVersion)
	}
	rows, err := r.pool.Query(t.Context(), `select relname from pg_class where relkind = 'r' and relname like 'river%' order by 1`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range tables {
		if !slices.Contains(store.OurTables(), table) {
			t.Errorf("%s is not known as ours", table)
		}
	}
	if len(tables) < 4 {
		t.Errorf("got River's tables %v, want more: is it migrated?", tables)
	}
	if pending, err := store.Pending(t.Context(), r.url); err != nil || pending {
		t.Errorf("got pending %v, %v, want a schema that is up to date", pending, err)
	}
	r.exec(`delete from river_migration where version = $1`, store.QueueVersion)
	if pending, err := store.Pending(t.Context(), r.url); err != nil || !pending {
		t.Errorf("got pending %v, %v, want River's tables seen to be behind", pending, err)
	}
}
