package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/preview"
)

// sqlStatus is commit.StatusOf in SQL, for filters only; a test compares the two.
const sqlStatus = `
case when p.state in ('needs_approval', 'pending', 'approved') and p.deadline <= clock_timestamp() then 'expired'
  when p.state <> 'claimed' then p.state
  else (select case
      when count(*) = 0 or bool_or(s = 'applying' or s = 'not_sent') then 'applying'
      when bool_or(s = 'unknown') then 'unknown'
      when bool_and(s = 'applied') then 'applied'
      when bool_and(s = 'not_applied') then 'not_applied'
      else 'partly_applied' end
    from (select case when e.state = 'applying' and e.lease_until <= clock_timestamp() then 'unknown' else e.state end as s
      from executions e where e.preview_id = p.id) x)
  end`

const sqlList = `
select ` + previewColumns + `, ` + executionColumns + `, clock_timestamp()
from previews p
where p.tenant_id = @tenant
  and (@owner = '' or p.requester_id = @owner or (@person <> '' and p.requester_person = @person))
  and (@target = '' or p.target_id = @target)
  and (@action = '' or p.action = @action)
  and (@status = '' or @status = (` + sqlStatus + `))
  and (not @handed_over or exists (select from executions e where e.preview_id = p.id and e.needs_operator))
  and (@before::uuid is null or p.id < @before)
order by p.id desc limit @limit`

// List lists changes, the newest first. See commit.Store.
func (s *Store) List(ctx context.Context, f commit.Filter) ([]commit.Change, string, error) {
	var before *uuid.UUID
	if f.Cursor != "" {
		var place newest
		if err := readCursor(f.Cursor, &place); err != nil {
			return nil, "", err
		}
		before = &place.ID
	}
	changes, err := collect(ctx, s.pool, sqlList, pgx.NamedArgs{
		"tenant": f.Tenant, "owner": f.OwnerID, "person": f.OwnerPerson, "target": f.TargetID, "action": f.Action,
		"status": string(f.Status), "handed_over": f.NeedsOperator, "before": before, "limit": f.Limit + 1,
	}, scanChange)
	if err != nil {
		return nil, "", fmt.Errorf("listing changes: %w", err)
	}
	if len(changes) <= f.Limit {
		return changes, "", nil
	}
	changes = changes[:f.Limit]
	return changes, writeCursor(newest{ID: changes[f.Limit-1].Preview.ID.UUID()}), nil
}

func scanChange(rows pgx.CollectableRow) (commit.Change, error) {
	var r row
	var executions []byte
	var now time.Time
	if err := rows.Scan(append(r.into(), &executions, &now)...); err != nil {
		return commit.Change{}, err
	}
	return changeOf(&r, executions, now)
}

const sqlQueue = `
select ` + previewColumns + `, clock_timestamp() from previews p
where p.tenant_id = @tenant and p.state = 'pending' and p.deadline > clock_timestamp()
  and (@after::timestamptz is null or (p.deadline, p.id) > (@after, @after_id::uuid))
order by p.deadline, p.id limit @limit`

// soonest is the place in the queue, which runs from the first to expire.
type soonest struct {
	Deadline time.Time `json:"d"`
	ID       uuid.UUID `json:"i"`
}

// Queue lists what waits for a decision. See approvals.Store.
func (s *Store) Queue(ctx context.Context, tenant string, page approvals.Page) ([]preview.Preview, string, time.Time, error) {
	limit := page.Limit
	if limit <= 0 || limit > 100 {
		limit = 50
	}
	args := pgx.NamedArgs{"tenant": tenant, "after": (*time.Time)(nil), "after_id": (*uuid.UUID)(nil), "limit": limit + 1}
	if page.Cursor != "" {
		var place soonest
		if err := readCursor(page.Cursor, &place); err != nil {
			return nil, "", time.Time{}, err
		}
		args["after"], args["after_id"] = place.Deadline, place.ID
	}
	var now time.Time
	previews, err := collect(ctx, s.pool, sqlQueue, args, func(rows pgx.CollectableRow) (preview.Preview, error) {
		var r row
		if err := rows.Scan(append(r.into(), &now)...); err != nil {
			return preview.Preview{}, err
		}
		return r.preview()
	})
	if err != nil {
		return nil, "", now, fmt.Errorf("listing the queue: %w", err)
	}
	if len(previews) <= limit {
		return previews, "", now, nil
	}
	last := previews[limit-1]
	return previews[:limit], writeCursor(soonest{Deadline: last.Deadline, ID: last.ID.UUID()}), now, nil
}
