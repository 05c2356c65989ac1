package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/audit"
	"github.com/cutonce/cutonce/preview"
)

// ExportFilter asks for a part of the audit trail. Zero fields ask for all.
type ExportFilter struct {
	Tenant string
	// Since restricts to changes on which something has happened since; each is exported whole.
	Since time.Time
}

// PublicName is the public ID of an exported chain.
func PublicName(chain [16]byte) string { return preview.ID(chain).String() }

// Export writes the audit trail as it is at one moment, row by row, for audit.Verifier. It reads only, and blocks nobody. Other
// tenants' leaves are written as hashes that say nothing.
func (s *Store) Export(ctx context.Context, f ExportFilter, to io.Writer) error {
	w := audit.NewWriter(to, PublicName)
	err := s.worker.transact(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		x := export{tx: tx, w: w, args: pgx.NamedArgs{"tenant": f.Tenant, "part": !f.Since.IsZero(), "since": f.Since}}
		var at time.Time
		if err := tx.QueryRow(ctx, `select clock_timestamp()`).Scan(&at); err != nil {
			return err
		}
		if err := w.Header(at, f.Tenant, f.Since); err != nil {
			return err
		}
		for _, part := range []func(context.Context) error{x.seals, x.controls, x.events, x.bare, x.tombstones} {
			if err := part(ctx); err != nil {
				return err
			}
		}
		return w.End()
	})
	if err != nil {
		return fmt.Errorf("exporting the audit trail: %w", err)
	}
	return nil
}

type export struct {
	tx   pgx.Tx
	w    *audit.Writer
	args pgx.NamedArgs
}

// each runs one statement and hands over its rows as they come.
func (x export) each(ctx context.Context, sql string, row func(pgx.Rows) error) error {
	rows, err := x.tx.Query(ctx, sql, x.args)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// chosen are the previews that a part of the trail is about: those with events, and those with seals, since then.
const chosen = `(
  select preview_id from audit_events where at >= @since
  union select l.chain from seal_leaves l join seals s on s.number = l.seal where l.kind = 'preview' and s.at >= @since)`

const sqlExportSeals = `select ` + sealColumns + ` from seals order by number`

const sqlExportLeaves = `
select seal, place, kind, chain, tenant_id, seq, head,
  (@tenant = '' or tenant_id = @tenant or kind = 'control' and tenant_id = '')
    and (kind = 'control' or not @part or chain in ` + chosen + `) as whole
from seal_leaves order by seal, place`

// seals writes each seal before its leaves. Seals are few and are read first: one connection serves one statement at a time.
func (x export) seals(ctx context.Context) error {
	var seals []audit.Seal
	if err := x.each(ctx, sqlExportSeals, func(rows pgx.Rows) error {
		s, err := scanSeal(rows)
		seals = append(seals, s)
		return err
	}); err != nil {
		return err
	}
	// upTo writes the seals that have not been written up to a number.
	upTo := func(number int64) error {
		for len(seals) > 0 && seals[0].Number <= number {
			if err := x.w.Seal(seals[0]); err != nil {
				return err
			}
			seals = seals[1:]
		}
		return nil
	}
	err := x.each(ctx, sqlExportLeaves, func(rows pgx.Rows) error {
		var seal, place int64
		var l audit.Leaf
		var whole bool
		err := rows.Scan(&seal, &place, &l.Kind, &l.Chain, &l.Tenant, &l.Seq, &l.Head, &whole)
		return errors.Join(err, upTo(seal), x.w.Leaf(seal, place, l, whole))
	})
	if err != nil || len(seals) == 0 {
		return err
	}
	return upTo(seals[len(seals)-1].Number)
}

const sqlExportControls = `
select '00000000-0000-0000-0000-000000000000'::uuid, e.seq, e.scope, e.kind, e.actor, e.at, e.body, e.hash, e.xid::text, k.audit_seq, k.audit_head
from control_events e left join controls k on k.tenant_id = e.scope
where @tenant = '' or e.scope in ('', @tenant) order by e.scope, e.seq`

func (x export) controls(ctx context.Context) error {
	return x.chains(ctx, sqlExportControls, x.w.Control, x.w.ControlHead)
}

const sqlExportEvents = `
select e.preview_id, e.seq, e.tenant_id, e.kind, e.actor, e.at, e.body, e.hash, e.xid::text, p.audit_seq, p.audit_head
from audit_events e left join previews p on p.id = e.preview_id
where (@tenant = '' or e.tenant_id = @tenant) and (not @part or e.preview_id in ` + chosen + `)
order by e.preview_id, e.seq`

func (x export) events(ctx context.Context) error {
	return x.chains(ctx, sqlExportEvents, x.w.Event, x.w.Head)
}

// chains writes events in the order of their chains, and behind each chain the end that its own record tells, if there is one.
func (x export) chains(
	ctx context.Context, sql string, event func(audit.Event, uint64) error, head func(audit.Leaf) error,
) error {
	var end *audit.Leaf
	var chain [16]byte
	var scope string
	closing := func() error {
		if end == nil {
			return nil
		}
		return head(*end)
	}
	first := true
	err := x.each(ctx, sql, func(rows pgx.Rows) error {
		var e audit.Event
		var xid string
		var seq *int64
		var hash []byte
		err := rows.Scan(&e.Preview, &e.Seq, &e.Tenant, &e.Kind, &e.Actor, &e.At, &e.Body, &e.Hash, &xid, &seq, &hash)
		if err != nil {
			return err
		}
		if first || e.Preview != chain || e.Preview == [16]byte{} && e.Tenant != scope {
			if err := closing(); err != nil {
				return err
			}
			first, end, chain, scope = false, nil, e.Preview, e.Tenant
		}
		if seq != nil {
			end = &audit.Leaf{Chain: e.Preview, Tenant: scope, Seq: *seq, Head: hash}
		}
		number, err := strconv.ParseUint(xid, 10, 64)
		return errors.Join(err, event(e, number))
	})
	return errors.Join(err, closing())
}

// sqlExportBare lists previews that have no event at all, which the service never leaves so.
const sqlExportBare = `
select id, tenant_id, audit_seq, audit_head from previews p
where (@tenant = '' or tenant_id = @tenant) and (not @part or id in ` + chosen + `)
  and not exists (select from audit_events e where e.preview_id = p.id) order by id`

func (x export) bare(ctx context.Context) error {
	return x.each(ctx, sqlExportBare, func(rows pgx.Rows) error {
		var l audit.Leaf
		err := rows.Scan(&l.Chain, &l.Tenant, &l.Seq, &l.Head)
		return errors.Join(err, x.w.Head(l))
	})
}

const sqlExportTombstones = `
select preview_id, tenant_id, audit_seq, audit_head, retired_at from tombstones
where @tenant = '' or tenant_id = @tenant order by preview_id`

func (x export) tombstones(ctx context.Context) error {
	return x.each(ctx, sqlExportTombstones, func(rows pgx.Rows) error {
		var l audit.Leaf
		var at time.Time
		err := rows.Scan(&l.Chain, &l.Tenant, &l.Seq, &l.Head, &at)
		return errors.Join(err, x.w.Tombstone(l, at))
	})
}
