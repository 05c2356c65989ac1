package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/preview"
)

// removedPeople are those of the preview's tenant who decide nothing. It is read in the statement that reads the votes and the epochs, so
// that a claim that compares the epochs rests on the same picture.
const removedPeople = `
  (select coalesce(json_agg(json_build_object('person', r.name, 'by', r.removed_by, 'reason', r.reason, 'at', r.removed_at)), '[]')
   from removed_approvers r where r.tenant_id = p.tenant_id) as removed`

// sqlRemoveApprover removes a person, and tells how many open changes had their approval. The tenant may have no control yet.
const sqlRemoveApprover = `
with ok as materialized (
  select clock_timestamp() as now, 'approver_removed' as kind
), r as (
  insert into removed_approvers as r (tenant_id, person, name, removed_by, reason, removed_at)
  select @tenant, lower(@person), @person, @by, @reason, ok.now from ok
  on conflict (tenant_id, person) do update set removed_by = excluded.removed_by, reason = excluded.reason, removed_at = excluded.removed_at
  returning r.removed_at
), u as (
  insert into controls as k (tenant_id, approvers_epoch, audit_seq, audit_head)
  select @tenant, next_number(0), 1, control_hash(decode(repeat('00', 32), 'hex'), @tenant, 1, ok.kind, @actor, ok.now, @body) from ok
  on conflict (tenant_id) do update set approvers_epoch = next_number(k.approvers_epoch), audit_seq = k.audit_seq + 1,
    audit_head = control_hash(k.audit_head, k.tenant_id, k.audit_seq + 1, (select kind from ok), @actor, (select now from ok), @body)
  returning k.tenant_id, k.audit_seq, k.audit_head, (select kind from ok) as kind, (select now from ok) as now
), ev as (
  insert into control_events (scope, seq, kind, actor, at, body, hash)
  select tenant_id, audit_seq, kind, @actor, now, @body, audit_head from u
)
select removed_at, (
  select count(*) from previews p
  where p.tenant_id = @tenant and p.state in ('pending', 'approved') and p.deadline > (select now from ok) and exists (
    select from decisions d where d.preview_id = p.id and d.round = p.round and d.approve and subject_of(d.person) = lower(@person)))
from r`

// sqlRestoreApprover ends a removal.
const sqlRestoreApprover = `
with gone as (
  delete from removed_approvers where tenant_id = @tenant and person = lower(@person) returning tenant_id
), ok as materialized (
  select clock_timestamp() as now, 'approver_restored' as kind from gone
), u as (
  update controls k set approvers_epoch = next_number(k.approvers_epoch), ` + nextControl + `
  from ok where k.tenant_id = @tenant
  returning ` + controlEnd + `
)` + controlChained

func removalArgs(o approvals.RemovalOrder) pgx.NamedArgs {
	return pgx.NamedArgs{
		"tenant": o.By.Tenant, "person": o.Person, "by": o.By.HumanName(), "reason": o.Reason, "actor": o.By.ID(),
		"body": body(map[string]any{"person": o.Person, "by": o.By.HumanName(), "reason": o.Reason}),
	}
}

// RemoveApprover removes under the lock that every claim holds shared. See approvals.Store.
func (s *Store) RemoveApprover(ctx context.Context, o approvals.RemovalOrder) (approvals.Removed, error) {
	out := approvals.Removed{Removal: preview.Removal{Person: o.Person, By: o.By.HumanName(), Reason: o.Reason}}
	if err := s.control(ctx, sqlRemoveApprover, removalArgs(o), &out.Removal.At, &out.Lost); err != nil {
		return out, fmt.Errorf("removing an approver: %w", err)
	}
	return out, nil
}

// RestoreApprover ends a removal. See approvals.Store.
func (s *Store) RestoreApprover(ctx context.Context, o approvals.RemovalOrder) (restored bool, err error) {
	if err = s.control(ctx, sqlRestoreApprover, removalArgs(o), &restored); err != nil {
		return false, fmt.Errorf("restoring an approver: %w", err)
	}
	return restored, nil
}

const sqlRemovedApprovers = `
select name, removed_by, reason, removed_at from removed_approvers where tenant_id is not distinct from @tenant order by person`

// RemovedApprovers lists who was removed. See approvals.Store.
func (s *Store) RemovedApprovers(ctx context.Context, tenant string) ([]preview.Removal, error) {
	all, err := collect(ctx, s.pool, sqlRemovedApprovers, pgx.NamedArgs{"tenant": tenant}, pgx.RowToStructByPos[preview.Removal])
	if err != nil {
		return nil, fmt.Errorf("listing removed approvers: %w", err)
	}
	return all, nil
}

// removedDecides is how the schema refuses the word of somebody who was removed after it was looked at.
const removedDecides = "CU021"

func byRemoved(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == removedDecides
}
