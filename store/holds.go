package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/preview"
)

var _ commit.Holds = (*Store)(nil)

// sqlNextHeld takes a share of each action's, as sqlNextProbes does.
const sqlNextHeld = `
select tenant_id, preview_id, action from (
  select h.*, row_number() over (partition by h.action order by h.next_look_at) as place from restore_holds h
  where h.state = 'held' and h.next_look_at <= clock_timestamp() and (h.look_until is null or h.look_until <= clock_timestamp())
    and exists (select from previews p where p.id = h.preview_id)
) due where place <= @limit order by next_look_at`

// NextHeld lists held changes that are due. See commit.Holds.
func (s *Store) NextHeld(ctx context.Context, limit int) ([]commit.Due, error) {
	due, err := collect(ctx, s.worker, sqlNextHeld, pgx.NamedArgs{"limit": limit}, func(r pgx.CollectableRow) (commit.Due, error) {
		var d commit.Due
		var id uuid.UUID
		err := r.Scan(&d.Tenant, &id, &d.Action)
		d.ID = preview.ID(id)
		return d, err
	})
	if err != nil {
		return nil, fmt.Errorf("listing held changes: %w", err)
	}
	return due, nil
}

const sqlBeginLook = `
with ok as materialized (
  select preview_id, clock_timestamp() as now from restore_holds
  where preview_id = @id and tenant_id = @tenant and state = 'held' and (look_until is null or look_until <= clock_timestamp())
  for update skip locked
), u as (
  update restore_holds h set look_until = ok.now + @hold_for::interval from ok where h.preview_id = ok.preview_id returning h.preview_id
)
select exists (select from u)`

// BeginLook takes a held change for one look. See commit.Holds.
func (s *Store) BeginLook(ctx context.Context, k commit.Key, holdFor time.Duration) (bool, error) {
	ok, err := s.move(ctx, sqlBeginLook, pgx.NamedArgs{"id": k.ID.UUID(), "tenant": k.Tenant, "hold_for": holdFor})
	if err != nil {
		return false, fmt.Errorf("beginning a look: %w", err)
	}
	return ok, nil
}

const sqlLookAgain = `
with ok as materialized (
  select preview_id, clock_timestamp() as now from restore_holds
  where preview_id = @id and tenant_id = @tenant and state = 'held' for update
), u as (
  update restore_holds h set looks = h.looks + 1, look_until = null, next_look_at = ok.now + @in::interval,
    needs_operator = h.needs_operator or @hand_over > 0, resolvers = greatest(h.resolvers, @hand_over)
  from ok where h.preview_id = ok.preview_id returning h.preview_id
)
select exists (select from u)`

// LookAgain plans the next look. See commit.Holds.
func (s *Store) LookAgain(ctx context.Context, k commit.Key, in time.Duration, handOver int) error {
	_, err := s.move(ctx, sqlLookAgain, pgx.NamedArgs{"id": k.ID.UUID(), "tenant": k.Tenant, "in": in, "hand_over": handOver})
	if err != nil {
		return fmt.Errorf("planning a look: %w", err)
	}
	return nil
}

// heldNow locks a held change, its preview first, as every other statement does.
const heldNow = `
with l as materialized (
  select id, tenant_id, target_key, state, created_at from previews where id = @id and tenant_id = @tenant for update
), h as materialized (
  select l.*, clock_timestamp() as now from l join restore_holds h on h.preview_id = l.id
  where h.state = 'held' and h.held_at + @settle_for::interval <= clock_timestamp() for update of h
)`

// sqlClear lets a change go on as if nothing had been.
const sqlClear = heldNow + `, ok as (
  select id, now from h
), x as (
  update restore_holds r set state = 'cleared', cleared_at = ok.now, next_look_at = null, look_until = null, looks = r.looks + 1
  from ok where r.preview_id = ok.id
), u as (
  update previews p set ` + nextHead + `
  from ok where p.id = ok.id returning p.id, p.tenant_id, p.audit_seq, p.audit_head, ok.now
)` + chained

// sqlAdopt records an effect of the lost time, or that nobody can tell (@applied false), without a send of ours. An open change
// becomes an execution that is applied, or unknown and in operators' hands; one that was recorded as not applied is contradicted;
// of one that has ended otherwise, only a found effect is recorded, as an incident. started_at is the earliest moment at which it
// can have been sent.
const sqlAdopt = heldNow + `, ok as (
  select h.*, case
    when h.state in ('needs_approval', 'pending', 'approved') then case when @applied then 'found' else 'handed_over' end
    when @applied and h.state = 'claimed' then 'found' when @applied then 'found_ended' end as next,
    case when @applied and h.state = 'claimed' then 'contradicted'
      when h.state in ('needs_approval', 'pending', 'approved') then case when @applied then 'applied' else 'handed_over' end
      else 'effect_found' end as kind,
    case when @applied then 'applied' else 'unknown' end as becomes
  from h
), x as (
  update restore_holds r set state = ok.next, next_look_at = null, look_until = null, looks = r.looks + 1
  from ok where r.preview_id = ok.id and ok.next is not null
), again as (
  update executions e set state = ok.becomes, contradicted = e.contradicted or e.state = 'not_applied', reason = '',
    evidence = case when @applied then 'lookup' else '' end, finished_at = case when @applied then ok.now end, detail = e.detail || @detail,
    current_attempt = @attempt, lease_until = ok.now, settle_at = ok.now, probe_until = null, needs_operator = not @applied,
    next_probe_at = case when not @applied then ok.now + interval '5 minutes' end
  from ok where ok.next in ('found', 'handed_over') and e.preview_id = ok.id and e.item = @item
    and (e.state = 'not_sent' or e.state = 'not_applied' and @applied)
), born as (
  insert into executions (preview_id, item, tenant_id, target_key, state, current_attempt, claimed_by, started_at, lease_until, settle_at,
    finished_at, evidence, detail, needs_operator, next_probe_at, resolvers)
  select id, @item, tenant_id, target_key, becomes, @attempt, @actor, created_at, now, now, case when @applied then now end,
    case when @applied then 'lookup' else '' end, @detail, not @applied, case when not @applied then now + interval '5 minutes' end, @resolvers
  from ok where next in ('found', 'handed_over') and not exists (select from executions e where e.preview_id = ok.id and e.item = @item)
), a as (
  insert into attempts (id, preview_id, item, tenant_id, kind, started_at, finished_at, result, evidence)
  select @attempt, id, @item, tenant_id, 'lookup', now, now, @result, @evidence from ok where next in ('found', 'handed_over')
), u as (
  update previews p set state = case when ok.next in ('found', 'handed_over') then 'claimed' else p.state end, audit_seq = p.audit_seq + 1,
    audit_head = event_hash(p.audit_head, p.id, p.audit_seq + 1, ok.kind, @actor, p.tenant_id, ok.now, @body)
  from ok where p.id = ok.id and ok.next is not null
  returning p.id, p.tenant_id, p.audit_seq, p.audit_head, ok.kind, ok.now
), au as (
  insert into audit_events (preview_id, seq, tenant_id, kind, actor, at, body, hash)
  select id, audit_seq, tenant_id, kind, @actor, now, @body, audit_head from u
)
select exists (select from u)`

// EndHold ends a hold by what a look found. See commit.Holds.
func (s *Store) EndHold(ctx context.Context, e commit.HoldEnd) (bool, error) {
	evidence := evidenceOf(e.Evidence)
	detail, err := jsonb(map[string]any{"evidence": evidence, "restored": true})
	if err != nil {
		return false, err
	}
	found := e.Found == connector.EffectFound
	said := string(e.Found)
	sql := sqlAdopt
	if e.Settled || e.Found == connector.EffectAbsent {
		sql = sqlClear
	}
	if e.Settled {
		said = "settled"
	}
	attempted, err := jsonb(evidence)
	if err != nil {
		return false, err
	}
	settleFor := e.SettleFor
	if found || e.Settled {
		settleFor = 0 // proof of the effect counts at once
	}
	ended, err := s.move(ctx, sql, pgx.NamedArgs{
		"id": e.ID.UUID(), "tenant": e.Tenant, "item": e.Item, "attempt": e.Attempt, "applied": found, "settle_for": settleFor,
		"detail": detail, "evidence": attempted, "result": said, "resolvers": max(e.Resolvers, 1), "actor": service, "kind": "cleared",
		"body": body(map[string]any{"attempt": e.Attempt.String(), "item": e.Item, "result": said, "detail": map[string]any{"evidence": evidence, "restored": true}}),
	})
	switch {
	case violates(err, "executions_target_lock"):
		return false, commit.ErrTargetBusy
	case err != nil:
		return false, fmt.Errorf("ending a hold: %w", err)
	}
	return ended, nil
}
