package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// The parts of every statement that changes controls: the chain's new end goes into the set list, controlEnd is returned, and the
// event goes in beside it. ok gives the time and the kind. The schema refuses a change without its event.
const (
	nextControl = `audit_seq = k.audit_seq + 1,
    audit_head = control_hash(k.audit_head, k.tenant_id, k.audit_seq + 1, ok.kind, @actor, ok.now, @body)`
	controlEnd     = `k.tenant_id, k.audit_seq, k.audit_head, ok.kind, ok.now`
	controlChained = `, ev as (
  insert into control_events (scope, seq, kind, actor, at, body, hash)
  select tenant_id, audit_seq, kind, @actor, now, @body, audit_head from u
)
select exists (select from u)`
)

// control runs one change of a tenant's controls under the lock that every claim holds shared.
func (s *Store) control(ctx context.Context, sql string, args pgx.NamedArgs, into ...any) error {
	return s.controlBy(ctx, s.pool, sql, args, into...)
}

// controlBy is control for what may concern the whole deployment, which is the worker's.
func (s *Store) controlBy(ctx context.Context, pool bounded, sql string, args pgx.NamedArgs, into ...any) error {
	return s.pipeline(ctx, pool, func(b *pgx.Batch) {
		b.Queue(sqlControlLock)
		b.Queue(sql, args)
	}, func(r pgx.BatchResults) error {
		if _, err := r.Exec(); err != nil {
			return err
		}
		return r.QueryRow().Scan(into...)
	})
}
