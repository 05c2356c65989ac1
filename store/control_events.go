package store

import (
	"context"
	"fmt"

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

// sqlFreeze sets the freeze of a scope, the deployment or a tenant, which may have no control yet.
const sqlFreeze = `
with ok as materialized (
  select clock_timestamp() as now, case when @frozen then 'frozen' else 'unfrozen' end as kind
), u as (
  insert into controls as k (tenant_id, frozen, freeze_epoch, audit_seq, audit_head)
  select @scope, @frozen, 1, 1, control_hash(decode(repeat('00', 32), 'hex'), @scope, 1, ok.kind, @actor, ok.now, @body) from ok
  where @frozen or exists (select from controls where tenant_id = @scope)
  on conflict (tenant_id) do update set frozen = excluded.frozen, freeze_epoch = k.freeze_epoch + 1, audit_seq = k.audit_seq + 1,
    audit_head = control_hash(k.audit_head, k.tenant_id, k.audit_seq + 1, (select kind from ok), @actor, (select now from ok), @body)
  where k.frozen <> excluded.frozen
  returning k.tenant_id, k.audit_seq, k.audit_head, (select kind from ok) as kind, (select now from ok) as now
)` + controlChained

// SetFrozen freezes or unfreezes all claims of a tenant, or of the deployment if the scope is empty, in somebody's name. It returns
// once every claim begun before it has ended. changed is false where it was so already.
func (s *Store) SetFrozen(ctx context.Context, scope string, frozen bool, by, reason string) (changed bool, err error) {
	changed, err = s.control(ctx, sqlFreeze, pgx.NamedArgs{
		"scope": scope, "frozen": frozen, "actor": by, "body": body(map[string]any{"reason": reason}),
	})
	if err != nil {
		return false, fmt.Errorf("setting a freeze: %w", err)
	}
	return changed, nil
}

// control runs one change of controls under the lock that every claim holds shared.
func (s *Store) control(ctx context.Context, sql string, args pgx.NamedArgs) (changed bool, err error) {
	err = s.pipeline(ctx, s.pool, func(b *pgx.Batch) {
		b.Queue(sqlControlLock)
		b.Queue(sql, args)
	}, func(r pgx.BatchResults) error {
		if _, err := r.Exec(); err != nil {
			return err
		}
		return r.QueryRow().Scan(&changed)
	})
	return changed, err
}
