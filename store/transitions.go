package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/preview"
)

// chained is the end of every statement that moves one preview: u is the update, its event goes in beside it.
const chained = `, au as (
  insert into audit_events (preview_id, seq, tenant_id, kind, actor, at, body, hash)
  select id, audit_seq, tenant_id, @kind, @actor, now, @body, audit_head from u
)
select exists (select from u)`

// chainedAndRead is chained, for those who go on with what the update made of the preview.
const chainedAndRead = `, au as (
  insert into audit_events (preview_id, seq, tenant_id, kind, actor, at, body, hash)
  select id, audit_seq, tenant_id, @kind, @actor, now, @body, audit_head from u
)
select ` + previewColumns + `, p.now from u p`

// nextHead is the chain's new end, for the set list of such an update.
const nextHead = `audit_seq = p.audit_seq + 1,
    audit_head = event_hash(p.audit_head, p.id, p.audit_seq + 1, @kind, @actor, p.tenant_id, ok.now, @body)`

const locked = `
with l as materialized (
  select id, state, deadline, digest, revision from previews where id = @id and tenant_id is not distinct from @tenant for update
)`

const sqlCancel = locked + `, ok as (
  select id, clock_timestamp() as now from l
  where state in ('needs_approval', 'pending', 'approved') and deadline > clock_timestamp()
), u as (
  update previews p set state = 'canceled', ended_at = ok.now, ended_by = @name, end_reason = @reason, ` + nextHead + `
  from ok where p.id = @id returning p.*, ok.now
)` + chainedAndRead

// Cancel ends an open preview. See preview.Store.
func (s *Store) Cancel(ctx context.Context, m preview.Move) (preview.Preview, bool, error) {
	args := pgx.NamedArgs{
		"id": m.ID.UUID(), "tenant": m.Tenant, "name": m.By.HumanName(), "reason": m.Reason, "kind": "canceled",
		"actor": m.By.ID(), "body": body(map[string]any{"reason": m.Reason}),
	}
	return s.moveAndRead(ctx, m.Tenant, m.ID, sqlCancel, args)
}

const sqlRequestApproval = locked + `, ok as (
  select id, clock_timestamp() as now from l where state = 'needs_approval' and deadline > clock_timestamp()
), u as (
  update previews p set state = 'pending', justification = @reason, requested_at = ok.now, revision = next_number(p.revision),
    deadline = ok.now + @live_for::interval, ` + nextHead + `
  from ok where p.id = @id returning p.*, ok.now
)` + chainedAndRead

// RequestApproval puts a preview into the queue. See approvals.Store.
func (s *Store) RequestApproval(ctx context.Context, m preview.Move) (preview.Preview, bool, error) {
	return s.moveAndRead(ctx, m.Tenant, m.ID, sqlRequestApproval, pgx.NamedArgs{
		"id": m.ID.UUID(), "tenant": m.Tenant, "reason": m.Reason, "live_for": m.LiveFor, "kind": "approval_requested",
		"actor": m.By.ID(), "body": body(map[string]any{"justification": m.Reason}),
	})
}

// move runs one transition in one round trip.
func (s *Store) move(ctx context.Context, sql string, args pgx.NamedArgs) (moved bool, err error) {
	err = s.write(ctx, s.pool, sql, args, &moved)
	return moved, err
}

// moveAndRead runs one transition and returns the preview as it left it, in one round trip; or as somebody else left it, in another.
func (s *Store) moveAndRead(ctx context.Context, tenant string, id preview.ID, sql string, args pgx.NamedArgs) (preview.Preview, bool, error) {
	epochs := s.seen.before(tenant)
	p, moved, err := s.moved(ctx, sql, args)
	switch {
	case err != nil:
		return preview.Preview{}, false, fmt.Errorf("moving a preview: %w", err)
	case !moved:
		p, _, err = s.Preview(ctx, tenant, id)
		return p, false, err
	}
	s.seen.keep(p, epochs)
	return p, true, nil
}

// moved runs one transition that gives the preview back.
func (s *Store) moved(ctx context.Context, sql string, args pgx.NamedArgs) (preview.Preview, bool, error) {
	var r row
	var now time.Time
	err := s.write(ctx, s.pool, sql, args, append(r.into(), &now)...)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return preview.Preview{}, false, nil
	case exceededBy(err) != nil:
		return preview.Preview{}, false, refusedByCap(exceededBy(err))
	case err != nil:
		return preview.Preview{}, false, err
	}
	p, err := r.preview()
	p.SeenAt = now
	return p, true, err
}

// sqlDecide stores a vote and the state that the verdict leads to, if nothing has moved since the verdict was computed. What it gives
// back holds the votes before this one, which the statement cannot see.
const sqlDecide = locked + `, ok as (
  select id, clock_timestamp() as now from l
  where state = @from and deadline > clock_timestamp() and digest = @digest and revision = @revision
), v as (
  insert into decisions (preview_id, tenant_id, round, person, name, groups, approve, reason, digest, policy_version, decided_at)
  select id, @tenant, @round, @person, @name, @groups, @approve, @reason, @digest, @policy_version, now from ok
), u as (
  update previews p set state = @next, revision = next_number(p.revision),
    deadline = case when @next <> @from and @next in ('approved', 'needs_approval') then ok.now + @live_for::interval else p.deadline end,
    approved_at = case when @next <> @from and @next = 'approved' then ok.now when @next = 'needs_approval' then null else p.approved_at end,
    ended_at = case when @next = 'rejected' then ok.now end, ended_by = case when @next = 'rejected' then @name else '' end,
    end_reason = case when @next = 'rejected' then @reason else '' end, ` + nextHead + `
  from ok where p.id = @id returning p.*, ok.now
)` + chainedAndRead

// RecordDecision compares and sets. See approvals.Store.
func (s *Store) RecordDecision(ctx context.Context, d approvals.RecordedDecision) (preview.Preview, bool, error) {
	kind := "vote"
	switch {
	case d.Next == preview.Rejected:
		kind = "rejected"
	case !d.Vote.Approve:
		kind = "abstained"
	case d.Next == preview.Approved:
		kind = "approved"
	}
	groups := d.Vote.Groups
	if groups == nil {
		groups = []string{}
	}
	epochs := s.seen.before(d.Tenant)
	p, moved, err := s.moved(ctx, sqlDecide, pgx.NamedArgs{
		"id": d.ID.UUID(), "tenant": d.Tenant, "from": string(d.From), "next": string(d.Next), "digest": d.Digest[:],
		"revision": d.Revision, "round": d.Vote.Round, "person": d.Vote.Person, "name": d.Vote.Name, "groups": groups,
		"approve": d.Vote.Approve, "reason": d.Vote.Reason, "policy_version": d.Vote.RulingBy, "live_for": d.LiveFor,
		"kind": kind, "actor": d.By.ID(),
		"body": body(map[string]any{
			"person": d.Vote.Person, "approve": d.Vote.Approve, "reason": d.Vote.Reason, "digest": d.Digest.String(),
			"round": d.Vote.Round, "state": string(d.Next), "missing": d.Missing.String(),
		}),
	})
	switch {
	case violates(err, "decisions_one_each"), byRemoved(err):
		return preview.Preview{}, false, nil
	case err != nil:
		return preview.Preview{}, false, fmt.Errorf("recording a decision: %w", err)
	case moved:
		d.Vote.At, d.Vote.Groups = p.SeenAt, groups
		p.Votes = append(p.Votes, d.Vote)
		s.seen.keep(p, epochs)
	}
	return p, moved, nil
}

// sqlConfirmed stores the word of the requester's own person, which the ruling asks for instead of people.
const sqlConfirmed = locked + `, ok as (
  select id, clock_timestamp() as now from l
  where state = 'pending' and deadline > clock_timestamp() and digest = @digest and revision = @revision
), u as (
  update previews p set state = 'approved', revision = next_number(p.revision), deadline = ok.now + @live_for::interval, approved_at = ok.now,
    confirmed = jsonb_build_object('person', @person::text, 'name', @name::text, 'digest', encode(@digest, 'hex'), 'round', p.round, 'at', ok.now),
    ` + nextHead + `
  from ok where p.id = @id returning p.*, ok.now
)` + chainedAndRead

// RecordConfirmation compares and sets. See approvals.Store.
func (s *Store) RecordConfirmation(ctx context.Context, c approvals.RecordedConfirmation) (preview.Preview, bool, error) {
	epochs := s.seen.before(c.Tenant)
	p, moved, err := s.moved(ctx, sqlConfirmed, pgx.NamedArgs{
		"id": c.ID.UUID(), "tenant": c.Tenant, "digest": c.Digest[:], "revision": c.Revision, "person": c.By.Person(), "name": c.By.HumanName(),
		"live_for": c.LiveFor, "kind": "confirmed", "actor": c.By.ID(),
		"body": body(map[string]any{"person": c.By.Person(), "digest": c.Digest.String(), "policy_version": c.RulingBy}),
	})
	if byRemoved(err) {
		return preview.Preview{}, false, nil
	}
	if err != nil {
		return preview.Preview{}, false, fmt.Errorf("recording a confirmation: %w", err)
	}
	if moved {
		s.seen.keep(p, epochs)
	}
	return p, moved, nil
}

const sqlSendBack = locked + `, ok as (
  select id, clock_timestamp() as now from l where state = 'approved' and deadline > clock_timestamp()
), u as (
  update previews p set state = 'needs_approval', round = p.round + 1, revision = next_number(p.revision), ruling = @ruling,
    approved_at = null, confirmed = null, deadline = ok.now + @live_for::interval, ` + nextHead + `
  from ok where p.id = @id returning p.id, p.tenant_id, p.audit_seq, p.audit_head, ok.now
)` + chained

// SendBack returns an approved preview for approval under a stricter ruling. See commit.Store.
func (s *Store) SendBack(ctx context.Context, tenant string, id preview.ID, ruling preview.Ruling, liveFor time.Duration) (bool, error) {
	encoded, err := jsonb(ruling)
	if err != nil {
		return false, err
	}
	return s.move(ctx, sqlSendBack, pgx.NamedArgs{
		"id": id.UUID(), "tenant": tenant, "ruling": encoded, "live_for": liveFor, "kind": "sent_back", "actor": service,
		"body": body(map[string]any{"rule": ruling.Rule, "policy_version": ruling.Version}),
	})
}

// sqlResolve records an operator's word, if nothing was said since its author looked, and settles an unknown outcome by it where no
// other is needed. A trigger counts the people once more.
const sqlResolve = `
with l as materialized (
  select id from previews where id = @id and tenant_id is not distinct from @tenant for update
), ok as materialized (
  select e.preview_id as id, e.item, clock_timestamp() as now from l join executions e on e.preview_id = l.id and e.item = @item
  where (e.state = 'unknown' or e.state = 'applying' and e.lease_until <= clock_timestamp())
    and (@applied or e.settle_at <= clock_timestamp()) and e.stated = @seen
  for update of e
), said as (
  update executions e set stated = e.stated + 1, needs_operator = true
  from ok where e.preview_id = ok.id and e.item = ok.item and not @settles
), x as (
  update executions e set state = case when @applied then 'applied' else 'not_applied' end, finished_at = ok.now, stated = e.stated + 1,
    reason = case when @applied then '' else 'resolved' end, evidence = 'operator', detail = e.detail || @detail,
    resolved_by = @names, resolved_why = @reason, needs_operator = false, probe_until = null,
    next_probe_at = case when not @applied then ok.now + interval '5 minutes' end
  from ok where e.preview_id = ok.id and e.item = ok.item and @settles
), u as (
  update previews p set ` + nextHead + `
  from ok where p.id = @id returning p.id, p.tenant_id, p.audit_seq, p.audit_head, ok.now
), s as (
  insert into resolutions (preview_id, seq, item, tenant_id, person, name, applied, reason, evidence, stated_at)
  select u.id, u.audit_seq, @item, u.tenant_id, @person, @name, @applied, @reason, @evidence, u.now from u
)` + chained

// Resolve records an operator's statement. See commit.Store.
func (s *Store) Resolve(ctx context.Context, r commit.Resolution) (bool, error) {
	detail, err := jsonb(map[string]any{"statement": map[string]any{"reason": r.Reason, "evidence": r.Evidence, "by": r.By.HumanName()}})
	if err != nil {
		return false, err
	}
	kind := "proposed"
	if r.Settles {
		kind = "resolved"
	}
	return s.move(ctx, sqlResolve, pgx.NamedArgs{
		"id": r.ID.UUID(), "tenant": r.Tenant, "item": r.Item, "applied": r.Applied, "person": r.By.Person(), "name": r.By.HumanName(),
		"names": strings.Join(append(r.With, r.By.HumanName()), ", "), "reason": r.Reason, "evidence": r.Evidence, "settles": r.Settles,
		"seen": r.Seen, "detail": detail, "kind": kind, "actor": r.By.ID(),
		"body": body(map[string]any{"applied": r.Applied, "reason": r.Reason, "evidence": r.Evidence, "item": r.Item}),
	})
}

const sqlBehind = `
select w.id from previews p join previews w on w.tenant_id = p.tenant_id and w.target_id = p.target_id and w.target_key = p.target_key
where p.id = @id and p.tenant_id is not distinct from @tenant and w.id <> p.id and w.state = 'approved' and w.deadline > clock_timestamp()
order by w.id limit @limit`

// Behind names who waits for the target of a change. See commit.Store.
func (s *Store) Behind(ctx context.Context, tenant string, id preview.ID, limit int) ([]preview.ID, error) {
	waiting, err := collect(ctx, s.pool, sqlBehind, pgx.NamedArgs{"tenant": tenant, "id": id.UUID(), "limit": limit}, pgx.RowTo[uuid.UUID])
	if err != nil {
		return nil, fmt.Errorf("naming who waits for a target: %w", err)
	}
	ids := make([]preview.ID, 0, len(waiting))
	for _, one := range waiting {
		ids = append(ids, preview.ID(one))
	}
	return ids, nil
}

const sqlHolder = `
select preview_id, state = 'unknown' or lease_until <= clock_timestamp() from executions where target_key = @target and tenant_id = @tenant and state in ('applying', 'unknown')`

// HolderOf names the change of this tenant that holds a target. See commit.Store.
func (s *Store) HolderOf(ctx context.Context, tenant, target string) (*preview.ID, bool, error) {
	var id uuid.UUID
	var unknown bool
	err := s.pool.read(ctx, sqlHolder, pgx.NamedArgs{"target": target, "tenant": tenant}, &id, &unknown)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("naming the holder of a target: %w", err)
	}
	holder := preview.ID(id)
	return &holder, unknown, nil
}
