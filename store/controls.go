package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

const sqlControlLock = `select pg_advisory_xact_lock(hashtextextended('cutonce.control', 0))`

// sqlActivatePolicy puts a policy in force that never was, or any if @again.
const sqlActivatePolicy = `
with known as materialized (select exists (select from policies where version = @version) as before
), p as (
  insert into policies (version, body) values (@version, @text) on conflict (version) do nothing
), ok as (
  select clock_timestamp() as now, case when before then 'policy_reinstated' else 'policy_activated' end as kind
  from known where @again or not before
), u as (
  update controls k set policy_version = @version, policy_epoch = next_number(k.policy_epoch), ` + nextControl + `
  from ok where k.tenant_id = '' and k.policy_version <> @version
  returning ` + controlEnd + `
)` + controlChained

const sqlPolicyInForce = `select policy_version = @version from controls where tenant_id = ''`

const sqlActivePolicy = `select policy_version from controls where tenant_id = ''`

// PolicyInForce is the version of the policy that claims rest on.
func (s *Store) PolicyInForce(ctx context.Context) (version string, err error) {
	if err := s.worker.read(ctx, sqlActivePolicy, pgx.NamedArgs{}, &version); err != nil {
		return "", fmt.Errorf("reading the policy in force: %w", err)
	}
	return version, nil
}

// ErrSuperseded: the policy was in force once, and another has taken its place.
var ErrSuperseded = errors.New("the policy has been superseded")

// ActivatePolicy makes a policy the one that claims rest on. It returns once every claim that began under the old one has
// ended. A process that has loaded another policy refuses to claim from then on. A policy that was superseded is not put back
// by this (ErrSuperseded): a crashed replica that comes back with its old files must not loosen the rules. See
// ReinstatePolicy.
func (s *Store) ActivatePolicy(ctx context.Context, version, text string) error {
	return s.activate(ctx, version, text, false)
}

// ReinstatePolicy puts a policy in force though it was superseded before. It is for a person's decision.
func (s *Store) ReinstatePolicy(ctx context.Context, version, text string) error {
	return s.activate(ctx, version, text, true)
}

func (s *Store) activate(ctx context.Context, version, text string, again bool) error {
	args := pgx.NamedArgs{
		"version": version, "text": text, "again": again, "actor": service, "body": body(map[string]any{"version": version}),
	}
	var inForce bool
	err := s.pipeline(ctx, s.worker, func(b *pgx.Batch) {
		b.Queue(sqlControlLock)
		b.Queue(sqlActivatePolicy, args)
		b.Queue(sqlPolicyInForce, args)
	}, func(r pgx.BatchResults) error {
		for range 2 {
			if _, err := r.Exec(); err != nil {
				return err
			}
		}
		return r.QueryRow().Scan(&inForce)
	})
	switch {
	case err != nil:
		return fmt.Errorf("activating the policy: %w", err)
	case !inForce:
		return ErrSuperseded
	}
	return nil
}

const sqlDurability = `select current_setting('fsync'), current_setting('synchronous_commit'), current_setting('full_page_writes')`

// Durability reports the settings without which a claim could be lost after it was acknowledged.
func (s *Store) Durability(ctx context.Context) (durable bool, settings string, err error) {
	var fsync, commits, pages string
	if err := s.worker.queryRow(ctx, sqlDurability, nil).Scan(&fsync, &commits, &pages); err != nil {
		return false, "", fmt.Errorf("reading the durability settings: %w", err)
	}
	durable = fsync == "on" && commits != "off" && pages == "on"
	return durable, fmt.Sprintf("fsync=%s synchronous_commit=%s full_page_writes=%s", fsync, commits, pages), nil
}

const sqlBacklog = `
select (select count(*) from previews where state = 'pending' and deadline > clock_timestamp()),
  coalesce((select extract(epoch from clock_timestamp() - min(requested_at)) from previews where state = 'pending' and deadline > clock_timestamp()), 0)::float8,
  (select count(*) from executions where state = 'unknown' or state = 'applying' and lease_until <= clock_timestamp()),
  coalesce((select extract(epoch from clock_timestamp() - min(started_at)) from executions
    where state = 'unknown' or state = 'applying' and lease_until <= clock_timestamp()), 0)::float8,
  (select count(*) from executions where state = 'unknown' and needs_operator),
  (select count(*) from executions where contradicted)`

// Backlog is what waits, for metrics. Ages are in seconds.
type Backlog struct {
	Pending        int
	PendingAge     float64
	Unknown        int
	UnknownAge     float64
	NeedsOperator  int
	Contradictions int
}

// Backlog counts what waits for people or proof, over all tenants.
func (s *Store) Backlog(ctx context.Context) (Backlog, error) {
	var b Backlog
	err := s.worker.queryRow(ctx, sqlBacklog, nil).Scan(&b.Pending, &b.PendingAge, &b.Unknown, &b.UnknownAge, &b.NeedsOperator, &b.Contradictions)
	if err != nil {
		return b, fmt.Errorf("counting the backlog: %w", err)
	}
	return b, nil
}

const sqlWaiting = `
select tenant_id, count(*) filter (where what = 'pending'), count(*) filter (where what = 'unknown'), count(*) filter (where what = 'handed over')
from (
  select tenant_id, 'pending' as what from previews where state = 'pending' and deadline > clock_timestamp()
  union all select tenant_id, 'unknown' from executions where state = 'unknown' or state = 'applying' and lease_until <= clock_timestamp()
  union all select tenant_id, 'handed over' from executions where state = 'unknown' and needs_operator
) w group by tenant_id`

// Waiting is what waits in one tenant.
type Waiting struct{ Pending, Unknown, NeedsOperator int }

// Waiting counts what waits for people or proof, by tenant; those in which nothing does are missing.
func (s *Store) Waiting(ctx context.Context) (map[string]Waiting, error) {
	type row struct {
		Tenant string
		Waiting
	}
	rows, err := collect(ctx, s.worker, sqlWaiting, nil, func(r pgx.CollectableRow) (one row, err error) {
		return one, r.Scan(&one.Tenant, &one.Pending, &one.Unknown, &one.NeedsOperator)
	})
	if err != nil {
		return nil, fmt.Errorf("counting what waits: %w", err)
	}
	waiting := make(map[string]Waiting, len(rows))
	for _, one := range rows {
		waiting[one.Tenant] = one.Waiting
	}
	return waiting, nil
}
