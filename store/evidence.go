package store

import (
	"context"
	"fmt"
	"time"
)

// sqlEvidence finds the oldest event that no seal covers by its transaction, as the sealer does. An index can be asked for the value
// of a subquery, where a join would walk it from its beginning.
const sqlEvidence = `
with last as materialized (
  select coalesce((select to_xid from seals order by number desc limit 1), '0') as to_xid
), oldest as (
  (select at from audit_events where xid >= (select to_xid from last) order by xid limit 1)
  union all (select at from control_events where xid >= (select to_xid from last) order by xid limit 1)
)
select coalesce((select extract(epoch from clock_timestamp() - min(at)) from oldest), 0)::float8,
  coalesce((select restoring from controls where tenant_id = ''), false),
  (select count(*) from restore_holds where state = 'held'), (select count(*) from restore_holds where state = 'found_ended')`

// Evidence is how far the seals are behind, and what a restore has left over, for metrics.
type Evidence struct {
	// SealLag is the age of the oldest event that is not sealed.
	SealLag   time.Duration
	Restoring bool
	// Held changes wait for a look at their target; FoundEnded are incidents.
	Held, FoundEnded int
}

// Evidence reads it over all tenants.
func (s *Store) Evidence(ctx context.Context) (e Evidence, err error) {
	var lag float64
	if err := s.worker.queryRow(ctx, sqlEvidence, nil).Scan(&lag, &e.Restoring, &e.Held, &e.FoundEnded); err != nil {
		return e, fmt.Errorf("reading how far the seals are behind: %w", err)
	}
	e.SealLag = time.Duration(lag * float64(time.Second))
	return e, nil
}
