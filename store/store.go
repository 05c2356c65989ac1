// Package store keeps previews, approvals and executions in Postgres.
//
// Every change of state is one transaction in one round trip. The package decides nothing: each statement carries its guard,
// locks first and compares after, with the database's own clock, and ends in time (bounded.go). Lost races come back as the
// port's sentinel errors, broken connections as errors of their own. Start at claim.go and record.go.
//
// The planner is told the way to one change, because it keeps the plan that it made when the tables were still empty: every table is
// entered by the ID itself and not by a join, so that a primary key beats a scan from the first row on, and the tenant is compared by
// "is not distinct from", which no index serves, so that an index which begins with the tenant is never taken for the primary key. Nothing tells
// the planner by itself that an index is the wrong one while all are empty: the right one must be the only one.
package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/preview"
)

// Store is the three ports on one database.
type Store struct {
	pool bounded
	// worker is the same pool for what concerns no one tenant.
	worker bounded
	// reserve is a small pool for recording outcomes, so that a crowd of readers never keeps an outcome from being written.
	reserve bounded
	pooled  bool
	seen    recollection
}

var (
	_ preview.Store   = (*Store)(nil)
	_ approvals.Store = (*Store)(nil)
	_ commit.Store    = (*Store)(nil)
)

// Config says how to connect.
type Config struct {
	URL string
	// MaxConns bounds the main pool; zero means 16. Two more connections are kept for recording outcomes.
	MaxConns int32
	// Pooler says what stands between this process and Postgres.
	Pooler Pooler
	// Vet, if set, is asked of a connection each time that it is taken from a pool; an error keeps it from being used.
	Vet Vet
}

// Vet looks at a connection before it is used.
type Vet func(ctx context.Context, conn *pgx.Conn) error

const reserved = 2

// Open connects and checks that the server answers. It migrates nothing.
func Open(ctx context.Context, c Config) (*Store, error) {
	if c.MaxConns == 0 {
		c.MaxConns = 16
	}
	link, err := c.look(ctx)
	if err != nil {
		return nil, err
	}
	main, err := c.newPool(ctx, link, c.MaxConns)
	if err != nil {
		return nil, err
	}
	reserve, err := c.newPool(ctx, link, reserved)
	if err != nil {
		main.Close()
		return nil, err
	}
	return &Store{pool: bounded{pool: main}, worker: bounded{pool: main, worker: true}, reserve: bounded{pool: reserve}, pooled: link.pooled}, nil
}

// Close ends all connections.
func (s *Store) Close() {
	s.pool.pool.Close()
	s.reserve.pool.Close()
}

// Ping reports whether the database answers, to readers and to those who record outcomes.
func (s *Store) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	return passing(errors.Join(s.pool.pool.Ping(ctx), s.reserve.pool.Ping(ctx)))
}

// Pooled reports whether a connection pooler stands between, so that no statement stays prepared.
func (s *Store) Pooled() bool { return s.pooled }

// Stat is for metrics.
func (s *Store) Stat() *pgxpool.Stat { return s.pool.pool.Stat() }

// Now is the database's time.
func (s *Store) Now(ctx context.Context) (now time.Time, err error) {
	err = s.worker.queryRow(ctx, `select clock_timestamp()`, nil).Scan(&now)
	return now, err
}

// SQLSTATEs that are answers.
const (
	uniqueViolation = "23505"
	classShutdown   = "57P"
)

func violates(err error, constraint string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == uniqueViolation && pg.ConstraintName == constraint
}

// warned is the key under which a connection remembers that the server warned during the present transaction. A cancelled
// wait for the synchronous standby is told only so: the commit is local, and may be lost with this server.
const warned = "cutonce.warned"

func noteWarning(conn *pgconn.PgConn, n *pgconn.Notice) {
	if n.SeverityUnlocalized == "WARNING" {
		conn.CustomData()[warned] = true
	}
}

// inDoubt reports whether a failed transaction may have been committed all the same.
func inDoubt(err error) bool {
	if pgconn.SafeToRetry(err) {
		return false
	}
	var pg *pgconn.PgError
	return !errors.As(err, &pg) || len(pg.Code) == 5 && pg.Code[:3] == classShutdown
}

func missing(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return fault.New(fault.NotFound, nil)
	}
	return err
}

// repeats bounds how often a deadlock or serialization failure is repeated before it surfaces.
const repeats = 3

// again repeats f while the server says that repeating is right (serialization failure, deadlock): nothing was committed.
func again(ctx context.Context, f func() error) error {
	var err error
	for range repeats {
		err = f()
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != "40001" && pg.Code != "40P01" || ctx.Err() != nil {
			return err
		}
	}
	return err
}
