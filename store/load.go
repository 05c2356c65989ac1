package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/preview"
)

// sqlEpochs sums the deployment's and the tenant's epochs: each only grows, and is never again what it was before a restore, so an equal
// sum means that neither moved. frozen says that
// there are freezes, of which freeze_over names the one in the way of a change.
const sqlEpochs = `
  select coalesce(bool_or(frozen), false) as frozen, coalesce(sum(freeze_epoch), 0)::bigint as freeze_epoch,
    coalesce(sum(policy_epoch), 0)::bigint as policy_epoch, coalesce(sum(approvers_epoch), 0)::bigint as approvers_epoch,
    coalesce(max(policy_version) filter (where tenant_id = ''), '') as policy_version,
    coalesce(bool_or(restoring), false) as restoring, max(restored_at) as restored_at
  from controls where tenant_id in ('', @tenant)`

const executionColumns = `
  (select coalesce(json_agg(json_build_object('item', e.item, 'state', e.state, 'target_key', e.target_key,
     'current_attempt', e.current_attempt, 'claimed_by', e.claimed_by, 'started_at', e.started_at, 'lease_until', e.lease_until,
     'settle_at', e.settle_at, 'finished_at', e.finished_at, 'reason', e.reason, 'evidence', e.evidence, 'detail', e.detail,
     'contradicted', e.contradicted, 'probes', e.probes, 'next_probe_at', e.next_probe_at, 'needs_operator', e.needs_operator,
     'resolved_by', e.resolved_by, 'resolved_why', e.resolved_why, 'resolvers', e.resolvers,
     'statements', case when e.resolvers > 1 and e.stated > 0 then (
       select json_agg(json_build_object('person', s.person, 'name', s.name, 'applied', s.applied, 'reason', s.reason,
         'evidence', s.evidence, 'at', s.stated_at) order by s.seq)
       from resolutions s where s.preview_id = e.preview_id and s.item = e.item) end) order by e.item), '[]')
   from executions e where e.preview_id = p.id) as executions`

const historyColumns = `
  (select coalesce(json_agg(json_build_object('id', a.id, 'item', a.item, 'kind', a.kind, 'started_at', a.started_at,
     'finished_at', a.finished_at, 'result', coalesce(a.result, ''), 'evidence', a.evidence) order by a.started_at), '[]')
   from attempts a where a.preview_id = p.id) as attempts,
  (select coalesce(json_agg(json_build_object('seq', v.seq, 'kind', v.kind, 'actor', v.actor, 'at', v.at,
     'body', convert_from(v.body, 'UTF8'), 'hash', encode(v.hash, 'hex')) order by v.seq), '[]')
   from audit_events v where v.preview_id = p.id) as events`

const sqlLoadFrom = `
from previews p, (` + sqlEpochs + `) c
where p.id = @id and p.tenant_id is not distinct from @tenant`

const epochColumns = `clock_timestamp(), c.freeze_epoch, c.policy_epoch, c.approvers_epoch, c.policy_version, c.restoring,
  case when c.frozen then (select json_build_object('kind', f.kind, 'name', f.name, 'by', f.frozen_by, 'reason', f.reason,
    'at', f.frozen_at, 'until', f.until) from freeze_over(p.tenant_id, p.action, p.target_key) f) end,
  case when c.restored_at is not null then (select json_build_object('held', h.state = 'held', 'since', h.held_at, 'looks', h.looks)
    from restore_holds h where h.preview_id = p.id and h.state in ('held', 'handed_over')) end`

const sqlLoad = `select ` + previewColumns + `, ` + executionColumns + `, ` + epochColumns + sqlLoadFrom

const sqlLoadDetail = `select ` + previewColumns + `, ` + executionColumns + `, ` + epochColumns + `, ` + historyColumns + sqlLoadFrom

// Load reads a change in one round trip. See commit.Store.
func (s *Store) Load(ctx context.Context, tenant string, id preview.ID, detail bool) (commit.Change, commit.Epochs, error) {
	var r row
	var executions, attempts, events []byte
	var hold *commit.Hold
	var c commit.Change
	var e commit.Epochs
	into := append(r.into(), &executions, &c.Now, &e.Freeze, &e.Policy, &e.Approvers, &e.PolicyVersion, &e.Restoring, &e.FrozenBy, &hold)
	sql := sqlLoad
	if detail {
		sql, into = sqlLoadDetail, append(into, &attempts, &events)
	}
	err := s.pool.read(ctx, sql, pgx.NamedArgs{"id": id.UUID(), "tenant": tenant}, into...)
	if err != nil {
		return c, e, fmt.Errorf("reading a change: %w", missing(err))
	}
	e.Frozen = e.Restoring || e.FrozenBy != nil
	if c, err = changeOf(&r, executions, c.Now); err == nil {
		c = heldOf(c, hold)
	}
	if err != nil {
		return c, e, err
	}
	s.seen.loaded(c, e)
	if !detail {
		return c, e, nil
	}
	err = errors.Join(json.Unmarshal(attempts, &c.Attempts), json.Unmarshal(events, &c.Events))
	return c, e, err
}

// heldOf suspends the deadline of a held change: as long as it may have been applied, it has not expired.
func heldOf(c commit.Change, hold *commit.Hold) commit.Change {
	c.Hold = hold
	if hold != nil && hold.Held && c.Status == commit.StatusExpired && c.Preview.State.Open() {
		c.Status = commit.Status(c.Preview.State)
	}
	return c
}

// executionRow is an execution in the JSON of executionColumns.
type executionRow struct {
	Item           int             `json:"item"`
	State          commit.State    `json:"state"`
	TargetKey      string          `json:"target_key"`
	CurrentAttempt uuid.UUID       `json:"current_attempt"`
	ClaimedBy      string          `json:"claimed_by"`
	StartedAt      time.Time       `json:"started_at"`
	LeaseUntil     time.Time       `json:"lease_until"`
	SettleAt       time.Time       `json:"settle_at"`
	FinishedAt     *time.Time      `json:"finished_at"`
	Reason         commit.Reason   `json:"reason"`
	Evidence       commit.Evidence `json:"evidence"`
	Detail         map[string]any  `json:"detail"`
	Contradicted   bool            `json:"contradicted"`
	Probes         int             `json:"probes"`
	NextProbeAt    *time.Time      `json:"next_probe_at"`
	NeedsOperator  bool            `json:"needs_operator"`
	ResolvedBy     string          `json:"resolved_by"`
	ResolvedWhy    string          `json:"resolved_why"`
	Resolvers      int             `json:"resolvers"`

	Statements []commit.Statement `json:"statements"`
}

func (e executionRow) execution() commit.Execution {
	return commit.Execution{
		Item: e.Item, State: e.State, TargetKey: e.TargetKey, CurrentAttempt: e.CurrentAttempt, ClaimedBy: e.ClaimedBy,
		StartedAt: e.StartedAt, LeaseUntil: e.LeaseUntil, SettleAt: e.SettleAt, FinishedAt: at(e.FinishedAt), Reason: e.Reason,
		Evidence: e.Evidence, Detail: e.Detail, Contradicted: e.Contradicted, Probes: e.Probes, NextProbeAt: at(e.NextProbeAt),
		NeedsOperator: e.NeedsOperator, ResolvedBy: e.ResolvedBy, ResolvedWhy: e.ResolvedWhy,
		Resolvers: e.Resolvers, Statements: e.Statements,
	}
}

func changeOf(r *row, executions []byte, now time.Time) (commit.Change, error) {
	p, err := r.preview()
	if err != nil {
		return commit.Change{}, err
	}
	c := commit.Change{Preview: p, Now: now}
	if c.Executions, err = executionsOf(executions); err != nil {
		return commit.Change{}, err
	}
	c.Status = commit.StatusOf(p, c.Executions, now)
	return c, nil
}

func executionsOf(raw []byte) ([]commit.Execution, error) {
	var rows []executionRow
	if err := json.Unmarshal(raw, &rows); err != nil {
		return nil, fmt.Errorf("reading executions: %w", err)
	}
	var all []commit.Execution
	for _, e := range rows {
		all = append(all, e.execution())
	}
	return all, nil
}
