package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/preview"
)

// Outbox makes the chained events into deliveries, each once: the place in the feed moves in the transaction that makes them. It has a
// small pool of its own, so that whatever happens to deliveries takes no connection away from changes, and its connections are the
// worker's from their beginning: what River does is of all tenants.
type Outbox struct{ pool *pgxpool.Pool }

// outboxConns suffice for the relay, for River's own work and for a few deliveries that look at their change.
const outboxConns = 5

// OpenOutbox connects. The places are those of the database, whichever replica asks.
func OpenOutbox(ctx context.Context, c Config) (*Outbox, error) {
	link, err := c.look(ctx)
	if err != nil {
		return nil, err
	}
	if link.pooled {
		return nil, errors.New("deliveries need connections of their own, and a transaction pooler has none to give: name the server itself in CUTONCE_DATABASE_DIRECT_URL")
	}
	pool, err := c.newPool(ctx, link, outboxConns, func(p *pgxpool.Config) { p.ConnConfig.RuntimeParams["role"] = "cutonce_worker" })
	if err != nil {
		return nil, err
	}
	return &Outbox{pool: pool}, nil
}

// Pool is for River, whose driver wants it.
func (o *Outbox) Pool() *pgxpool.Pool { return o.pool }

// Load reads a change over the outbox's own connections. See commit.Store.
func (o *Outbox) Load(ctx context.Context, tenant string, id preview.ID, detail bool) (commit.Change, commit.Epochs, error) {
	return (&Store{pool: bounded{pool: o.pool}}).Load(ctx, tenant, id, detail)
}

// Close ends its connections.
func (o *Outbox) Close() { o.pool.Close() }

// sqlPlaceFirst begins the feed with what happens from now on, where it was never begun.
const sqlPlaceFirst = `
insert into notify_place (xid, preview_id, seq, moved_at)
values (pg_snapshot_xmin(pg_current_snapshot()), '00000000-0000-0000-0000-000000000000', 0, clock_timestamp())
on conflict do nothing`

// sqlPlace locks the place for the one replica that makes the next deliveries. It finds nothing while another one does.
const sqlPlace = `select xid::text, preview_id, seq from notify_place for update skip locked`

const sqlMovePlace = `
update notify_place set xid = @xid::text::xid8, preview_id = @id, seq = @seq, moved_at = clock_timestamp()`

// Begin makes the place, if there is none yet: what happened before is not told.
func (o *Outbox) Begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	if _, err := o.pool.Exec(ctx, sqlPlaceFirst); err != nil {
		return passing(fmt.Errorf("beginning the feed: %w", err))
	}
	return nil
}

// Relay hands the next events over, and moves the place past them in the same transaction, which hand may write in. more is true if there
// are events left. It does nothing while another replica does it.
func (o *Outbox) Relay(ctx context.Context, limit int, hand func(context.Context, pgx.Tx, []preview.Moved) error) (more bool, err error) {
	err = o.transaction(ctx, func(ctx context.Context, tx pgx.Tx) error {
		place, ok, err := placeIn(ctx, tx)
		if err != nil || !ok {
			return err
		}
		moved, next, err := tailIn(ctx, tx, place, limit)
		if err != nil || len(moved) == 0 && next.Transaction >= place.Transaction {
			return err // the place stands still while nothing happens, so that a quiet database is not written to
		}
		if len(moved) > 0 {
			if err := hand(ctx, tx, moved); err != nil {
				return err
			}
		}
		more = len(moved) == limit
		_, err = tx.Exec(ctx, sqlMovePlace, pgx.NamedArgs{
			"xid": strconv.FormatUint(next.Transaction, 10), "id": next.ID.UUID(), "seq": next.Seq,
		})
		return err
	})
	if err != nil {
		return false, fmt.Errorf("making deliveries of events: %w", err)
	}
	return more, nil
}

func placeIn(ctx context.Context, tx pgx.Tx) (place preview.Place, ok bool, err error) {
	var xid string
	var id uuid.UUID
	switch err := tx.QueryRow(ctx, sqlPlace).Scan(&xid, &id, &place.Seq); {
	case errors.Is(err, pgx.ErrNoRows):
		return place, false, nil
	case err != nil:
		return place, false, err
	}
	place.ID = preview.ID(id)
	place.Transaction, err = strconv.ParseUint(xid, 10, 64)
	return place, err == nil, err
}

func tailIn(ctx context.Context, tx pgx.Tx, after preview.Place, limit int) ([]preview.Moved, preview.Place, error) {
	rows, err := tx.Query(ctx, sqlTail, tailArgs(after, limit))
	if err != nil {
		return nil, after, err
	}
	read, err := pgx.CollectRows(rows, scanTailed)
	if err != nil {
		return nil, after, err
	}
	return readTail(read, limit)
}

// sqlExpiring takes what waits for people and will soon have waited too long: within the given time, and in the last quarter of the time
// it had. Each deadline is taken once.
const sqlExpiring = `
with soon as materialized (
  select p.tenant_id, p.id, p.audit_seq, p.deadline from previews p
  where p.state = 'pending' and p.deadline > (select clock_timestamp()) and p.deadline <= (select clock_timestamp()) + @within::interval
    and clock_timestamp() >= p.deadline - (p.deadline - p.requested_at) / 4
    and not exists (select from notify_told t where t.preview_id = p.id and t.kind = @kind and t.deadline = p.deadline)
  order by p.deadline limit @limit
), told as (
  insert into notify_told (preview_id, kind, deadline, told_at) select id, @kind, deadline, clock_timestamp() from soon
  on conflict do nothing returning preview_id
)
select s.tenant_id, s.id, s.audit_seq, clock_timestamp() from soon s join told t on t.preview_id = s.id`

const sqlForgetTold = `delete from notify_told where deadline < (select clock_timestamp()) - interval '24 hours'`

// Expiring hands over what is about to expire, each deadline once, in a transaction that hand may write in. What it hands over is no
// event: Seq is the last one's, Kind the given word.
func (o *Outbox) Expiring(
	ctx context.Context, kind string, within time.Duration, limit int, hand func(context.Context, pgx.Tx, []preview.Moved) error,
) error {
	err := o.transaction(ctx, func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, sqlExpiring, pgx.NamedArgs{"kind": kind, "within": within, "limit": limit})
		if err != nil {
			return err
		}
		soon, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (m preview.Moved, err error) {
			var id uuid.UUID
			m.Kind = kind
			err = row.Scan(&m.Tenant, &id, &m.Seq, &m.At)
			m.ID = preview.ID(id)
			return m, err
		})
		if err != nil {
			return err
		}
		if len(soon) > 0 {
			if err := hand(ctx, tx, soon); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, sqlForgetTold)
		return err
	})
	if err != nil {
		return fmt.Errorf("making deliveries of what is about to expire: %w", err)
	}
	return nil
}

// relayFor bounds one transaction of the relay.
const relayFor = 15 * time.Second

func (o *Outbox) transaction(ctx context.Context, do func(context.Context, pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, relayFor)
	defer cancel()
	return passing(pgx.BeginFunc(ctx, o.pool, func(tx pgx.Tx) error { return do(ctx, tx) }))
}

// sqlTold is how far deliveries are behind: the age of the oldest event that was not made into deliveries, those that wait, and those
// that were given up.
const sqlTold = `
with place as materialized (select xid, preview_id, seq from notify_place)
select
  coalesce((select extract(epoch from clock_timestamp() - v.at) from audit_events v
    where v.xid >= (select xid from place) and (v.xid, v.preview_id, v.seq) > (select xid, preview_id, seq from place)
    order by v.xid, v.preview_id, v.seq limit 1), 0)::float8,
  (select count(*) from river_job where kind = @job and state in ('available', 'running', 'retryable', 'scheduled')),
  coalesce((select extract(epoch from clock_timestamp() - min(created_at)) from river_job
    where kind = @job and state in ('available', 'running', 'retryable')), 0)::float8,
  (select count(*) from river_job where kind = @job and state in ('discarded', 'cancelled'))`

// Told is how far deliveries are behind, for metrics.
type Told struct {
	// Lag is the age of the oldest event that was not made into deliveries yet, Oldest that of the oldest delivery that is still tried.
	Lag, Oldest   time.Duration
	Waiting, Dead int
}

// Told reads it over all tenants.
func (o *Outbox) Told(ctx context.Context, job string) (t Told, err error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	var lag, oldest float64
	err = o.pool.QueryRow(ctx, sqlTold, pgx.NamedArgs{"job": job}).Scan(&lag, &t.Waiting, &oldest, &t.Dead)
	if err != nil {
		return t, passing(fmt.Errorf("reading how far deliveries are behind: %w", err))
	}
	t.Lag, t.Oldest = time.Duration(lag*float64(time.Second)), time.Duration(oldest*float64(time.Second))
	return t, nil
}
