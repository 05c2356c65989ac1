package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// longest bounds every statement. A connection that says nothing for so long is given up, so that two hung connections cannot
// keep a process from recording, and a caller never waits for a database for ever. What a cut-off write did is asked again by
// those who must know (see pipeline).
const longest = 5 * time.Second

// bounded is a pool whose statements end in time.
type bounded struct{ *pgxpool.Pool }

// QueryRow is pgxpool's, within the bound, which ends with Scan.
func (b bounded) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	sql, args = positional(ctx, sql, args)
	ctx, cancel := context.WithTimeout(ctx, longest)
	return boundedRow{row: b.Pool.QueryRow(ctx, sql, args...), cancel: cancel}
}

type boundedRow struct {
	row    pgx.Row
	cancel context.CancelFunc
}

// Scan reads the row.
func (r boundedRow) Scan(into ...any) error {
	defer r.cancel()
	return passing(r.row.Scan(into...))
}

// Exec is pgxpool's, within the bound.
func (b bounded) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	tag, err := b.Pool.Exec(ctx, sql, args...)
	return tag, passing(err)
}

// read reads one row, and once more if the first connection turned out to be broken: after a restart of the server every
// pooled connection is, so they are all given up before the second time.
func (b bounded) read(ctx context.Context, sql string, args pgx.NamedArgs, into ...any) error {
	err := b.QueryRow(ctx, sql, args).Scan(into...)
	var broken *passingError
	if errors.As(err, &broken) && ctx.Err() == nil {
		if broken.cut() {
			b.Reset()
		}
		err = b.QueryRow(ctx, sql, args).Scan(into...)
	}
	return err
}

// collect reads all rows.
func collect[T any](ctx context.Context, b bounded, sql string, args pgx.NamedArgs, scan pgx.RowToFunc[T]) ([]T, error) {
	return collectAs(ctx, b, pgx.QueryExecModeCacheStatement, sql, args, scan)
}

// collectPlanned reads all rows by a plan that is made for these very arguments: the way to a tenant's rare changes is not the way to
// another's many.
func collectPlanned[T any](ctx context.Context, b bounded, sql string, args pgx.NamedArgs, scan pgx.RowToFunc[T]) ([]T, error) {
	return collectAs(ctx, b, pgx.QueryExecModeCacheDescribe, sql, args, scan)
}

func collectAs[T any](
	ctx context.Context, b bounded, mode pgx.QueryExecMode, sql string, args pgx.NamedArgs, scan pgx.RowToFunc[T],
) ([]T, error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	rows, err := b.Query(ctx, sql, mode, args)
	if err != nil {
		return nil, passing(err)
	}
	list, err := pgx.CollectRows(rows, scan)
	return list, passing(err)
}

// passingError is a database that cannot be reached for the moment. It says that trying again later is right, which holds for
// every call of this package: reads have no effect, and writes are guarded or remembered.
type passingError struct{ err error }

// cut reports whether the connection is gone, rather than slow or refused.
func (e *passingError) cut() bool {
	var pg *pgconn.PgError
	if errors.As(e.err, &pg) {
		return pg.Code[:3] == classShutdown
	}
	return !errors.Is(e.err, context.DeadlineExceeded) && !errors.Is(e.err, context.Canceled)
}

// Error is for logs.
func (e *passingError) Error() string { return e.err.Error() }

// Unwrap gives the cause.
func (e *passingError) Unwrap() error { return e.err }

// Passing is what fault.From asks.
func (e *passingError) Passing() bool { return true }

// passing marks an error of the connection, or of a server that is going down, coming up or full.
func passing(err error) error {
	var pg *pgconn.PgError
	switch {
	case err == nil, errors.Is(err, pgx.ErrNoRows), errors.Is(err, pgx.ErrTooManyRows):
		return err
	case errors.As(err, &pg) && !(pg.Code[:2] == "08" || pg.Code[:2] == "53" || pg.Code[:3] == classShutdown):
		return err
	}
	var scan pgx.ScanArgError
	if errors.As(err, &scan) {
		return err
	}
	return &passingError{err: err}
}
