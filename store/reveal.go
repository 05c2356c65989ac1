package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/preview"
)

// sqlRevealed moves nothing but the end of the chain.
const sqlRevealed = `
with l as materialized (
  select id from previews where id = @id and tenant_id is not distinct from @tenant for update
), ok as (
  select id, clock_timestamp() as now from l
), u as (
  update previews p set ` + nextHead + `
  from ok where p.id = @id returning p.id, p.tenant_id, p.audit_seq, p.audit_head, ok.now
)` + chained

// Revealed records that values are shown to somebody. See commit.Store.
func (s *Store) Revealed(ctx context.Context, tenant string, id preview.ID, by actor.Actor, fields []string) (bool, error) {
	recorded, err := s.move(ctx, sqlRevealed, pgx.NamedArgs{
		"id": id.UUID(), "tenant": tenant, "kind": "revealed", "actor": by.ID(),
		"body": body(map[string]any{"fields": fields, "person": by.Person()}),
	})
	if err != nil {
		return false, fmt.Errorf("recording that values are shown: %w", err)
	}
	return recorded, nil
}
