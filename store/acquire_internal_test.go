package store

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/pgtest"
	"github.com/cutonce/cutonce/migrations"
	"github.com/cutonce/cutonce/preview"
)

// Connections of the reserve that are lost for a while must not keep outcomes from being recorded.
func TestTheMainPoolHelpsOutTheReserve(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), Config{URL: pgtest.URL(t, pgtest.Migrated(migrations.FS, Migrate)), MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	for range reserved {
		conn, err := s.reserve.pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(conn.Release)
	}
	got := 0
	err = s.pipeline(t.Context(), bounded{pool: s.reserve.pool, worker: true}, func(b *pgx.Batch) { b.Queue(`select 7`) }, func(r pgx.BatchResults) error {
		return r.QueryRow().Scan(&got)
	})
	if err != nil || got != 7 {
		t.Errorf("got %d, %v, want the main pool's answer", got, err)
	}
}

// The time to send counts from the question, so the sender's last look must not queue behind a crowd of readers.
func TestTheLastLookBeforeASendHasTheReserve(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), Config{URL: pgtest.URL(t, pgtest.Migrated(migrations.FS, Migrate)), MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	for range 2 { // the crowd
		conn, err := s.pool.pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(conn.Release)
	}
	ctx, cancel := context.WithTimeout(t.Context(), longest/2)
	defer cancel()
	_, err = s.CheckLease(ctx, commit.Key{Tenant: "acme", ID: preview.NewID()}, uuid.New(), "", time.Second)
	if !errors.Is(err, fault.NotFound) {
		t.Errorf("got %v, want the database's answer that there is no such execution", err)
	}
}
