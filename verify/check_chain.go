package verify

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/audit"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/preview"
)

const sqlEvents = `select preview_id, seq, tenant_id, kind, actor, at, body, hash from audit_events where preview_id = $1 order by seq`

var chain = Check{
	ID: "chain", Promise: "Each event of a change is linked to the one before it: an edited, removed or reordered one is named",
	Run: func(ctx context.Context, b *bench) (Proof, error) {
		p, err := b.prepare(ctx, "chained")
		if err != nil {
			return Proof{}, err
		}
		if c, err := b.core.apply(ctx, p); err != nil || c.Status != commit.StatusApplied {
			return Proof{}, fail("the change whose chain is looked at is %s (%v), want applied", c.Status, err)
		}
		if at, err := b.broken(ctx, p, ""); err != nil || at != 0 {
			return Proof{}, fail("a chain that nobody touched breaks at event %d (%v)", at, err)
		}
		for what, sql := range map[string]string{
			"edited":         `update audit_events set actor = 'human:somebody#else' where preview_id = $1 and seq = 2`,
			"edited in body": `update audit_events set body = body || '\x20' where preview_id = $1 and seq = 2`,
			"removed":        `delete from audit_events where preview_id = $1 and seq = 2`,
			// An event that is right in itself, over a head that never was: only the link tells.
			"rewritten with a hash of its own": `update audit_events set actor = 'human:somebody#else',
				hash = event_hash(decode(repeat('00', 32), 'hex'), preview_id, seq, kind, 'human:somebody#else', tenant_id, at, body)
				where preview_id = $1 and seq = 2`,
		} {
			if at, err := b.broken(ctx, p, sql); err != nil || at != 2 {
				return Proof{}, fail("event 2 was %s, and the chain breaks at %d (%v), want 2", what, at, err)
			}
		}
		if err := b.refusedSQL(ctx, "CU001", "an event edited by SQL", `update audit_events set actor = 'x' where preview_id = $1`, p.ID.UUID()); err != nil {
			return Proof{}, err
		}
		return Proof{
			Control: "an untouched chain verifies from the stored rows",
			Refusal: "with the triggers off, an event that was edited, removed or rewritten with a hash of its own is named by its number; with them on, the database refuses the edit",
		}, nil
	},
}

// broken verifies a change's chain after a forgery that is rolled back again, and returns where it breaks, 0 if nowhere.
func (b *bench) broken(ctx context.Context, p preview.Preview, forgery string) (at int64, err error) {
	tx, err := b.sql.Begin(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if forgery != "" {
		if _, err := tx.Exec(ctx, `alter table audit_events disable trigger user`); err != nil {
			return 0, err
		}
		if _, err := tx.Exec(ctx, forgery, p.ID.UUID()); err != nil {
			return 0, err
		}
	}
	rows, err := tx.Query(ctx, sqlEvents, p.ID.UUID())
	if err != nil {
		return 0, err
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[audit.Event])
	if err != nil {
		return 0, err
	}
	var where *audit.BrokenError
	switch err := audit.Verify(list); {
	case err == nil:
		return 0, nil
	case errors.As(err, &where):
		return where.Seq, nil
	default:
		return 0, err
	}
}
