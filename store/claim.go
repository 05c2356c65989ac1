package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cutonce/cutonce/commit"
)

// sqlClaimGuard comes first in the claim's transaction. A freeze takes the same lock exclusively and so returns only after
// every claim begun before it has ended; the claim's own statement then reads epochs that cannot move under it.
const sqlClaimGuard = `
select set_config('synchronous_commit', 'on', true), pg_advisory_xact_lock_shared(hashtextextended('cutonce.control', 0))`

// sqlClaim: the row lock is taken in l; clock_timestamp() in ok is read after it.
const sqlClaim = `
with c as (` + sqlEpochs + `
), l as materialized (
  select id, tenant_id, action, target_key, state, deadline, digest, revision from previews where id = @id and tenant_id is not distinct from @tenant for update
), ok as (
  select l.*, clock_timestamp() as now from l, c
  where l.state = 'approved' and l.deadline > clock_timestamp() and l.digest = @digest and l.revision = @revision
    and not c.restoring and c.freeze_epoch = @freeze_epoch and c.policy_epoch = @policy_epoch and c.approvers_epoch = @approvers_epoch
    and not (c.frozen and exists (select from freeze_over(l.tenant_id, l.action, l.target_key)))
    and (c.restored_at is null or not exists (select from restore_holds h where h.preview_id = l.id and h.state = 'held'))
), u as (
  update previews p set state = 'claimed', audit_seq = p.audit_seq + 1,
    audit_head = event_hash(p.audit_head, p.id, p.audit_seq + 1, 'claimed', @actor, p.tenant_id, ok.now, @body)
  from ok where p.id = @id
  returning p.id, p.tenant_id, p.target_key, p.audit_seq, p.audit_head, ok.now
), again as (
  update executions e set state = 'applying', current_attempt = @attempt, claimed_by = @actor,
    lease_until = u.now + @lease_for::interval, settle_at = u.now + @lease_for::interval + @send_for::interval + @settle_for::interval
  from u where e.preview_id = @id and e.item = @item and e.state = 'not_sent'
  returning e.preview_id
), e as (
  insert into executions (preview_id, item, tenant_id, target_key, state, current_attempt, claimed_by, started_at, lease_until,
    settle_at, version_before, resolvers)
  select id, @item, tenant_id, target_key, 'applying', @attempt, @actor, now, now + @lease_for::interval,
    now + @lease_for::interval + @send_for::interval + @settle_for::interval, @version, @resolvers
  from u where not exists (select from executions x where x.preview_id = @id and x.item = @item)
), a as (
  insert into attempts (id, preview_id, item, tenant_id, kind, started_at)
  select @attempt, id, @item, tenant_id, 'send', now from u
), au as (
  insert into audit_events (preview_id, seq, tenant_id, kind, actor, at, body, hash)
  select id, audit_seq, tenant_id, 'claimed', @actor, now, @body, audit_head from u
)
select exists (select from u) as claimed,
  (select freeze_epoch = @freeze_epoch and policy_epoch = @policy_epoch and approvers_epoch = @approvers_epoch from c),
  exists (select from l where state = 'approved'), (select revision = @revision from l)`

// ClaimApproved claims in one round trip. See commit.Store.
func (s *Store) ClaimApproved(ctx context.Context, c commit.Claim) error {
	var claimed, epochsHold, approved bool
	var same *bool
	err := s.pipeline(ctx, s.pool, func(b *pgx.Batch) {
		b.Queue(sqlClaimGuard)
		b.Queue(sqlClaim, claimArgs(c))
	}, func(r pgx.BatchResults) error {
		if _, err := r.Exec(); err != nil {
			return err
		}
		return r.QueryRow().Scan(&claimed, &epochsHold, &approved, &same)
	})
	switch {
	case violates(err, "executions_target_lock"):
		return commit.ErrTargetBusy
	case violates(err, "executions_pkey"), strands(err):
		// Another claim was given back because its send never left, all while this one waited for the row: its execution was not to be
		// seen, or not as it is now.
		return commit.ErrNotClaimed
	case errors.Is(err, commit.ErrInDoubt):
		return err
	case err != nil:
		return fmt.Errorf("claiming: %w", err)
	case claimed:
		s.seen.claimed(place{c.Tenant, c.ID})
		return nil
	case approved && !(epochsHold && *same):
		return commit.ErrEpochsMoved
	}
	return commit.ErrNotClaimed
}

// strands reports whether the schema refused a claim that would have left its preview without an execution (guard_claim).
func strands(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == illegalMove
}

// illegalMove is the SQLSTATE by which the schema refuses a move that does not follow from the state it finds.
const illegalMove = "CU004"

func claimArgs(c commit.Claim) pgx.NamedArgs {
	return pgx.NamedArgs{
		"id": c.ID.UUID(), "tenant": c.Tenant, "item": c.Item, "attempt": c.Attempt, "actor": c.By.ID(), "digest": c.Digest[:], "revision": c.Revision,
		"freeze_epoch": c.Epochs.Freeze, "policy_epoch": c.Epochs.Policy, "approvers_epoch": c.Epochs.Approvers,
		"lease_for": c.Clocks.LeaseFor, "send_for": c.Clocks.SendFor, "settle_for": c.Clocks.SettleFor, "version": c.Version,
		"resolvers": max(c.Resolvers, 1),
		"body":      body(map[string]any{"attempt": c.Attempt.String(), "item": c.Item, "digest": c.Digest.String()}),
	}
}

// pipeline runs statements as one implicit transaction in one round trip. The transaction ends at the pipeline's end, so
// only a clean Close says that it is committed: results alone prove nothing. A broken connection, or a warning from the
// server, leaves the commit in doubt.
func (s *Store) pipeline(ctx context.Context, pool bounded, queue func(*pgx.Batch), read func(pgx.BatchResults) error) error {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	batch, err := pool.scoped(ctx, queue)
	if err != nil {
		return err
	}
	conn, err := s.acquire(ctx, pool)
	if err != nil {
		return passing(fmt.Errorf("getting a connection: %w", err))
	}
	defer conn.Release()
	delete(conn.Conn().PgConn().CustomData(), warned)
	if err := receive(conn.SendBatch(ctx, batch), read); err != nil {
		if inDoubt(err) {
			return fmt.Errorf("%w: %w", commit.ErrInDoubt, passing(err))
		}
		return passing(err)
	}
	return trusted(conn)
}

// write runs one statement that is a transaction of its own, and reads the row that it returns.
func (s *Store) write(ctx context.Context, pool bounded, sql string, args pgx.NamedArgs, into ...any) error {
	begin, with, err := pool.on(args)
	if err != nil {
		return err
	}
	return again(ctx, func() error {
		ctx, cancel := context.WithTimeout(ctx, longest)
		defer cancel()
		conn, err := pool.pool.Acquire(ctx)
		if err != nil {
			return passing(fmt.Errorf("getting a connection: %w", err))
		}
		defer conn.Release()
		delete(conn.Conn().PgConn().CustomData(), warned)
		results := conn.SendBatch(ctx, single(ctx, begin, with, sql, args))
		if err := receive(results, func(r pgx.BatchResults) error { return r.QueryRow().Scan(into...) }); err != nil {
			return passing(err)
		}
		return trusted(conn)
	})
}

// trusted is an error if the server warned during the transaction that has just ended on the connection: see warned.
func trusted(conn *pgxpool.Conn) error {
	if conn.Conn().PgConn().CustomData()[warned] != nil {
		return passing(fmt.Errorf("%w: the server warned", commit.ErrInDoubt))
	}
	return nil
}

// patience is how long a free connection of the reserve is waited for.
const patience = time.Second

// lull is how long an idle connection of the main pool is reached for while the reserve is busy.
const lull = 20 * time.Millisecond

// acquire takes a connection, and one of the main pool where the reserve has none: a connection that was given up can count
// as taken for a while longer, and two of those must not keep outcomes from being recorded.
func (s *Store) acquire(ctx context.Context, pool bounded) (*pgxpool.Conn, error) {
	if pool.pool != s.reserve.pool {
		return pool.pool.Acquire(ctx)
	}
	if s.reserve.pool.Stat().AcquiredConns() >= reserved && s.pool.pool.Stat().IdleConns() > 0 {
		// Nobody else needs that one just now. Should somebody have been faster, the reserve is as good.
		now, cancel := context.WithTimeout(ctx, lull)
		defer cancel()
		if conn, err := s.pool.pool.Acquire(now); err == nil {
			return conn, nil
		}
	}
	soon, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if conn, err := pool.pool.Acquire(soon); err == nil {
		return conn, nil
	}
	return s.pool.pool.Acquire(ctx)
}

// sqlLockPreview is a statement of its own where the next one must see what the holder of the row before it has written:
// within one statement, rows that the holder inserted stay invisible after the wait.
const sqlLockPreview = `
select set_config('synchronous_commit', 'on', true) from previews where id = @id and tenant_id is not distinct from @tenant for update`

const sqlConfirm = `
with ok as materialized (
  select preview_id, item, clock_timestamp() as now from executions
  where preview_id = @id and item = @item and tenant_id is not distinct from @tenant and current_attempt = @attempt and state = 'applying'
), u as (
  update executions e set claimed_by = e.claimed_by from ok
  where e.preview_id = ok.preview_id and e.item = ok.item and e.lease_until > ok.now
  returning e.lease_until
)
select exists (select from u)`

// ConfirmClaim makes a second write whose own commit is synchronous: once it is acknowledged, the claim before it in the log
// is durable too. It waits for a claim that the server is still working on.
func (s *Store) ConfirmClaim(ctx context.Context, k commit.Key, attempt uuid.UUID) error {
	var held bool
	args := pgx.NamedArgs{"id": k.ID.UUID(), "tenant": k.Tenant, "item": k.Item, "attempt": attempt}
	err := s.pipeline(ctx, s.reserve, func(b *pgx.Batch) {
		b.Queue(sqlLockPreview, args)
		b.Queue(sqlConfirm, args)
	}, func(r pgx.BatchResults) error {
		if _, err := r.Exec(); err != nil {
			return err
		}
		return r.QueryRow().Scan(&held)
	})
	if err != nil {
		return fmt.Errorf("confirming a claim: %w", err)
	}
	if !held {
		return commit.ErrNotClaimed
	}
	return nil
}

const sqlCheckLease = `
select e.current_attempt = @attempt and e.state in ('applying', 'unknown'),
  case when e.state = 'applying' then e.lease_until else coalesce(e.probe_until, e.lease_until) end - clock_timestamp()
from executions e where e.preview_id = @id and e.item = @item and e.tenant_id is not distinct from @tenant`

// sqlReplaced asks of all tenants, who meet at a target, whether the version that was just read has been replaced. It reads the clock in
// a subquery where it searches: an index can be asked for a subquery's value, and not for what a volatile function gives row by row. A
// target with ten thousand past changes, or with hundreds within the settle time, must not hold up the next one: the index knows which
// version each of them replaced. The state is compared in a way that no index serves, or a plan made on empty tables would go by the
// index of all outcomes, and read every one of them.
const sqlReplaced = `
select exists (select from executions r where r.target_key = (select target_key from executions where preview_id = @id and item = @item)
  and r.state is not distinct from 'applied' and r.preview_id <> @id and r.version_before = @version
  and r.finished_at > (select clock_timestamp()) - @settle_for::interval)`

// CheckLease is the sender's last look before the write. It has the reserved connections, because the time to send counts from
// the question: behind a crowd of readers it would be over before the answer.
func (s *Store) CheckLease(ctx context.Context, k commit.Key, attempt uuid.UUID, version string, settle time.Duration) (commit.LeaseCheck, error) {
	var check commit.LeaseCheck
	args := pgx.NamedArgs{
		"id": k.ID.UUID(), "tenant": k.Tenant, "item": k.Item, "attempt": attempt, "version": version, "settle_for": settle,
	}
	err := s.reserve.twice(ctx, func() error {
		return s.reserve.sendAll(ctx, func(b *pgx.Batch) {
			b.Queue(sqlCheckLease, args)
			if version != "" {
				b.Queue(sqlAsWorker)
				b.Queue(sqlReplaced, args)
			}
		}, func(r pgx.BatchResults) error {
			if err := r.QueryRow().Scan(&check.Current, &check.Left); err != nil || version == "" {
				return err
			}
			if _, err := r.Exec(); err != nil {
				return err
			}
			return r.QueryRow().Scan(&check.ReplacedHere)
		})
	})
	if err != nil {
		return check, fmt.Errorf("reading the lease: %w", missing(err))
	}
	return check, nil
}
