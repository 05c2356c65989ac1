package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/internal/money"
	"github.com/cutonce/cutonce/preview"
)

// sqlExposure sums what each cap counts, in the window of now. What is pending has reserved nothing and is read from its rulings.
const sqlExposure = `
select c.cap, c.per, c."window", c.zone, c.currency, c.minor,
  coalesce(c."limit", floor(coalesce(l.opening_minor, c.before) * c.percent::numeric / 100))::bigint,
  t.used::bigint, (t.held - t.unknown)::bigint, t.unknown::bigint, q.pending::bigint,
  (date_trunc(c."window", w.start at time zone c.zone) + ('1 ' || c."window")::interval) at time zone c.zone
from jsonb_to_recordset(@charges::jsonb) as c(cap text, per text, scope text, "window" text, zone text, currency text, minor bigint,
  before bigint, "limit" bigint, percent text)
cross join lateral (select date_trunc(c."window", clock_timestamp(), c.zone) as start) w
left join cap_ledgers l on (l.tenant_id, l.cap, l.scope_key, l.currency, l.window_start) = (@tenant, c.cap, c.scope, c.currency, w.start)
cross join lateral cap_totals(@tenant, c.cap, c.scope, c.currency, w.start, @apart) t
cross join lateral (
  select coalesce(sum((x ->> 'minor')::bigint), 0) as pending from previews p cross join lateral jsonb_array_elements(p.ruling -> 'charges') x
  where p.tenant_id = @tenant and p.state = 'pending' and p.deadline > clock_timestamp() and p.id <> @apart
    and x ->> 'cap' = c.cap and x ->> 'scope' = c.scope and x ->> 'currency' = c.currency) q
order by c.cap`

// Exposure reads totals. See preview.Store.
func (s *Store) Exposure(ctx context.Context, tenant string, apart preview.ID, charges []preview.Charge) ([]preview.Exposure, error) {
	if len(charges) == 0 {
		return nil, nil
	}
	asked, err := json.Marshal(charges)
	if err != nil {
		return nil, fmt.Errorf("writing charges: %w", err)
	}
	args := pgx.NamedArgs{"tenant": tenant, "apart": apart.UUID(), "charges": string(asked)}
	all, err := collect(ctx, s.pool, sqlExposure, args, func(r pgx.CollectableRow) (preview.Exposure, error) {
		var e preview.Exposure
		var zone string
		var currency money.Currency
		var minor, limit, applied, reserved, unknown, pending int64
		err := r.Scan(&e.Cap, &e.Per, &e.Window, &zone, &currency, &minor, &limit, &applied, &reserved, &unknown, &pending, &e.ResetsAt)
		of := func(minor int64) money.Amount { return money.Amount{Minor: minor, Currency: currency} }
		e.Asked, e.Limit, e.Applied, e.Reserved, e.Unknown, e.Pending = of(minor), of(limit), of(applied), of(reserved), of(unknown), of(pending)
		if at, zoneErr := time.LoadLocation(zone); zoneErr == nil {
			e.ResetsAt = e.ResetsAt.In(at)
		}
		return e, err
	})
	if err != nil {
		return nil, fmt.Errorf("reading what changes add up to: %w", err)
	}
	return all, nil
}
