package store

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/internal/pgtest"
)

// Connections of the reserve that are lost for a while must not keep outcomes from being recorded.
func TestTheMainPoolHelpsOutTheReserve(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), Config{URL: pgtest.URL(t), MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	for range reserved {
		conn, err := s.reserve.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(conn.Release)
	}
	got := 0
	err = s.pipeline(t.Context(), s.reserve, func(b *pgx.Batch) { b.Queue(`select 7`) }, func(r pgx.BatchResults) error {
		return r.QueryRow().Scan(&got)
	})
	if err != nil || got != 7 {
		t.Errorf("got %d, %v, want the main pool's answer", got, err)
	}
}
