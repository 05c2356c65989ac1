package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
)

// sqlRecord writes what one attempt proved. The order of the cases is the rule: proof of the effect always counts, even
// late; proof that nothing left counts unless a replay may have caused the effect since; everything else counts only for
// the attempt that is still current. A result that is already recorded changes nothing. sqlLockPreview goes before it, so that
// a replay which began meanwhile is seen.
const sqlRecord = `
with l as materialized (
  select id from previews where id = @id and tenant_id is not distinct from @tenant for update
), e as materialized (
  select e.preview_id, e.item, e.state, e.lease_until, e.settle_at, e.current_attempt = @attempt as current,
    a.result is null as open, clock_timestamp() as now
  from l join executions e on e.preview_id = @id and e.item = @item
    join attempts a on a.preview_id = @id and a.item = @item and a.id = @attempt
  for update of e, a
), d as materialized (
  select e.*, case
    when @proof = 'effect' and state in ('applying', 'unknown', 'not_applied') then 'applied'
    when @proof = 'never_left' and current and state = 'applying' and lease_until > now then 'not_sent'
    when @proof = 'never_left' and state in ('applying', 'unknown') and not exists (
      select from attempts r where r.preview_id = @id and r.item = @item and r.kind = 'replay') then 'not_applied'
    when @proof = 'refusal' and current and state in ('applying', 'unknown') then 'not_applied'
    when @proof = 'absent' and current and state = 'unknown' and settle_at <= now then 'not_applied'
    when @proof = 'none' and current and state = 'applying' then 'unknown'
    else state end as next
  from e where open
), done as (
  update attempts a set finished_at = d.now, result = @result, evidence = @evidence
  from d where a.preview_id = @id and a.item = @item and a.id = @attempt
), x as (
  update executions e set state = d.next,
    finished_at = case when d.next in ('applied', 'not_applied') then coalesce(case when d.next = d.state then e.finished_at end, d.now) end,
    reason = case when d.next = d.state then e.reason when d.next = 'not_applied' then @reason else '' end,
    evidence = case when d.next = d.state then e.evidence when d.next in ('applied', 'not_applied') then @evidence_kind else '' end,
    detail = case when d.next = d.state and not (@probing and d.current) then e.detail else e.detail || @detail end,
    contradicted = e.contradicted or (d.state = 'not_applied' and d.next = 'applied'),
    probes = e.probes + case when @probing and d.current then 1 else 0 end,
    probe_until = case when d.current then null else e.probe_until end,
    next_probe_at = case when d.next = 'unknown' then d.now + @retry_in::interval
      when d.next = 'not_applied' and d.state <> d.next and (@proof = 'absent' or @doubtful) then d.now + interval '5 minutes'
      when d.next = d.state then e.next_probe_at end,
    needs_operator = case when d.next = 'unknown' then e.needs_operator or @hand_over else false end
  from d where e.preview_id = @id and e.item = @item and (d.current or d.next <> d.state)
  returning e.preview_id
), ev as (
  select d.preview_id, d.next, d.now, case
    when d.state = 'not_applied' and d.next = 'applied' then 'contradicted'
    when d.next <> d.state then d.next
    when @probing and d.current then case when @hand_over then 'handed_over' else 'probed' end
    end as kind
  from d
), u as (
  update previews p set audit_seq = p.audit_seq + 1,
    state = case when ev.kind = 'not_sent' then 'approved' else p.state end,
    audit_head = event_hash(p.audit_head, p.id, p.audit_seq + 1, ev.kind, @actor, p.tenant_id, ev.now, @body)
  from ev where p.id = @id and ev.kind is not null
  returning p.id, p.tenant_id, p.audit_seq, p.audit_head, ev.kind, ev.now
), au as (
  insert into audit_events (preview_id, seq, tenant_id, kind, actor, at, body, hash)
  select id, audit_seq, tenant_id, kind, @actor, now, @body, audit_head from u
)
select exists (select from e)`

// service is the actor of what the service does by itself.
const service = "service:cutonce"

// sqlStanding is read in the same transaction, after what was recorded.
const sqlStanding = `select p.state, ` + executionColumns + `, clock_timestamp() from previews p where p.id = @id and p.tenant_id is not distinct from @tenant`

// RecordResult records on the reserved connections. See commit.Store.
func (s *Store) RecordResult(ctx context.Context, r commit.Result) (commit.Recorded, error) {
	var stands commit.Recorded
	var executions []byte
	args, err := recordArgs(r)
	if err != nil {
		return stands, err
	}
	var found bool
	err = s.pipeline(ctx, s.reserve, func(b *pgx.Batch) {
		b.Queue(sqlLockPreview, args)
		b.Queue(sqlRecord, args)
		b.Queue(sqlStanding, args)
	}, func(res pgx.BatchResults) error {
		if _, err := res.Exec(); err != nil {
			return err
		}
		if err := res.QueryRow().Scan(&found); err != nil || !found {
			return err
		}
		return res.QueryRow().Scan(&stands.State, &executions, &stands.Now)
	})
	switch {
	case err != nil:
		return stands, fmt.Errorf("recording a result: %w", err)
	case !found:
		return stands, errors.New("recording a result: no such attempt")
	}
	stands.Executions, err = executionsOf(executions)
	return stands, err
}

func recordArgs(r commit.Result) (pgx.NamedArgs, error) {
	v := verdictOf(r)
	evidence := evidenceOf(r.Evidence)
	detail := map[string]any{"evidence": evidence}
	if r.Reason != "" {
		detail["reason"] = r.Reason
	}
	encoded, err := jsonb(detail)
	if err != nil {
		return nil, err
	}
	attempted, err := jsonb(evidence)
	if err != nil {
		return nil, err
	}
	return pgx.NamedArgs{
		"id": r.ID.UUID(), "tenant": r.Tenant, "item": r.Item, "attempt": r.Attempt, "proof": v.proof, "result": v.result,
		"reason": string(v.reason), "evidence_kind": string(v.kind), "evidence": attempted, "detail": encoded, "actor": service,
		"probing": r.Kind != commit.Send, "retry_in": r.RetryIn, "hand_over": r.HandOver, "doubtful": v.proof == "refusal" && r.LookLater,
		"body": body(map[string]any{"attempt": r.Attempt.String(), "item": r.Item, "result": v.result, "detail": detail}),
	}, nil
}

// verdict is a result in the words of sqlRecord.
type verdict struct {
	proof, result string
	reason        commit.Reason
	kind          commit.Evidence
}

func verdictOf(r commit.Result) verdict {
	if r.Kind != commit.Send {
		return probed(r)
	}
	switch r.Class {
	case connector.ClassApplied:
		return verdict{"effect", "applied", "", commit.ByReceipt}
	case connector.ClassNotSent:
		return verdict{"never_left", "not_sent", commit.NeverLeft, commit.NoneNeeded}
	case connector.ClassRefused:
		return verdict{"refusal", "refused", commit.Refused, commit.ByReceipt}
	case connector.ClassDrifted:
		kind := commit.NoneNeeded
		if r.Answered {
			kind = commit.ByReceipt
		}
		return verdict{"refusal", "drifted", commit.Drifted, kind}
	}
	return verdict{"none", "unknown", "", ""}
}

func probed(r commit.Result) verdict {
	kind := commit.ByLookup
	if r.Kind == commit.Replay {
		kind = commit.ByReplay
	}
	switch r.Found {
	case connector.EffectFound:
		return verdict{"effect", "found", "", kind}
	case connector.EffectAbsent:
		return verdict{"absent", "absent", commit.LookedUp, kind}
	}
	return verdict{"none", "unsure", "", kind}
}
