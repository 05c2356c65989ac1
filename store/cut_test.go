package store_test

import (
	"context"
	"sync"
	"testing"

	"github.com/cutonce/cutonce/store"
)

// TestReadsOutliveACutOfEveryConnection: a server that restarts cuts all pooled connections at once, and a read that met a
// second broken one would be told of an outage that is over.
func TestReadsOutliveACutOfEveryConnection(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.prepare("a", "new")
	const conns = 6
	s := openPool(t, r.url, conns)
	load := func() {
		var readers sync.WaitGroup
		for range conns {
			readers.Go(func() {
				if _, _, err := s.Load(t.Context(), "acme", p.ID, false); err != nil {
					t.Errorf("a read after the cut: %v", err)
				}
			})
		}
		readers.Wait()
	}
	fill(t, s, conns)
	for range 5 {
		if _, err := r.pool.Exec(t.Context(), `select pg_terminate_backend(pid) from pg_stat_activity
			where datname = current_database() and application_name = 'cutonce' and pid <> pg_backend_pid()`); err != nil {
			t.Fatal(err)
		}
		load()
		fill(t, s, conns)
	}
}

// fill makes the pool hold all the connections that it may.
func fill(t *testing.T, s *store.Store, conns int32) {
	t.Helper()
	var readers sync.WaitGroup
	for s.Stat().TotalConns() < conns {
		for range 2 * conns {
			readers.Go(func() { _, _ = s.Now(context.WithoutCancel(t.Context())) })
		}
		readers.Wait()
	}
}
