package store_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/pgtest"
)

// These tests have a server of their own, whose commits wait for a standby that does not exist. Cancelling such a wait commits
// here alone, and tells the client in no more than a warning: a failover would lose what was acknowledged.

// standbyRig is a rig on such a server. at is asked at the points of pauses_test.go.
func standbyRig(t *testing.T, at func(point string)) *rig {
	t.Helper()
	server := pgtest.NewServer(t)
	return newRig(t, unhurried, func(r *rig) { r.url, r.stop = server.URL(template()), at })
}

const standbyWait = `wait_event = 'SyncRep' and datname = current_database()`

// loseStandby makes every commit wait from now on.
func (r *rig) loseStandby() {
	r.t.Helper()
	r.exec(`alter system set synchronous_standby_names = 'nobody'`)
	r.exec(`select pg_reload_conf()`)
	// The setting is in force once a commit waits for it.
	for {
		done := make(chan error, 1)
		go func() {
			_, err := r.pool.Exec(context.Background(), `update policies set loaded_at = loaded_at`)
			done <- err
		}()
		for waits := false; !waits; {
			select {
			case err := <-done:
				if err != nil {
					r.t.Fatal(err)
				}
				waits = true // it did not: the next one may
			default:
				if r.scalar(&waits, `select exists (select from pg_stat_activity where `+standbyWait+`)`); waits {
					r.cancelWait()
					receive(r.t, done)
					return
				}
			}
		}
	}
}

// findStandby lets all that wait go on, with a clean acknowledgement.
func (r *rig) findStandby() {
	r.exec(`alter system reset synchronous_standby_names`)
	r.exec(`select pg_reload_conf()`)
	r.exec(`update policies set loaded_at = loaded_at`) // ends once the server has read the setting
}

// cancelWait cancels the next wait for the standby, as an operator or a timeout would, and returns when it has ended.
func (r *rig) cancelWait() {
	r.t.Helper()
	r.awaitStandbyWait()
	var pid int
	var begun time.Time
	r.scalar(&pid, `select pid from pg_stat_activity where `+standbyWait)
	r.scalar(&begun, `select xact_start from pg_stat_activity where pid = $1`, pid)
	r.exec(`select pg_cancel_backend($1)`, pid)
	r.await(`select not exists (select from pg_stat_activity where pid = $1 and xact_start = $2 and `+standbyWait+`)`, pid, begun)
}

func (r *rig) awaitStandbyWait() {
	r.t.Helper()
	r.await(`select exists (select from pg_stat_activity where ` + standbyWait + `)`)
}

// TestAClaimWithoutItsStandbyIsConfirmedBeforeItIsSent: nothing may leave while the claim is durable on one server only, however
// often the wait for the other is cut short.
func TestAClaimWithoutItsStandbyIsConfirmedBeforeItIsSent(t *testing.T) {
	t.Parallel()
	r := standbyRig(t, nil)
	var reads atomic.Int32
	r.target.reads(func(now connector.Reading) (connector.Reading, error) { reads.Add(1); return now, nil })
	p := r.prepare("a", "new")
	r.loseStandby()
	done := make(chan outcome, 1)
	go func() { c, err := r.apply(p); done <- outcome{err, c.Status} }()
	for range 3 { // the claim itself, then its confirmation, twice
		r.cancelWait()
	}
	r.awaitStandbyWait()
	if c := r.status(p.ID); c.Status != commit.StatusApplying || reads.Load() != 0 || r.target.total() != 0 {
		t.Errorf("got %s, the target read %d times, %d effects; want it claimed, and nothing said to the target", c.Status, reads.Load(), r.target.total())
	}
	r.findStandby()
	if got := receive(t, done); got.err != nil || got.status != commit.StatusApplied || r.target.total() != 1 {
		t.Errorf("got %s, %v, %d effects, want applied once", got.status, got.err, r.target.total())
	}
	if kinds := r.kinds(p.ID); len(kinds) != 3 || countOf(kinds, "claimed") != 1 {
		t.Errorf("got events %v, want prepared, claimed once, applied", kinds)
	}
}

// TestNoTransactionIsTrustedWithoutItsStandby cancels the wait of each transaction in turn.
func TestNoTransactionIsTrustedWithoutItsStandby(t *testing.T) {
	t.Parallel()
	var lose atomic.Pointer[func(string)]
	r := standbyRig(t, func(point string) {
		if f := lose.Load(); f != nil {
			(*f)(point)
		}
	})
	for _, tx := range transactions() {
		t.Run(tx.name, func(t *testing.T) {
			r := r.in(t)
			tx.run(r, func() chan struct{} {
				fired := make(chan struct{})
				var once sync.Once
				cancel := func(point string) {
					if point != tx.point {
						return
					}
					once.Do(func() {
						r.loseStandby()
						go func() {
							defer close(fired)
							r.cancelWait()
							r.findStandby()
						}()
					})
				}
				lose.Store(&cancel)
				cancel("")
				return fired
			})
		})
	}
}
