package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/preview"
)

// Sweeps read the clock in a subquery where they search: an index can be asked for its value (see sqlCheckLease).

// sqlLapse marks lapsed leases. Rows that another worker or a sender holds are passed over: the next sweep sees them.
const sqlLapse = `
with ok as materialized (
  select e.preview_id as id, e.item, clock_timestamp() as now
  from previews p join executions e on e.preview_id = p.id
  where e.state = 'applying' and e.lease_until <= (select clock_timestamp())
  order by e.lease_until limit @limit for update of p, e skip locked
), x as (
  update executions e set state = 'unknown', next_probe_at = ok.now from ok
  where e.preview_id = ok.id and e.item = ok.item and e.state = 'applying' and e.lease_until <= ok.now
  returning e.preview_id
), u as (
  update previews p set ` + nextHead + `
  from ok join x on x.preview_id = ok.id where p.id = ok.id
  returning p.id, p.tenant_id, p.audit_seq, p.audit_head, ok.now
), au as (
  insert into audit_events (preview_id, seq, tenant_id, kind, actor, at, body, hash)
  select id, audit_seq, tenant_id, @kind, @actor, now, @body, audit_head from u
)
select count(*) from u`

const sqlExpire = `
with ok as materialized (
  select id, clock_timestamp() as now from previews
  where state in ('needs_approval', 'pending', 'approved') and deadline <= (select clock_timestamp())
    and not exists (select from restore_holds h where h.preview_id = previews.id and h.state = 'held')
  order by deadline limit @limit for update skip locked
), u as (
  update previews p set state = 'expired', ended_at = ok.now, ended_by = 'clock', ` + nextHead + `
  from ok where p.id = ok.id returning p.id, p.tenant_id, p.audit_seq, p.audit_head, ok.now
), au as (
  insert into audit_events (preview_id, seq, tenant_id, kind, actor, at, body, hash)
  select id, audit_seq, tenant_id, @kind, @actor, now, @body, audit_head from u
)
select count(*) from u`

// MarkLapsed only tidies: every reader and every guard compares the clocks itself. See commit.Store.
func (s *Store) MarkLapsed(ctx context.Context, limit int) (int, error) {
	total := 0
	for _, sweep := range []struct{ sql, kind string }{{sqlLapse, "lease_lapsed"}, {sqlExpire, "expired"}} {
		var n int
		err := s.write(ctx, s.worker, sweep.sql, pgx.NamedArgs{
			"limit": limit, "kind": sweep.kind, "actor": service, "body": body(map[string]any{}),
		}, &n)
		if err != nil {
			return total, fmt.Errorf("marking what lapsed (%s): %w", sweep.kind, err)
		}
		total += n
	}
	return total, nil
}

// sqlNextProbes takes a share of each action's, so that a target with a thousand open outcomes does not hide another's one. What
// somebody holds is passed over, so that no worker waits for another.
const sqlNextProbes = `
select tenant_id, preview_id, item, action from (
  select e.tenant_id, e.preview_id, e.item, p.action, e.next_probe_at,
    row_number() over (partition by p.action order by e.next_probe_at) as place
  from executions e join previews p on p.id = e.preview_id
  where e.state in ('unknown', 'not_applied') and e.next_probe_at <= (select clock_timestamp())
    and (e.probe_until is null or e.probe_until <= clock_timestamp())
) due, lateral (select from previews p where p.id = due.preview_id for no key update skip locked) free
where place <= @limit order by next_probe_at`

// NextProbes lists due probes. See commit.Store.
func (s *Store) NextProbes(ctx context.Context, limit int) ([]commit.Due, error) {
	due, err := collect(ctx, s.worker, sqlNextProbes, pgx.NamedArgs{"limit": limit}, func(r pgx.CollectableRow) (commit.Due, error) {
		var d commit.Due
		var id uuid.UUID
		err := r.Scan(&d.Tenant, &id, &d.Item, &d.Action)
		d.ID = preview.ID(id)
		return d, err
	})
	if err != nil {
		return nil, fmt.Errorf("listing due probes: %w", err)
	}
	return due, nil
}

// sqlBeginProbe makes the probe the current attempt, which fences off the sender before it: a sender that wakes up later
// finds that its attempt is not current and sends nothing. A replay can cause the effect as a send can, so "absent" has to
// wait for it as for a send, and a freeze forbids it. What was found not applied, or refused by an answer, is looked at again
// after five minutes, an hour and a day: an effect may come late, and an answer may have been to a second delivery.
const sqlBeginProbe = `
with c as (` + sqlEpochs + `
), l as materialized (
  select id, tenant_id, action, target_key from previews where id = @id and tenant_id is not distinct from @tenant for update
), ok as materialized (
  select e.preview_id as id, e.item, e.tenant_id, clock_timestamp() as now from l join executions e on e.preview_id = l.id and e.item = @item
  where e.state = 'unknown' and (e.probe_until is null or e.probe_until <= clock_timestamp())
      and (@kind <> 'replay' or not (select restoring or frozen and exists (
        select from freeze_over(l.tenant_id, l.action, l.target_key)) from c))
    or e.state = 'not_applied' and (e.reason in ('looked_up', 'resolved') or e.evidence = 'receipt') and @kind = 'lookup'
  for update of e
), x as (
  update executions e set current_attempt = @attempt, probe_until = ok.now + @hold_for::interval,
    settle_at = case when @kind = 'replay' then greatest(e.settle_at, ok.now + @hold_for::interval + @settle_for::interval)
      else e.settle_at end
  from ok where e.preview_id = ok.id and e.item = ok.item and e.state = 'unknown'
), later as (
  update executions e set next_probe_at = case when ok.now < e.finished_at + interval '30 minutes' then e.finished_at + interval '1 hour'
      when ok.now < e.finished_at + interval '12 hours' then e.finished_at + interval '24 hours' end
  from ok where e.preview_id = ok.id and e.item = ok.item and e.state = 'not_applied'
), a as (
  insert into attempts (id, preview_id, item, tenant_id, kind, started_at) select @attempt, id, item, tenant_id, @kind, now from ok
)
select exists (select from ok)`

// BeginProbe takes an unknown execution for one probe. See commit.Store.
func (s *Store) BeginProbe(
	ctx context.Context, k commit.Key, attempt uuid.UUID, kind commit.AttemptKind, holdFor, settleFor time.Duration,
) (bool, error) {
	args := pgx.NamedArgs{
		"id": k.ID.UUID(), "tenant": k.Tenant, "item": k.Item, "attempt": attempt, "kind": string(kind), "hold_for": holdFor,
		"settle_for": settleFor,
	}
	var ok bool
	var err error
	if kind == commit.Replay {
		ok, err = s.beginReplay(ctx, args)
	} else {
		ok, err = s.move(ctx, sqlBeginProbe, args)
	}
	if err != nil {
		return false, fmt.Errorf("beginning a probe: %w", err)
	}
	return ok, nil
}

// beginReplay holds the lock that a freeze waits for, as a claim does.
func (s *Store) beginReplay(ctx context.Context, args pgx.NamedArgs) (ok bool, err error) {
	err = s.pipeline(ctx, s.pool, func(b *pgx.Batch) {
		b.Queue(sqlClaimGuard)
		b.Queue(sqlBeginProbe, args)
	}, func(r pgx.BatchResults) error {
		if _, err := r.Exec(); err != nil {
			return err
		}
		return r.QueryRow().Scan(&ok)
	})
	return ok, err
}
