package store

import (
	"context"
	"fmt"
	"strings"
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

// A list's statement is its head, the conditions that its filter asks for, and its tail. A condition that is not asked for is not
// in the text: Postgres plans each shape by itself, and a page costs the same whatever the tenant has stored.
const (
	sqlList = `
select ` + previewColumns + `, ` + executionColumns + `, clock_timestamp()
from previews p
where p.tenant_id = @tenant`
	ofOwner   = ` and p.requester_id = @owner`
	ofPerson  = ` and p.requester_person = @person`
	ofTarget  = ` and p.target_id = @target`
	ofAction  = ` and p.action = @action`
	ofStatus  = ` and (` + sqlStatus + `) = any(@statuses)`
	handed    = ` and exists (select from executions e where e.preview_id = p.id and e.needs_operator)`
	older     = ` and p.id < @before`
	disproved = ` and exists (select from executions e where e.preview_id = p.id and e.contradicted)`
	// An ID begins with the time at which a process made it, so that an index finds where a range of times lies; the database's own time
	// decides. A process whose clock is off by more than clockMargin hides its changes from a range, and from nothing else.
	since      = ` and p.created_at >= @since and p.id >= @since_id`
	until      = ` and p.created_at < @until and p.id < @until_id`
	fromNewest = ` order by p.id desc limit @limit`
)

// sqlOutcomes is the head of a list of outcomes: it goes by the executions of the tenant, which have an index for every outcome in
// the list's order, and takes a change once, whatever its items. Asked as a condition on previews, the same would be looked for among
// all previews there are.
const sqlOutcomes = `
select ` + previewColumns + `, ` + executionColumns + `, clock_timestamp()
from executions x join previews p on p.id = x.preview_id
where x.tenant_id = @tenant and p.tenant_id = @tenant and p.state = 'claimed'`

// way is how the changes of a status are found: by their executions' outcome, or by their own state. What it lets through is still
// compared with the status itself.
type way struct{ outcome, state string }

const openOutcome = `in ('applying', 'unknown', 'not_sent')`

var ways = map[commit.Status]way{
	commit.StatusNeedsApproval: {state: `p.state = 'needs_approval'`},
	commit.StatusPending:       {state: `p.state = 'pending'`},
	commit.StatusApproved:      {state: `p.state = 'approved'`},
	commit.StatusDenied:        {state: `p.state = 'denied'`},
	commit.StatusRejected:      {state: `p.state = 'rejected'`},
	commit.StatusCanceled:      {state: `p.state = 'canceled'`},
	commit.StatusExpired:       {state: `p.state in ('needs_approval', 'pending', 'approved', 'expired')`},
	commit.StatusApplying:      {outcome: openOutcome},
	commit.StatusUnknown:       {outcome: openOutcome},
	commit.StatusApplied:       {outcome: `= 'applied'`},
	commit.StatusNotApplied:    {outcome: `= 'not_applied'`},
	commit.StatusPartlyApplied: {outcome: `= 'not_applied'`},
}

// wayTo is the way to all of some statuses. Where they lie apart there is none but the list itself.
func wayTo(f commit.Filter) way {
	if f.NeedsOperator {
		return way{outcome: openOutcome}
	}
	var states []string
	var outcome string
	for _, status := range statusesOf(f) {
		w := ways[commit.Status(status)]
		switch {
		case w.outcome != "" && (outcome == "" || outcome == w.outcome) && states == nil:
			outcome = w.outcome
		case w.state != "" && outcome == "":
			states = append(states, w.state)
		default:
			return way{}
		}
	}
	return way{outcome: outcome, state: strings.Join(states, ` or `)}
}

// listing is the statement for a filter. A person's own changes carry the person, whether asked for directly or by an agent.
func listing(f commit.Filter) string {
	if f.Person != "" {
		return byPeople(f)
	}
	sql, to := sqlList, wayTo(f)
	switch {
	case f.Contradicted:
		to = way{outcome: `contradicted`}
		sql = sqlOutcomes + ` and x.contradicted
  and not exists (select from executions y where y.preview_id = x.preview_id and y.item < x.item and y.contradicted)`
	case to.outcome != "":
		sql = sqlOutcomes + ` and x.state ` + to.outcome + `
  and not exists (select from executions y where y.preview_id = x.preview_id and y.item < x.item and y.state ` + to.outcome + `)`
	case to.state != "":
		sql += ` and (` + to.state + `)`
	}
	sql += conditions(f)
	if to.outcome != "" {
		sql += bounds(f, `x.preview_id`)
	}
	return sql + fromNewest
}

// conditions are what a filter asks of each change.
func conditions(f commit.Filter) (sql string) {
	for _, c := range []struct {
		asked bool
		sql   string
	}{
		{f.OwnerPerson != "", ofPerson}, {f.OwnerPerson == "" && f.OwnerID != "", ofOwner}, {f.TargetID != "", ofTarget},
		{f.Action != "", ofAction}, {len(statusesOf(f)) > 0, ofStatus}, {f.NeedsOperator, handed}, {f.Contradicted, disproved},
		{f.Cursor != "", older}, {!f.Since.IsZero(), since}, {!f.Until.IsZero(), until},
	} {
		if c.asked {
			sql += c.sql
		}
	}
	return sql
}

// bounds say once more of an ID in another table where it lies, for that table's index.
func bounds(f commit.Filter, id string) (sql string) {
	for _, c := range []struct {
		asked bool
		sql   string
	}{{f.Cursor != "", ` < @before`}, {!f.Since.IsZero(), ` >= @since_id`}, {!f.Until.IsZero(), ` < @until_id`}} {
		if c.asked {
			sql += ` and ` + id + c.sql
		}
	}
	return sql
}

func statusesOf(f commit.Filter) []string {
	statuses := make([]string, 0, len(f.Statuses)+1)
	for _, status := range append([]commit.Status{f.Status}, f.Statuses...) {
		if status != "" {
			statuses = append(statuses, string(status))
		}
	}
	return statuses
}

// List lists changes, the newest first. See commit.Store.
func (s *Store) List(ctx context.Context, f commit.Filter) ([]commit.Change, string, error) {
	var before *uuid.UUID
	if f.Cursor != "" {
		var place newest
		if err := readCursor(f.Cursor, f.Tenant, &place); err != nil {
			return nil, "", err
		}
		before = &place.ID
	}
	args := pgx.NamedArgs{
		"tenant": f.Tenant, "owner": f.OwnerID, "person": f.OwnerPerson, "target": f.TargetID, "action": f.Action,
		"statuses": statusesOf(f), "before": before, "limit": f.Limit + 1, "since": f.Since, "until": f.Until,
		"since_id": firstID(f.Since.Add(-clockMargin)), "until_id": firstID(f.Until.Add(clockMargin)),
	}
	if f.Person != "" {
		found, err := s.people(ctx, f.Tenant, f.Person)
		if err != nil || found.nobody() {
			return nil, "", err
		}
		args["callers"], args["deciders"], args["settlers"] = found.callers, found.deciders, found.settlers
	}
	changes, err := collectPlanned(ctx, s.pool, listing(f), args, scanChange)
	if err != nil {
		return nil, "", fmt.Errorf("listing changes: %w", err)
	}
	if len(changes) <= f.Limit {
		return changes, "", nil
	}
	changes = changes[:f.Limit]
	return changes, writeCursor(f.Tenant, newest{ID: changes[f.Limit-1].Preview.ID.UUID()}), nil
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
where p.tenant_id = @tenant and p.state = 'pending' and p.deadline > clock_timestamp()`

// What a queue is asked for beside its tenant. Changes of high risk may come first: then the place in the queue begins with that.
const (
	ofHighRisk = ` and p.ruling->>'risk' = 'high'`
	withSeat   = ` and (exists (select from jsonb_array_elements(p.ruling->'needs') n, jsonb_array_elements_text(n->'any_of') g where g = any(@groups))
  or p.ruling->'confirm' = 'true' and p.requester_person = @person)`
	later       = ` and (p.deadline, p.id) > (@after, @after_id)`
	fromSoonest = ` order by p.deadline, p.id limit @limit`

	riskRank     = `case when p.ruling->>'risk' = 'high' then 0 else 1 end`
	lessRisky    = ` and (` + riskRank + `, p.deadline, p.id) > (@rank, @after, @after_id)`
	fromRiskiest = ` order by ` + riskRank + `, p.deadline, p.id limit @limit`
)

// soonest is the place in the queue, which runs from the first to expire.
type soonest struct {
	Deadline time.Time `json:"d"`
	ID       uuid.UUID `json:"i"`
	// Rank is 0 for a change of high risk and 1 for any other, where those come first.
	Rank int `json:"r,omitempty"`
}

// queueing is the statement for a page of the queue, with the conditions that it asks for and no others.
func queueing(page approvals.Page) string {
	next, order := later, fromSoonest
	if page.RiskFirst {
		next, order = lessRisky, fromRiskiest
	}
	sql := sqlQueue
	for _, c := range []struct {
		asked bool
		sql   string
	}{{page.Action != "", ofAction}, {page.High, ofHighRisk}, {page.Seats != nil, withSeat}, {page.Cursor != "", next}} {
		if c.asked {
			sql += c.sql
		}
	}
	return sql + order
}

// Queue lists what waits for a decision. See approvals.Store.
func (s *Store) Queue(ctx context.Context, tenant string, page approvals.Page) ([]preview.Preview, string, time.Time, error) {
	limit := page.Limit
	if limit <= 0 || limit > 100 {
		limit = 50
	}
	args := pgx.NamedArgs{"tenant": tenant, "action": page.Action, "limit": limit + 1}
	if page.Seats != nil {
		args["groups"], args["person"] = page.Seats.Groups, page.Seats.Person
	}
	if page.Cursor != "" {
		var place soonest
		if err := readCursor(page.Cursor, tenant, &place); err != nil {
			return nil, "", time.Time{}, err
		}
		args["after"], args["after_id"], args["rank"] = place.Deadline, place.ID, place.Rank
	}
	var now time.Time
	previews, err := collect(ctx, s.pool, queueing(page), args, func(rows pgx.CollectableRow) (preview.Preview, error) {
		var r row
		if err := rows.Scan(append(r.into(), &now)...); err != nil {
			return preview.Preview{}, err
		}
		return r.preview()
	})
	if err == nil && len(previews) == 0 {
		now, err = s.Now(ctx) // an empty list is of some time, too
	}
	if err != nil {
		return nil, "", now, fmt.Errorf("listing the queue: %w", err)
	}
	if len(previews) <= limit {
		return previews, "", now, nil
	}
	last := previews[limit-1]
	place := soonest{Deadline: last.Deadline, ID: last.ID.UUID()}
	if page.RiskFirst && last.Ruling.Risk != "high" {
		place.Rank = 1
	}
	return previews[:limit], writeCursor(tenant, place), now, nil
}
