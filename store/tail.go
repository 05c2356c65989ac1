package store

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/preview"
)

var _ preview.Feed = (*Store)(nil)

// sqlTailEnd is where the feed ends: what is older than the oldest transaction under way is complete.
const sqlTailEnd = `select pg_snapshot_xmin(pg_current_snapshot())::text`

// sqlTail reads what complete transactions wrote after a place. A transaction's number tells when it is complete, which sequence
// numbers and times cannot (see seal.go, whose index this uses). The end is read in the same statement and so of the same snapshot.
// Events of one transaction, which may be many where a sweep wrote them, are told apart by their chain and their place in it.
const sqlTail = `
with edge as materialized (select pg_snapshot_xmin(pg_current_snapshot()) as xid)
select v.xid::text, v.tenant_id, v.preview_id, v.seq, v.kind, v.at,
  coalesce((select b.kind from audit_events b where b.preview_id = v.preview_id and b.seq < v.seq and b.kind <> 'revealed'
    order by b.seq desc limit 1), ''), edge.xid::text
from edge left join lateral (
  select xid, tenant_id, preview_id, seq, kind, at from audit_events
  where xid >= @from::text::xid8 and xid < (select xid from edge) and (xid, preview_id, seq) > (@from::text::xid8, @id, @seq)
  order by xid, preview_id, seq limit @limit
) v on true`

// TailEnd reads where the feed ends. See preview.Feed.
func (s *Store) TailEnd(ctx context.Context) (place preview.Place, err error) {
	var edge string
	if err := s.worker.read(ctx, sqlTailEnd, nil, &edge); err != nil {
		return place, fmt.Errorf("finding the end of the feed: %w", err)
	}
	if place.Transaction, err = strconv.ParseUint(edge, 10, 64); err != nil {
		return place, fmt.Errorf("finding the end of the feed: %w", err)
	}
	return place, nil
}

// tailed is a row of the feed; where nothing is to be had there is one row without an event.
type tailed struct {
	xid, tenant, kind *string
	id                *uuid.UUID
	seq               *int64
	at                *time.Time
	before, edge      string
}

// Tail reads the feed. See preview.Feed.
func (s *Store) Tail(ctx context.Context, after preview.Place, limit int) ([]preview.Moved, preview.Place, error) {
	rows, err := collect(ctx, s.worker, sqlTail, tailArgs(after, limit), scanTailed)
	if err != nil {
		return nil, after, fmt.Errorf("reading the feed: %w", err)
	}
	moved, place, err := readTail(rows, limit)
	if err != nil {
		return nil, after, fmt.Errorf("reading the feed: %w", err)
	}
	return moved, place, nil
}

func tailArgs(after preview.Place, limit int) pgx.NamedArgs {
	return pgx.NamedArgs{"from": strconv.FormatUint(after.Transaction, 10), "id": after.ID.UUID(), "seq": after.Seq, "limit": limit}
}

func scanTailed(row pgx.CollectableRow) (t tailed, err error) {
	err = row.Scan(&t.xid, &t.tenant, &t.id, &t.seq, &t.kind, &t.at, &t.before, &t.edge)
	return t, err
}

// readTail gives the events, and the place after them: the last event where there may be more, else the edge. The edge is taken even if
// it lies before the place that was asked from, as it does on a server that was restored or took over without the last transactions:
// it counts on from there.
func readTail(rows []tailed, limit int) (moved []preview.Moved, place preview.Place, err error) {
	end := ""
	for _, t := range rows {
		end = t.edge
		if t.xid == nil {
			break
		}
		m := preview.Moved{Tenant: *t.tenant, ID: preview.ID(*t.id), Seq: *t.seq, Kind: *t.kind, At: *t.at, Before: t.before}
		moved = append(moved, m)
		if len(moved) == limit {
			end, place.ID, place.Seq = *t.xid, m.ID, m.Seq
		}
	}
	place.Transaction, err = strconv.ParseUint(end, 10, 64)
	return moved, place, err
}
