package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cutonce/cutonce/preview"
)

// sqlRetire removes what was settled long ago from one page of previews, oldest first, and leaves their tombstones and one control
// event with their digest, in one transaction. What another worker or a late proof holds is passed over. The database refuses the whole batch where a tombstone
// does not say what its preview was, or where a preview is not settled, or not for long enough (migration 00007). The batch is
// handed on as an array, so that its rows are found by their indexes however many there are of others.
const sqlRetire = `
with page as materialized (
  select id, created_at from previews where id > @after order by id limit @limit
), ok as materialized (
  select clock_timestamp() as now, 'retired' as kind
), old as materialized (
  select p.id, p.tenant_id, p.audit_seq, p.audit_head, settled_at(p.id) as settled_at,
    key_hash(p.tenant_id, p.requester_id, p.action, p.idempotency_key) as key_hash
  from page join previews p on p.id = page.id
  where page.created_at <= clock_timestamp() - @keep::interval and settled_at(p.id) <= clock_timestamp() - @keep::interval
  for update of p skip locked
), t as (
  insert into tombstones (preview_id, tenant_id, audit_seq, audit_head, key_hash, settled_at, retired_at)
  select id, tenant_id, audit_seq, audit_head, key_hash, settled_at, now from old, ok
  returning preview_id, audit_seq, audit_head
), batch as materialized (
  select count(*) as n, convert_to(format('{"changes":%s,"digest":"%s"}', count(*), encode(sha256(
    coalesce(string_agg(uuid_send(preview_id) || int8send(audit_seq) || audit_head, '' order by preview_id), '')), 'hex')), 'UTF8') as body
  from t
), u as (
  update controls k set audit_seq = k.audit_seq + 1,
    audit_head = control_hash(k.audit_head, k.tenant_id, k.audit_seq + 1, ok.kind, @actor, ok.now, batch.body)
  from ok, batch where k.tenant_id = '' and batch.n > 0
  returning ` + controlEnd + `, batch.body
), ev as (
  insert into control_events (scope, seq, kind, actor, at, body, hash)
  select tenant_id, audit_seq, kind, @actor, now, body, audit_head from u
), resolutions_gone as (delete from resolutions where preview_id = any(array(select preview_id from t))
), attempts_gone as (delete from attempts where preview_id = any(array(select preview_id from t))
), executions_gone as (delete from executions where preview_id = any(array(select preview_id from t))
), decisions_gone as (delete from decisions where preview_id = any(array(select preview_id from t))
), events_gone as (delete from audit_events where preview_id = any(array(select preview_id from t))
), previews_gone as (delete from previews where id = any(array(select preview_id from t))
), last as (
  select id, created_at from page order by id desc limit 1
)
select (select n from batch), (select id from last),
  coalesce((select created_at > clock_timestamp() - @keep::interval from last), true)`

// Retired is how far one batch came.
type Retired struct {
	// Count is how many previews were removed.
	Count int
	// Next is where the next batch begins.
	Next preview.ID
	// Done is set when everything behind Next is too young.
	Done bool
}

// Retire looks at the next limit previews after a place, oldest first, and removes those on which nothing has happened for keep
// and nothing will: with their executions, attempts, decisions and audit events, in one transaction. A tombstone stays for ever.
// The ID is then unknown to every call, and the idempotency key is refused. The database's own floor stands under keep.
func (s *Store) Retire(ctx context.Context, keep time.Duration, after preview.ID, limit int) (Retired, error) {
	var r Retired
	var next *uuid.UUID
	err := s.write(ctx, s.worker, sqlRetire, pgx.NamedArgs{"keep": keep, "after": after.UUID(), "limit": limit, "actor": service},
		&r.Count, &next, &r.Done)
	if err != nil {
		return Retired{Next: after}, fmt.Errorf("retiring old changes: %w", err)
	}
	if next != nil {
		r.Next = preview.ID(*next)
	}
	return r, nil
}

// retired is the SQLSTATE by which the schema refuses a name that belongs to a tombstone.
const retired = "CU011"

func nameRetired(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == retired
}

// RetentionFloor is the shortest Keep that the schema allows: far above every clock of a change and every key that a target
// remembers.
const RetentionFloor = 30 * 24 * time.Hour

// retireBatch bounds one transaction of the worker.
const retireBatch = 200

// Retention removes what was settled longer than Keep ago. It is safe to run on every replica.
type Retention struct {
	Store *Store
	// Keep is how long a settled change stays on record; zero keeps everything for ever.
	Keep time.Duration
	// Every is the pause between passes; zero means an hour.
	Every time.Duration
	Log   *slog.Logger
}

// Run makes passes until ctx ends.
func (r Retention) Run(ctx context.Context) error {
	if r.Keep <= 0 {
		return nil
	}
	every := r.Every
	if every == 0 {
		every = time.Hour
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		n, err := r.Pass(ctx)
		if n > 0 {
			r.Log.InfoContext(ctx, "records of old changes were retired", "changes", n, "settled_for", r.Keep.String())
		}
		if err != nil && ctx.Err() == nil {
			r.Log.WarnContext(ctx, "retiring failed; the next pass tries again", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// rest is between two batches, so that changes under way are not held up.
const rest = 100 * time.Millisecond

// Pass goes once from the oldest preview to the first that is too young, and says how many were removed.
func (r Retention) Pass(ctx context.Context) (int, error) {
	total := 0
	var after preview.ID
	for {
		batch, err := r.Store.Retire(ctx, r.Keep, after, retireBatch)
		total += batch.Count
		if err != nil || batch.Done {
			return total, err
		}
		after = batch.Next
		select {
		case <-ctx.Done():
			return total, nil
		case <-time.After(rest):
		}
	}
}
