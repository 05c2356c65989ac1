package store_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/preview"
)

// hold locks a preview's row and does nothing else, as a reader that is about to change its mind would. release ends it.
func (r *rig) hold(id preview.ID) (release func()) {
	r.t.Helper()
	tx := r.begin()
	if _, err := tx.Exec(r.t.Context(), `select from previews where id = $1 for update`, id.UUID()); err != nil {
		r.t.Fatal(err)
	}
	return func() {
		r.t.Helper()
		if err := tx.Rollback(r.t.Context()); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *rig) begin() pgx.Tx {
	r.t.Helper()
	tx, err := r.pool.Begin(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = tx.Rollback(r.t.Context()) })
	return tx
}

// awaitBlocked waits until n sessions of the database wait for a lock.
func (r *rig) awaitBlocked(n int) {
	r.t.Helper()
	r.await(`select count(*) >= $1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`, n)
}

// awaitDeadline waits until the database's clock has passed a preview's deadline.
func (r *rig) awaitDeadline(id preview.ID) {
	r.t.Helper()
	r.await(`select clock_timestamp() > deadline from previews where id = $1`, id.UUID())
}

// awaitLapse waits until the database's clock has passed the lease.
func (r *rig) awaitLapse(id preview.ID) {
	r.t.Helper()
	r.await(`select clock_timestamp() >= lease_until from executions where preview_id = $1`, id.UUID())
}

// endLease lets a lease end now, however long it was.
func (r *rig) endLease(id preview.ID) {
	r.t.Helper()
	r.exec(`update executions set lease_until = clock_timestamp() where preview_id = $1`, id.UUID())
}

// awaitBlockedOr waits until a session waits for a lock, and is false if something is done before that.
func awaitBlockedOr[T any](r *rig, done chan T) bool {
	r.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		var blocked bool
		r.scalar(&blocked, `select exists (select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')`)
		if blocked || len(done) > 0 {
			return blocked
		}
		time.Sleep(5 * time.Millisecond) // polling with a deadline
	}
	r.t.Fatal("neither blocked nor done")
	return false
}

// await polls a condition, with a deadline.
func (r *rig) await(sql string, args ...any) {
	r.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		var ok bool
		if err := r.pool.QueryRow(r.t.Context(), sql, args...).Scan(&ok); err != nil && err != pgx.ErrNoRows {
			r.t.Fatalf("%s: %v", sql, err)
		}
		if ok {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("never true: %s", sql)
		}
		time.Sleep(5 * time.Millisecond) // polling with a deadline
	}
}

// receive waits for a signal, with a deadline.
func receive[T any](t testing.TB, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(20 * time.Second):
		t.Fatal("nothing came in 20 s")
		panic("unreachable")
	}
}

// shortly makes a preview's deadline come soon.
func (r *rig) shortly(id preview.ID, in time.Duration) {
	r.t.Helper()
	if got := r.sqlState(run(moveSQL("deadline = clock_timestamp() + $2::interval"), id.UUID(), in)); got != "" {
		r.t.Fatalf("moving a deadline: %s", got)
	}
}
