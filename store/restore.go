package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/audit"
	"github.com/cutonce/cutonce/preview"
)

// sqlDeclareRestore freezes the deployment and holds every change that may have been applied in the lost time: what is open,
// whatever it waits for; what has ended since, which the backup still knew as open; and what was claimed since and is not known to
// be applied. What had ended before the backup ended in the lost time's past too.
const sqlDeclareRestore = `
with ok as materialized (
  select clock_timestamp() as now, 'restore_declared' as kind
), u as (
  update controls k set restoring = true, restored_at = ok.now, freeze_epoch = next_number(k.freeze_epoch),
    restored_to = case when k.restoring then least(k.restored_to, @to::timestamptz) else @to::timestamptz end,
    witness_number = coalesce(@number, k.witness_number), witness_hash = coalesce(@hash, k.witness_hash), ` + nextControl + `
  from ok where k.tenant_id = '' and (@number::bigint is null or (k.witness_number, k.witness_hash) is distinct from (@number, @hash::bytea)
    and not exists (select from seals where number = @number and hash = @hash))
  returning ` + controlEnd + `, k.restored_to
), held as (
  insert into restore_holds (preview_id, tenant_id, action, held_at, next_look_at)
  select p.id, p.tenant_id, p.action, u.now, u.now from u, previews p
  where p.state in ('needs_approval', 'pending', 'approved')
    or p.state in ('rejected', 'canceled', 'expired') and p.ended_at > u.restored_to
    or p.state = 'claimed' and exists (select from executions e where e.preview_id = p.id
      and (e.state in ('applying', 'unknown') or e.state = 'not_applied' and e.started_at > u.restored_to))
  on conflict (preview_id) do update set state = 'held', held_at = excluded.held_at, next_look_at = excluded.next_look_at, looks = 0,
    look_until = null, needs_operator = false, resolvers = 1, said_by = null, said_happened = null, said_at = null, cleared_at = null
  returning preview_id
), ev as (
  insert into control_events (scope, seq, kind, actor, at, body, hash)
  select tenant_id, audit_seq, kind, @actor, now, @body, audit_head from u
)
select exists (select from u), (select count(*) from held)`

// Restore is somebody's word, or a witness's, that this database was restored from a backup.
type Restore struct {
	// To is the moment whose state was restored: what has happened since is forgotten.
	To time.Time
	// By names who says so, as an actor ("operator:kim"); Reason is why.
	By, Reason string
	// Witness is the seal that the database has forgotten, nil if a person declares. One that it knows, or that the last such
	// declaration covers, changes nothing.
	Witness *audit.Seal
}

// declareFor bounds a declaration, which may hold many changes.
const declareFor = 2 * time.Minute

// DeclareRestore freezes the deployment and holds what may have been applied in the lost time, in one transaction. It returns once
// every claim begun before it has ended. declared is false where the database knows the witness, or its restore was declared before.
func (s *Store) DeclareRestore(ctx context.Context, r Restore) (declared bool, held int, err error) {
	args := pgx.NamedArgs{
		"to": r.To, "number": (*int64)(nil), "hash": []byte(nil), "actor": r.By,
		"body": body(map[string]any{"to": r.To.UTC().Format(time.RFC3339Nano), "reason": r.Reason}),
	}
	if r.Witness != nil {
		args["number"], args["hash"] = &r.Witness.Number, r.Witness.Hash
	}
	ctx, cancel := context.WithTimeout(ctx, declareFor)
	defer cancel()
	err = s.worker.transact(ctx, pgx.TxOptions{}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sqlControlLock); err != nil {
			return err
		}
		return tx.QueryRow(ctx, sqlDeclareRestore, args).Scan(&declared, &held)
	})
	if err != nil {
		return false, 0, fmt.Errorf("declaring a restore: %w", passing(err))
	}
	return declared, held, nil
}

const sqlFinishRestore = `
with ok as materialized (
  select clock_timestamp() as now, 'restore_finished' as kind
), u as (
  update controls k set restoring = false, freeze_epoch = next_number(k.freeze_epoch), ` + nextControl + `
  from ok where k.tenant_id = '' and k.restoring
  returning ` + controlEnd + `
)` + controlChained

// FinishRestore lifts the freeze of a restore. What is still held stays so, each by itself. finished is false where there was none.
func (s *Store) FinishRestore(ctx context.Context, by, reason string) (finished bool, err error) {
	err = s.controlBy(ctx, s.worker, sqlFinishRestore, pgx.NamedArgs{"actor": by, "body": body(map[string]any{"reason": reason})}, &finished)
	if err != nil {
		return false, fmt.Errorf("finishing a restore: %w", err)
	}
	return finished, nil
}

// HeldChange is one change that a restore holds or has left for people.
type HeldChange struct {
	ID             preview.ID
	Tenant, Action string
	// State is held, found_ended (an incident: the effect is there though the change has ended otherwise) or handed_over (an unknown
	// outcome for operators).
	State         string
	Looks         int
	NeedsOperator bool
	// SaidBy is who of two operators has said what became of it.
	SaidBy string
}

// RestoreStatus is how a restore stands.
type RestoreStatus struct {
	Restoring bool
	// To and At are the last restore's, zero if there never was one; By and Reason are those of its declaration.
	To, At     time.Time
	By, Reason string
	// Counts are the holds by state; Open lists those that are not done, the first hundred.
	Counts map[string]int
	Open   []HeldChange
}

const sqlRestoreStatus = `
select k.restoring, k.restored_to, k.restored_at, coalesce(e.actor, ''), coalesce(convert_from(e.body, 'UTF8')::jsonb ->> 'reason', '')
from controls k left join lateral (
  select actor, body from control_events where scope = '' and kind = 'restore_declared' order by seq desc limit 1) e on true
where k.tenant_id = ''`

const sqlHoldCounts = `select state, count(*) from restore_holds group by state`

const sqlHolds = `
select preview_id, tenant_id, action, state, looks, needs_operator, coalesce(said_by, '') from restore_holds
where state in ('held', 'found_ended', 'handed_over') order by state, preview_id limit 100`

// RestoreStatus reads how the last restore stands.
func (s *Store) RestoreStatus(ctx context.Context) (r RestoreStatus, err error) {
	var to, at *time.Time
	err = s.worker.read(ctx, sqlRestoreStatus, pgx.NamedArgs{}, &r.Restoring, &to, &at, &r.By, &r.Reason)
	if err != nil {
		return r, fmt.Errorf("reading how a restore stands: %w", err)
	}
	if to != nil {
		r.To, r.At = *to, *at
	}
	r.Counts = map[string]int{}
	type count struct {
		State string
		N     int
	}
	counts, err1 := collect(ctx, s.worker, sqlHoldCounts, pgx.NamedArgs{}, pgx.RowToStructByPos[count])
	for _, c := range counts {
		r.Counts[c.State] = c.N
	}
	var err2 error
	r.Open, err2 = collect(ctx, s.worker, sqlHolds, pgx.NamedArgs{}, func(rows pgx.CollectableRow) (h HeldChange, err error) {
		var id uuid.UUID
		err = rows.Scan(&id, &h.Tenant, &h.Action, &h.State, &h.Looks, &h.NeedsOperator, &h.SaidBy)
		h.ID = preview.ID(id)
		return h, err
	})
	if err := errors.Join(err1, err2); err != nil {
		return r, fmt.Errorf("reading what a restore holds: %w", err)
	}
	return r, nil
}
