package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/actor"
)

var _ commit.Journal = (*Store)(nil)

// sqlExported puts an event into the chain of a tenant's controls, which it changes in nothing else, so that no claim waits for it.
const sqlExported = `
with ok as materialized (
  select clock_timestamp() as now, 'exported' as kind
), u as (
  insert into controls as k (tenant_id, audit_seq, audit_head)
  select @tenant, 1, control_hash(decode(repeat('00', 32), 'hex'), @tenant, 1, ok.kind, @actor, ok.now, @body) from ok
  on conflict (tenant_id) do update set audit_seq = k.audit_seq + 1,
    audit_head = control_hash(k.audit_head, k.tenant_id, k.audit_seq + 1, (select kind from ok), @actor, (select now from ok), @body)
  returning ` + controlEndOf + `
)` + controlChained

// controlEndOf is controlEnd where the kind and the time are no columns in reach.
const controlEndOf = `k.tenant_id, k.audit_seq, k.audit_head, (select kind from ok) as kind, (select now from ok) as now`

// Exported records that somebody takes changes out. See commit.Journal.
func (s *Store) Exported(ctx context.Context, who actor.Actor, o commit.ExportOrder) error {
	var recorded bool
	err := s.write(ctx, s.pool, sqlExported, pgx.NamedArgs{
		"tenant": who.Tenant, "actor": who.ID(), "body": body(exported(o)),
	}, &recorded)
	if err != nil {
		return fmt.Errorf("recording an export: %w", err)
	}
	return nil
}

// exported is what an export asked for. What it did not ask for is not there.
func exported(o commit.ExportOrder) map[string]any {
	said := map[string]any{"format": o.Format}
	for name, text := range map[string]string{"target": o.TargetID, "action": o.Action, "person": o.Person} {
		if text != "" {
			said[name] = text
		}
	}
	for name, at := range map[string]time.Time{"since": o.Since, "until": o.Until} {
		if !at.IsZero() {
			said[name] = at.UTC().Format(time.RFC3339Nano)
		}
	}
	if statuses := statusesOf(o.Filter); len(statuses) > 0 {
		all := make([]any, 0, len(statuses))
		for _, s := range statuses {
			all = append(all, s)
		}
		said["statuses"] = all
	}
	if o.Contradicted {
		said["contradicted"] = true
	}
	return said
}
