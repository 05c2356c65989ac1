package verify

import (
	"context"
	"fmt"
)

const sqlHeads = `
select count(*), count(*) filter (where p.audit_seq <> e.events or e.last is distinct from p.audit_head), coalesce(sum(e.events), 0)::bigint
from previews p, lateral (
  select count(*) as events, (array_agg(hash order by seq desc))[1] as last from audit_events where preview_id = p.id
) e`

var events = Check{
	ID: "audit-event", Promise: "No change of state without its audit event, in the same transaction",
	Run: func(ctx context.Context, b *bench) (Proof, error) {
		p, err := b.prepare(ctx, "event")
		if err != nil {
			return Proof{}, err
		}
		for _, forged := range []struct{ code, what, sql string }{
			{"CU003", "a state changed by SQL without an event", `update previews set state = 'canceled', ended_at = clock_timestamp() where id = $1`},
			{"23503", "a state changed by SQL with a number and no event",
				`update previews set state = 'canceled', ended_at = clock_timestamp(), audit_seq = audit_seq + 1 where id = $1`},
			{"CU001", "events removed by SQL", `delete from audit_events where preview_id = $1`},
		} {
			if err := b.refusedSQL(ctx, forged.code, forged.what, forged.sql, p.ID.UUID()); err != nil {
				return Proof{}, err
			}
		}
		var changes, wrong, all int64
		if err := b.sql.QueryRow(ctx, sqlHeads).Scan(&changes, &wrong, &all); err != nil {
			return Proof{}, err
		}
		if wrong != 0 || all <= changes {
			return Proof{}, fail("%d of %d changes do not end where their %d events do", wrong, changes, all)
		}
		return Proof{
			Control: fmt.Sprintf("the %d changes of this run end exactly where their %d events end", changes, all),
			Refusal: "a state changed by SQL without its event, or with a number and no event, was refused; so was removing events",
		}, nil
	},
}
