package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/audit"
)

var (
	_ audit.Seals   = (*Store)(nil)
	_ audit.History = (*Store)(nil)
)

const (
	// sealBatch bounds the leaves of one seal, catchUpBatch those of the first ones of a window, which each read everything.
	sealBatch    = 20_000
	catchUpBatch = 200_000
	// sealFor bounds one pass: the first one over an old database reads all of it.
	sealFor = 10 * time.Minute
)

// sqlSealLock lets one replica seal at a time. The lock ends with the transaction, so that it works behind transaction poolers.
const sqlSealLock = `
select pg_try_advisory_xact_lock(hashtextextended('cutonce.seal', 0))`

// sqlSealMoment: what is older than the oldest transaction under way is complete. A transaction that is open in another database
// of the cluster holds that back too.
const sqlSealMoment = `
select clock_timestamp(), pg_snapshot_xmin(pg_current_snapshot())::text, (select system_identifier from pg_control_system())`

const sealColumns = `number, window_no, system_id, from_xid::text, to_xid::text, caught_up, at, leaves, prev, root, hash, key_id, signature`

const sqlLastSeal = `select ` + sealColumns + ` from seals order by number desc limit 1`

const sqlSealAt = `select ` + sealColumns + ` from seals where number = @number`

// sqlSealBound is where a seal that would grow too large ends: between transactions. One that is too large alone goes whole, or sealing
// would stand still before it for ever.
const sqlSealBound = `
select greatest(xid::text::numeric, 1 + (
  select xid::text::numeric from audit_events where xid >= @from::text::xid8 and xid < @to::text::xid8 order by xid limit 1))::text
from audit_events where xid >= @from::text::xid8 and xid < @to::text::xid8 order by xid offset @limit limit 1`

// sqlChanged lists the ends of the chains that a complete transaction has changed since the last seal.
const sqlChanged = `
select 'preview', c.preview_id, e.tenant_id, e.seq, e.hash
from (select distinct preview_id from audit_events where xid >= @from::text::xid8 and xid < @to::text::xid8) c,
  lateral (select tenant_id, seq, hash from audit_events where preview_id = c.preview_id order by seq desc limit 1) e
union all
select 'control', '00000000-0000-0000-0000-000000000000', c.scope, e.seq, e.hash
from (select distinct scope from control_events where xid >= @from::text::xid8 and xid < @to::text::xid8) c,
  lateral (select seq, hash from control_events where scope = c.scope order by seq desc limit 1) e
order by 1, 2, 3`

// sqlUncovered lists the ends of chains that no seal covers, whatever their transactions are called: they may be those of another
// cluster.
const sqlUncovered = `
with sealed as materialized (
  select kind, chain, case when kind = 'control' then tenant_id else '' end as scope, max(seq) as seq from seal_leaves group by 1, 2, 3
), ends as (
  select 'preview' as kind, preview_id as chain, '' as scope, max(seq) as seq from audit_events group by 2
  union all
  select 'control', '00000000-0000-0000-0000-000000000000', scope, max(seq) from control_events group by 3
), missing as materialized (
  select e.* from ends e left join sealed s on s.kind = e.kind and s.chain = e.chain and s.scope = e.scope
  where s.seq is null or s.seq < e.seq order by 1, 2, 3 limit @limit
)
select m.kind, m.chain, coalesce(e.tenant_id, m.scope), m.seq, coalesce(e.hash, k.hash)
from missing m left join audit_events e on m.kind = 'preview' and e.preview_id = m.chain and e.seq = m.seq
  left join control_events k on m.kind = 'control' and k.scope = m.scope and k.seq = m.seq
order by 1, 2, 3`

const sqlStoreSeal = `
with s as (
  insert into seals (number, window_no, system_id, from_xid, to_xid, caught_up, at, leaves, prev, root, hash, key_id, signature)
  values (@number, @window, @system, @from::text::xid8, @to::text::xid8, @caught_up, @at, @leaves, @prev, @root, @hash, @key_id, @signature)
)
insert into seal_leaves (seal, place, kind, chain, tenant_id, seq, head)
select @number, l.place - 1, l.kind, l.chain, l.tenant, l.seq, l.head
from unnest(@kinds::text[], @chains::uuid[], @tenants::text[], @seqs::bigint[], @heads::bytea[]) with ordinality
  as l (kind, chain, tenant, seq, head, place)`

// SealNext makes the next seal. See audit.Seals.
func (s *Store) SealNext(ctx context.Context, sign func(audit.Draft) audit.Seal) (*audit.Seal, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, sealFor)
	defer cancel()
	var sealed *audit.Seal
	var more bool
	// One snapshot for all of it: what is complete, and what is read, must be of the same moment.
	err := s.durably(ctx, func(tx pgx.Tx) (_ bool, err error) {
		sealed, more, err = sealIn(ctx, tx, sign)
		return sealed != nil, err
	})
	switch {
	case violates(err, "seals_pkey"):
		return nil, false, nil // another replica has sealed since this transaction's snapshot
	case err != nil:
		return nil, false, err
	}
	return sealed, more, nil
}

func sealIn(ctx context.Context, tx pgx.Tx, sign func(audit.Draft) audit.Seal) (*audit.Seal, bool, error) {
	var free bool
	if err := tx.QueryRow(ctx, sqlSealLock).Scan(&free); err != nil || !free {
		return nil, false, err
	}
	draft, full, err := draftIn(ctx, tx)
	if err != nil || len(draft.Leaves) == 0 && !draft.closes() {
		return nil, false, err
	}
	seal := sign(draft.Draft)
	if _, err := tx.Exec(ctx, sqlStoreSeal, sealArgs(seal, draft.Leaves)); err != nil {
		return nil, false, fmt.Errorf("storing a seal: %w", err)
	}
	return &seal, full, nil
}

// draft is a seal in the making; last is the seal before it, nil if there is none.
type draft struct {
	audit.Draft
	last *audit.Seal
}

// closes reports whether an empty seal says something: that a window is caught up.
func (d draft) closes() bool {
	return d.Next.CaughtUp && d.last != nil && (!d.last.CaughtUp || d.last.Window != d.Next.Window)
}

// draftIn reads what the next seal shall cover. In a new window, which begins with the first seal of all and with every other
// cluster, that is whatever no seal covers; from then on it is what complete transactions have changed.
func draftIn(ctx context.Context, tx pgx.Tx) (d draft, full bool, err error) {
	var horizon string
	var system int64
	if err := tx.QueryRow(ctx, sqlSealMoment).Scan(&d.Next.At, &horizon, &system); err != nil {
		return d, false, fmt.Errorf("reading what is complete: %w", err)
	}
	if d.last, err = sealIf(tx.QueryRow(ctx, sqlLastSeal)); err != nil {
		return d, false, err
	}
	d.Next.System, d.Next.Number, d.Next.Window, d.Next.Prev = uint64(system), 1, 1, audit.Genesis[:]
	if d.Next.To, err = strconv.ParseUint(horizon, 10, 64); err != nil {
		return d, false, fmt.Errorf("reading what is complete: %w", err)
	}
	catching := true
	if last := d.last; last != nil {
		d.Next.Number, d.Next.Prev, d.Next.Window = last.Number+1, last.Hash, last.Window
		if last.System != d.Next.System {
			d.Next.Window++
		} else if catching = !last.CaughtUp; catching {
			d.Next.From, d.Next.To = last.From, last.To
		} else {
			d.Next.From = last.To
		}
	}
	if catching {
		d.Leaves, err = leavesOf(tx.Query(ctx, sqlUncovered, pgx.NamedArgs{"limit": catchUpBatch}))
		full = len(d.Leaves) == catchUpBatch
		d.Next.CaughtUp = !full
		return d, full, err
	}
	d.Next.CaughtUp = true
	return d.changed(ctx, tx)
}

func (d draft) changed(ctx context.Context, tx pgx.Tx) (_ draft, full bool, err error) {
	args := pgx.NamedArgs{"from": strconv.FormatUint(d.Next.From, 10), "to": strconv.FormatUint(d.Next.To, 10), "limit": sealBatch}
	var bound string
	switch err := tx.QueryRow(ctx, sqlSealBound, args).Scan(&bound); {
	case err == nil:
		full, args["to"] = true, bound
		if d.Next.To, err = strconv.ParseUint(bound, 10, 64); err != nil {
			return d, false, fmt.Errorf("reading where a seal ends: %w", err)
		}
	case !errors.Is(err, pgx.ErrNoRows):
		return d, false, fmt.Errorf("reading where a seal ends: %w", err)
	}
	d.Leaves, err = leavesOf(tx.Query(ctx, sqlChanged, args))
	return d, full, err
}

func leavesOf(rows pgx.Rows, err error) ([]audit.Leaf, error) {
	if err != nil {
		return nil, fmt.Errorf("reading what has changed: %w", err)
	}
	leaves, err := pgx.CollectRows(rows, pgx.RowToStructByPos[audit.Leaf])
	if err != nil {
		return nil, fmt.Errorf("reading what has changed: %w", err)
	}
	return leaves, nil
}

func sealArgs(s audit.Seal, leaves []audit.Leaf) pgx.NamedArgs {
	kinds, tenants, seqs := make([]string, len(leaves)), make([]string, len(leaves)), make([]int64, len(leaves))
	chains, heads := make([]uuid.UUID, len(leaves)), make([][]byte, len(leaves))
	for i, l := range leaves {
		kinds[i], chains[i], tenants[i], seqs[i], heads[i] = l.Kind, l.Chain, l.Tenant, l.Seq, l.Head
	}
	return pgx.NamedArgs{
		"number": s.Number, "window": s.Window, "system": int64(s.System),
		"from": strconv.FormatUint(s.From, 10), "to": strconv.FormatUint(s.To, 10), "caught_up": s.CaughtUp, "at": s.At,
		"leaves": s.Leaves, "prev": s.Prev, "root": s.Root, "hash": s.Hash, "key_id": s.KeyID, "signature": s.Signature,
		"kinds": kinds, "chains": chains, "tenants": tenants, "seqs": seqs, "heads": heads,
	}
}

// sealIf scans a seal, nil if there is none.
func sealIf(row pgx.Row) (*audit.Seal, error) {
	s, err := scanSeal(row)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading a seal: %w", err)
	}
	return &s, nil
}

func scanSeal(row pgx.Row) (s audit.Seal, err error) {
	var system int64
	var from, to string
	err = row.Scan(&s.Number, &s.Window, &system, &from, &to, &s.CaughtUp, &s.At, &s.Leaves, &s.Prev, &s.Root, &s.Hash, &s.KeyID, &s.Signature)
	if err != nil {
		return s, err
	}
	var err1, err2 error
	s.From, err1 = strconv.ParseUint(from, 10, 64)
	s.To, err2 = strconv.ParseUint(to, 10, 64)
	s.System = uint64(system)
	return s, errors.Join(err1, err2)
}

// SealAt reads one seal. See audit.History.
func (s *Store) SealAt(ctx context.Context, number int64) (*audit.Seal, error) {
	return sealIf(s.worker.queryRow(ctx, sqlSealAt, pgx.NamedArgs{"number": number}))
}

// LastSeal reads the last seal, nil if there is none.
func (s *Store) LastSeal(ctx context.Context) (*audit.Seal, error) {
	return sealIf(s.worker.queryRow(ctx, sqlLastSeal, nil))
}
