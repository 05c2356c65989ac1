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

// bounded is a pool whose statements end in time, and say first for whom they are: the tenant that their arguments name or, through
// the worker's, all of them (tenancy.go). The pool itself is for what is no statement.
type bounded struct {
	pool   *pgxpool.Pool
	worker bool
}

// queryRow reads one row, when it is scanned.
func (b bounded) queryRow(ctx context.Context, sql string, args pgx.NamedArgs) pgx.Row {
	return boundedRow{b: b, ctx: ctx, sql: sql, args: args}
}

type boundedRow struct {
	b    bounded
	ctx  context.Context
	sql  string
	args pgx.NamedArgs
}

// Scan reads the row.
func (r boundedRow) Scan(into ...any) error {
	return r.b.send(r.ctx, r.sql, r.args, func(results pgx.BatchResults) error { return results.QueryRow().Scan(into...) })
}

// exec runs one statement whose rows nobody reads.
func (b bounded) exec(ctx context.Context, sql string, args pgx.NamedArgs) error {
	return b.send(ctx, sql, args, func(results pgx.BatchResults) error {
		_, err := results.Exec()
		return err
	})
}

// send runs one statement in one round trip, within the bound.
func (b bounded) send(ctx context.Context, sql string, args pgx.NamedArgs, read func(pgx.BatchResults) error) error {
	begin, with, err := b.on(args)
	if err != nil {
		return err
	}
	return b.sendBatch(ctx, single(ctx, begin, with, sql, args), read)
}

// sendAll runs several statements in one round trip, within the bound.
func (b bounded) sendAll(ctx context.Context, queue func(*pgx.Batch), read func(pgx.BatchResults) error) error {
	batch, err := b.scoped(ctx, queue)
	if err != nil {
		return err
	}
	return b.sendBatch(ctx, batch, read)
}

func (b bounded) sendBatch(ctx context.Context, batch *pgx.Batch, read func(pgx.BatchResults) error) error {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	return passing(receive(b.pool.SendBatch(ctx, batch), read))
}

// receive reads the results of a batch behind its first statement, and ends it.
func receive(results pgx.BatchResults, read func(pgx.BatchResults) error) error {
	_, err := results.Exec()
	if err == nil {
		err = read(results)
	}
	if err2 := results.Close(); err == nil || errors.Is(err, pgx.ErrNoRows) && err2 != nil {
		err = err2
	}
	return err
}

// read reads one row, and once more if the first connection turned out to be broken.
func (b bounded) read(ctx context.Context, sql string, args pgx.NamedArgs, into ...any) error {
	return b.twice(ctx, func() error { return b.queryRow(ctx, sql, args).Scan(into...) })
}

// twice reads once more if the first connection turned out to be broken: after a restart of the server every pooled connection is, so
// they are all given up before the second time.
func (b bounded) twice(ctx context.Context, read func() error) error {
	err := read()
	var broken *passingError
	if errors.As(err, &broken) && ctx.Err() == nil {
		if broken.cut() {
			b.pool.Reset()
		}
		err = read()
	}
	return err
}

// collect reads all rows.
func collect[T any](ctx context.Context, b bounded, sql string, args pgx.NamedArgs, scan pgx.RowToFunc[T]) (list []T, err error) {
	err = b.send(ctx, sql, args, func(results pgx.BatchResults) (err error) {
		list, err = collected(results, scan)
		return err
	})
	return list, err
}

// collectPlanned reads all rows by a plan that is made for these very arguments: the way to a tenant's rare changes is not the way to
// another's many.
func collectPlanned[T any](ctx context.Context, b bounded, sql string, args pgx.NamedArgs, scan pgx.RowToFunc[T]) (list []T, err error) {
	tenant, err := tenantOf(args)
	if err != nil {
		return nil, err
	}
	batch := single(ctx, sqlAsTenantPlanned, []any{pgx.NamedArgs{"tenant": tenant}}, sql, args)
	err = b.sendBatch(ctx, batch, func(results pgx.BatchResults) (err error) {
		list, err = collected(results, scan)
		return err
	})
	return list, err
}

func collected[T any](results pgx.BatchResults, scan pgx.RowToFunc[T]) ([]T, error) {
	rows, err := results.Query()
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
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
