package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Two roles do all the work, whatever the login is (migrations/00014_tenants.sql, docs/adr/0010-two-walls.md). cutonce_app sees and
// writes the rows of one tenant, which row-level security tells by the setting cutonce.tenant; cutonce_worker is for what concerns no
// one tenant: sweeps, seals, policies, restores. Both are taken for the length of a transaction, by its first statement and in the same
// round trip, so that nothing of them is left on a connection, and it may stand behind a transaction pooler.
const (
	sqlAsTenant = `select set_config('role', 'cutonce_app', true), set_config('cutonce.tenant', @tenant, true)`

	// sqlAsTenantPlanned has the statement planned for its very arguments. See collectPlanned.
	sqlAsTenantPlanned = `
select set_config('role', 'cutonce_app', true), set_config('cutonce.tenant', @tenant, true), set_config('plan_cache_mode', 'force_custom_plan', true)`

	sqlAsWorker = `select set_config('role', 'cutonce_worker', true)`

	// sqlAsWorkerDurably also waits for the log, whatever the session's default is.
	sqlAsWorkerDurably = `select set_config('role', 'cutonce_worker', true), set_config('synchronous_commit', 'on', true)`
)

// errNoTenant: a statement for a tenant names none. What concerns all of them goes through Store.worker, which says so.
var errNoTenant = errors.New("a statement names no tenant, and is not the worker's")

// on is the statement that begins a transaction, by whom the others are run.
func (b bounded) on(args pgx.NamedArgs) (sql string, with []any, err error) {
	if b.worker {
		return sqlAsWorker, nil, nil
	}
	tenant, err := tenantOf(args)
	if err != nil {
		return "", nil, err
	}
	return sqlAsTenant, []any{pgx.NamedArgs{"tenant": tenant}}, nil
}

func tenantOf(args pgx.NamedArgs) (string, error) {
	if tenant, ok := args["tenant"].(string); ok && tenant != "" {
		return tenant, nil
	}
	return "", errNoTenant
}

// onAll is on for several statements of one transaction: those that name a tenant name the same.
func (b bounded) onAll(statements []*pgx.QueuedQuery) (sql string, with []any, err error) {
	all := pgx.NamedArgs{}
	for _, q := range statements {
		for _, argument := range q.Arguments {
			args, _ := argument.(pgx.NamedArgs)
			tenant, named := args["tenant"]
			if !named {
				continue
			}
			if before, ok := all["tenant"]; ok && before != tenant {
				return "", nil, errors.New("the statements of one transaction name two tenants")
			}
			all["tenant"] = tenant
		}
	}
	return b.on(all)
}

// scoped is a batch that begins by saying for whom it is, and goes on with the statements that queue adds.
func (b bounded) scoped(ctx context.Context, queue func(*pgx.Batch)) (*pgx.Batch, error) {
	var batch pgx.Batch
	queue(&batch)
	sql, with, err := b.onAll(batch.QueuedQueries)
	if err != nil {
		return nil, err
	}
	whole := &pgx.Batch{QueuedQueries: make([]*pgx.QueuedQuery, 0, len(batch.QueuedQueries)+1)}
	whole.Queue(sql, with...)
	whole.QueuedQueries = append(whole.QueuedQueries, batch.QueuedQueries...)
	return placedIn(ctx, whole), nil
}

// single is a batch of one statement behind the one that says for whom.
func single(ctx context.Context, begin string, with []any, sql string, args pgx.NamedArgs) *pgx.Batch {
	batch := &pgx.Batch{}
	batch.Queue(begin, with...)
	batch.Queue(sql, args)
	return placedIn(ctx, batch)
}

func placedIn(ctx context.Context, batch *pgx.Batch) *pgx.Batch {
	for _, q := range batch.QueuedQueries {
		caused(ctx, q.Arguments)
		q.SQL, q.Arguments = positional(ctx, q.SQL, q.Arguments)
	}
	return batch
}

// transact runs a transaction of several round trips as the worker.
func (b bounded) transact(ctx context.Context, options pgx.TxOptions, do func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, b.pool, options, func(tx pgx.Tx) error {
		if err := asWorker(ctx, tx, sqlAsWorker); err != nil {
			return err
		}
		return do(tx)
	})
}

func asWorker(ctx context.Context, tx pgx.Tx, sql string) error {
	if _, err := tx.Exec(ctx, sql); err != nil {
		return fmt.Errorf("taking the worker's role: %w", err)
	}
	return nil
}
