package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/commit"
)

// sqlFreeze sets a freeze of a scope, the deployment or a tenant, which may have no control yet. Rows whose time is over go with it.
const sqlFreeze = `
with ok as materialized (
  select clock_timestamp() as now, 'frozen' as kind
), f as (
  insert into freezes as f (tenant_id, kind, name, frozen_by, reason, frozen_at, until)
  select @scope, @freeze_kind, @name, @by, @reason, ok.now, ok.now + @for::interval from ok
  on conflict (tenant_id, kind, name) do update set frozen_by = excluded.frozen_by, reason = excluded.reason,
    frozen_at = excluded.frozen_at, until = excluded.until
  returning f.frozen_at, f.until
), gone as (
  delete from freezes g using ok where g.tenant_id = @scope and g.until <= ok.now and (g.kind, g.name) <> (@freeze_kind, @name)
), u as (
  insert into controls as k (tenant_id, frozen, freeze_epoch, audit_seq, audit_head)
  select @scope, true, next_number(0), 1, control_hash(decode(repeat('00', 32), 'hex'), @scope, 1, ok.kind, @actor, ok.now, @body) from ok
  on conflict (tenant_id) do update set frozen = true, freeze_epoch = next_number(k.freeze_epoch), audit_seq = k.audit_seq + 1,
    audit_head = control_hash(k.audit_head, k.tenant_id, k.audit_seq + 1, (select kind from ok), @actor, (select now from ok), @body)
  returning k.tenant_id, k.audit_seq, k.audit_head, (select kind from ok) as kind, (select now from ok) as now
), ev as (
  insert into control_events (scope, seq, kind, actor, at, body, hash)
  select tenant_id, audit_seq, kind, @actor, now, @body, audit_head from u
)
select frozen_at, until from f`

// sqlLift ends a freeze. The control says whether another one stands.
const sqlLift = `
with ok as materialized (
  select clock_timestamp() as now, 'unfrozen' as kind
  where exists (select from freezes where tenant_id = @scope and kind = @freeze_kind and name = @name)
), gone as (
  delete from freezes f using ok where f.tenant_id = @scope and (f.until <= ok.now or f.kind = @freeze_kind and f.name = @name)
), u as (
  update controls k set freeze_epoch = next_number(k.freeze_epoch), frozen = exists (
      select from freezes f where f.tenant_id = @scope and (f.until is null or f.until > ok.now) and (f.kind, f.name) <> (@freeze_kind, @name)),
    ` + nextControl + `
  from ok where k.tenant_id = @scope
  returning ` + controlEnd + `
)` + controlChained

// scopeOf is the control that a freeze belongs to.
func scopeOf(o commit.FreezeOrder) string {
	if o.Kind == commit.FreezeEverything {
		return ""
	}
	return o.By.Tenant
}

// over is the worker where a freeze concerns every tenant.
func (s *Store) over(o commit.FreezeOrder) bounded {
	if o.Kind == commit.FreezeEverything {
		return s.worker
	}
	return s.pool
}

func freezeArgs(o commit.FreezeOrder) pgx.NamedArgs {
	var lasts *time.Duration
	said := map[string]any{"kind": string(o.Kind), "name": o.Name, "by": o.By.HumanName(), "reason": o.Reason}
	if o.For > 0 {
		lasts, said["for_s"] = &o.For, int64(o.For/time.Second)
	}
	return pgx.NamedArgs{
		"scope": scopeOf(o), "tenant": scopeOf(o), "freeze_kind": string(o.Kind), "name": o.Name, "by": o.By.HumanName(), "reason": o.Reason, "for": lasts,
		"actor": o.By.ID(), "body": body(said),
	}
}

// Freeze sets a freeze under the lock that every claim holds shared. See commit.Freezes.
func (s *Store) Freeze(ctx context.Context, o commit.FreezeOrder) (commit.Freeze, error) {
	f := commit.Freeze{Kind: o.Kind, Name: o.Name, By: o.By.HumanName(), Reason: o.Reason}
	err := s.controlBy(ctx, s.over(o), sqlFreeze, freezeArgs(o), &f.At, &f.Until)
	if err != nil {
		return f, fmt.Errorf("setting a freeze: %w", err)
	}
	return f, nil
}

// Lift ends a freeze. See commit.Freezes.
func (s *Store) Lift(ctx context.Context, o commit.FreezeOrder) (lifted bool, err error) {
	if err = s.controlBy(ctx, s.over(o), sqlLift, freezeArgs(o), &lifted); err != nil {
		return false, fmt.Errorf("lifting a freeze: %w", err)
	}
	return lifted, nil
}

const sqlFreezesOver = `
select now, f.kind, f.name, f.frozen_by, f.reason, f.frozen_at, f.until
from (select clock_timestamp() as now) n left join freezes f on f.tenant_id in ('', @tenant) and (f.until is null or f.until > now)
order by array_position(array['everything', 'tenant', 'connector', 'action'], f.kind), f.name`

// Standing lists the freezes over a tenant. See commit.Freezes.
func (s *Store) Standing(ctx context.Context, tenant string) ([]commit.Freeze, time.Time, error) {
	var now time.Time
	all, err := collect(ctx, s.pool, sqlFreezesOver, pgx.NamedArgs{"tenant": tenant}, func(r pgx.CollectableRow) (commit.Freeze, error) {
		var f commit.Freeze
		var kind, name, by, reason *string
		var at *time.Time
		if err := r.Scan(&now, &kind, &name, &by, &reason, &at, &f.Until); err != nil || kind == nil {
			return f, err
		}
		f.Kind, f.Name, f.By, f.Reason, f.At = commit.FreezeKind(*kind), *name, *by, *reason, *at
		return f, nil
	})
	if err != nil {
		return nil, now, fmt.Errorf("listing freezes: %w", err)
	}
	if len(all) == 1 && all[0].Kind == "" {
		return nil, now, nil
	}
	return all, now, nil
}
