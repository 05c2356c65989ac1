package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
)

// Each test of this file runs the statement that looks right, shows what it does wrong, and then shows ours on the same case.

// behindALock runs do, in its own goroutine, behind a lock on the preview's row that is released after the deadline. Where the
// machine was too busy for do to get there in time, it is given longer, and do is run again.
func behindALock[T any](r *rig, id preview.ID, do func() T) T {
	r.t.Helper()
	for in := time.Second; ; in *= 2 {
		r.shortly(id, in)
		release := r.hold(id)
		done := make(chan T, 1)
		go func() { done <- do() }()
		if !awaitBlockedOr(r, done) && in < time.Minute {
			release()
			continue
		}
		r.awaitDeadline(id)
		release()
		return receive(r.t, done)
	}
}

// rowsOfNaive runs an update in a transaction that is rolled back, and counts the rows that it changed.
func (r *rig) rowsOfNaive(sql string, args ...any) int64 {
	tx, err := r.pool.Begin(context.Background())
	if err != nil {
		return -1
	}
	defer tx.Rollback(context.Background())
	tag, err := tx.Exec(context.Background(), sql, args...)
	if err != nil {
		return -1
	}
	return tag.RowsAffected()
}

func (r *rig) claimOf(p preview.Preview) commit.Claim {
	r.t.Helper()
	c, epochs, err := r.store.Load(r.t.Context(), p.Tenant, p.ID, false)
	if err != nil {
		r.t.Fatal(err)
	}
	return commit.Claim{
		Key: commit.Key{Tenant: p.Tenant, ID: p.ID}, Attempt: uuid.New(), By: agent("bot"), Digest: p.Digest,
		Revision: c.Preview.Revision, Version: p.Plan.Version, Epochs: epochs, Clocks: r.clocks,
	}
}

func TestALateClockBehindARowLock(t *testing.T) {
	t.Parallel()
	for name, guard := range map[string]string{
		"now() stands still":                           "now()",
		"clock_timestamp() is read before the lock is": "clock_timestamp()",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			naive := `update previews set state = 'claimed', audit_seq = audit_seq + 1 where id = $1 and state = 'approved' and deadline > ` + guard
			p := r.prepare("a", "new")
			if got := behindALock(r, p.ID, func() int64 { return r.rowsOfNaive(naive, p.ID.UUID()) }); got != 1 {
				t.Errorf("the naive claim changed %d rows after the deadline; it was expected to go wrong", got)
			}
			q := r.prepare("b", "new")
			claim := r.claimOf(q)
			err := behindALock(r, q.ID, func() error { return r.store.ClaimApproved(context.Background(), claim) })
			if !errors.Is(err, commit.ErrNotClaimed) {
				t.Errorf("got %v, want ErrNotClaimed after the deadline", err)
			}
			if got := r.status(q.ID).Status; got != commit.StatusExpired {
				t.Errorf("got %s, want expired", got)
			}
		})
	}
}

// TestEveryGuardReadsTheClockAfterItsLock holds the row past the deadline before each of the other moves.
func TestEveryGuardReadsTheClockAfterItsLock(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, tc := range []struct {
		name string
		from func(*rig) preview.Preview
		move func(*rig, preview.Preview) error
	}{
		{"request", func(r *rig) preview.Preview {
			r.rules.set(people(policy.Seats{AnyOf: []string{"leads"}, Count: 1}))
			return r.prepare("request", "new")
		}, func(r *rig, p preview.Preview) error {
			_, err := r.approvals.Request(context.Background(), agent("bot"), p.ID, "")
			return err
		}},
		{"approve", func(r *rig) preview.Preview { return r.pending("approve") }, func(r *rig, p preview.Preview) error { _, err := r.approve(p, "kim"); return err }},
		{"reject", func(r *rig) preview.Preview { return r.pending("reject") }, func(r *rig, p preview.Preview) error { _, err := r.reject(p, "kim"); return err }},
		{"cancel", func(r *rig) preview.Preview { return r.prepare("cancel", "new") }, func(r *rig, p preview.Preview) error {
			_, err := r.previews.Cancel(context.Background(), agent("bot"), p.ID, "")
			return err
		}},
		{"send back", func(r *rig) preview.Preview {
			r.rules.set(automatic)
			return r.prepare("send back", "new")
		}, func(r *rig, p preview.Preview) error {
			_, err := r.store.SendBack(context.Background(), "acme", p.ID, people(), time.Minute)
			return err
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := r.in(t)
			p := tc.from(r)
			before := len(r.kinds(p.ID))
			behindALock(r, p.ID, func() error { return tc.move(r, p) })
			kinds := r.kinds(p.ID)
			if got := r.status(p.ID).Status; got != commit.StatusExpired || len(kinds)-countOf(kinds, "raw") != before {
				t.Errorf("got %s with events %v, want expired and nothing but the deadline set", got, kinds)
			}
		})
	}
}

func TestOnConflictDoNothingStrandsAPreview(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	holder, p := r.unknown("a"), r.prepareOther("a")
	naive := run(`
		with u as (update previews set state = 'claimed', `+eventSQL+`),
		au as (insert into audit_events select id, audit_seq, tenant_id, 'raw', 'raw', now(), '{}', audit_head from u),
		at as (insert into attempts (id, preview_id, item, tenant_id, kind, started_at) select $2, id, 0, tenant_id, 'send', now() from u)
		insert into executions (preview_id, item, tenant_id, target_key, state, current_attempt, claimed_by, started_at, lease_until, settle_at)
		select p.id, 0, p.tenant_id, p.target_key, 'applying', $2, 'raw', now(), now() + interval '1 minute', now()
		from previews p join u on u.id = p.id
		on conflict do nothing`, p.ID.UUID(), uuid.New())
	tx := r.begin()
	if _, err := tx.Exec(t.Context(), naive.sql, naive.args...); err != nil {
		t.Fatalf("the naive claim: %v; it was expected to go wrong silently", err)
	}
	var state string
	var executions int
	err := tx.QueryRow(t.Context(), `select state, (select count(*) from executions where preview_id = $1) from previews where id = $1`, p.ID.UUID()).
		Scan(&state, &executions)
	if err != nil || state != "claimed" || executions != 0 {
		t.Errorf("the naive claim left it %s with %d executions (%v); it was expected to strand it", state, executions, err)
	}
	// What the constraints make of it: it does not commit.
	if err := tx.Commit(t.Context()); err == nil {
		t.Error("a stranded preview was committed")
	}
	if err := r.store.ClaimApproved(t.Context(), r.claimOf(p)); !errors.Is(err, commit.ErrTargetBusy) {
		t.Errorf("got %v, want ErrTargetBusy", err)
	}
	if got := r.status(p.ID); got.Status != commit.StatusApproved || len(got.Executions) != 0 {
		t.Errorf("got %s with %d executions, want approved with none", got.Status, len(got.Executions))
	}
	if got := r.status(holder.ID).Status; got != commit.StatusUnknown {
		t.Errorf("the holder is %s, want unknown", got)
	}
}

// prepareOther prepares another change of a target that already has one.
func (r *rig) prepareOther(id string) preview.Preview {
	r.t.Helper()
	return r.prepare(id, "another text")
}

func TestVotesCountedInOneStatementMissEachOther(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.pending("a", policy.Seats{AnyOf: []string{"leads"}, Count: 2})
	const naive = `
		with v as (
		  insert into decisions (preview_id, tenant_id, round, person, name, groups, approve, reason, digest, policy_version, decided_at)
		  select id, tenant_id, round, $2, $2, '{leads}', true, '', digest, '', now() from previews where id = $1
		)
		update previews set audit_seq = audit_seq + 1, revision = revision + 1,
		  state = case when 1 + (select count(*) from decisions where preview_id = $1 and approve) >= 2 then 'approved' else state end,
		  approved_at = now()
		where id = $1 returning state`
	first, second := r.begin(), r.begin()
	var one, two string
	if err := first.QueryRow(t.Context(), naive, p.ID.UUID(), "kim").Scan(&one); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Exec(t.Context(), `insert into audit_events select id, audit_seq, tenant_id, 'raw', 'raw', now(), '{}', ''::bytea from previews where id = $1`, p.ID.UUID()); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- second.QueryRow(t.Context(), naive, p.ID.UUID(), "lee").Scan(&two) }()
	r.awaitBlocked(1)
	r.forged = true // the naive votes carry no chain
	if err := first.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, done); err != nil {
		t.Fatal(err)
	}
	if one != "pending" || two != "pending" {
		t.Errorf("the naive votes led to %s, %s; they were expected to leave a met quorum pending", one, two)
	}
	if err := second.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Ours on the same row: the second vote is computed anew from the first.
	if got, err := r.approve(p, "lee"); err != nil || got.State != preview.Approved {
		t.Errorf("got %s, %v, want approved", got.State, err)
	}
}

func TestABatchIsCommittedBeforeItsCountsAreSeen(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.prepare("a", "new")
	conn, err := r.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	var batch pgx.Batch
	batch.Queue(`select from previews where id = $1 and state = 'claimed'`, p.ID.UUID()) // the "guard": no such row
	batch.Queue(`insert into policies (version, body) values ('naive', 'written')`)
	results := conn.SendBatch(t.Context(), &batch)
	if tag, err := results.Exec(); err != nil || tag.RowsAffected() != 0 {
		t.Fatalf("got %v, %v, want no row", tag, err)
	}
	// The client has seen that the guard failed and nothing else; the write behind it is there all the same.
	r.await(`select exists (select from policies where version = 'naive')`)
	if err := results.Close(); err != nil {
		t.Fatal(err)
	}
	// Ours keeps the guard in the statement: a stale epoch writes nothing.
	claim := r.claimOf(p)
	claim.Epochs.Freeze++
	if err := r.store.ClaimApproved(t.Context(), claim); !errors.Is(err, commit.ErrEpochsMoved) {
		t.Errorf("got %v, want ErrEpochsMoved", err)
	}
	if got := r.status(p.ID); got.Status != commit.StatusApproved || len(got.Events) != 1 {
		t.Errorf("got %s with %d events, want approved with 1", got.Status, len(got.Events))
	}
}

// failingCommit makes every claim fail when it commits, after its rows have been returned.
const failingCommit = `
	create function fail_commit() returns trigger language plpgsql as $$ begin raise exception 'deferred' using errcode = 'CU999'; end $$;
	create constraint trigger fail_commit after insert on attempts deferrable initially deferred for each row execute function fail_commit()`

func TestRowsBeforeAFailingCommitAreNoSuccess(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.prepare("a", "new")
	r.exec(failingCommit)
	conn, err := r.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	var batch pgx.Batch
	batch.Queue(`select set_config('synchronous_commit', 'on', true)`)
	batch.Queue(moveSQL("state = 'claimed'")+` returning true`, p.ID.UUID()) // claimed, with no execution
	results := conn.SendBatch(t.Context(), &batch)
	var claimed bool
	if _, err := results.Exec(); err != nil {
		t.Fatal(err)
	}
	if err := results.QueryRow().Scan(&claimed); err != nil || !claimed {
		t.Errorf("the naive reader got %v, %v; it was expected to see a claim that does not commit", claimed, err)
	}
	if err := results.Close(); err == nil {
		t.Error("the failed commit was not reported by Close")
	}
	if c, err := r.apply(p); err == nil || c.Status == commit.StatusApplied {
		t.Errorf("got %s, %v, want an error", c.Status, err)
	}
	if got := r.status(p.ID); got.Status != commit.StatusApproved || r.target.total() != 0 {
		t.Errorf("got %s with %d effects, want approved with 0", got.Status, r.target.total())
	}
}

func TestASingleStatementReportsAFailingCommitToo(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.prepare("a", "new")
	r.exec(`
		create function fail_commit() returns trigger language plpgsql as $$ begin raise exception 'deferred' using errcode = 'CU999'; end $$;
		create constraint trigger fail_commit after insert on audit_events deferrable initially deferred for each row execute function fail_commit()`)
	if _, err := r.previews.Cancel(t.Context(), agent("bot"), p.ID, ""); err == nil {
		t.Error("a cancel that did not commit was reported as done")
	}
	if got := r.status(p.ID).Status; got != commit.StatusApproved {
		t.Errorf("got %s, want approved", got)
	}
}

// TestARecordSeesTheReplayItWaitedFor: within one statement, a row that the holder of the lock inserted stays invisible after
// the wait. A send that "never left" must not settle what a replay may be causing.
func TestARecordSeesTheReplayItWaitedFor(t *testing.T) {
	t.Parallel()
	r := newRig(t, unhurried)
	reading, resume := make(chan struct{}), make(chan struct{})
	r.target.reads(func(now connector.Reading) (connector.Reading, error) {
		close(reading)
		<-resume
		return now, nil
	})
	p := r.prepare("a", "new")
	applied := make(chan commit.Change, 1)
	go func() { c, _ := r.apply(p); applied <- c }()
	receive(t, reading)
	r.endLease(p.ID)
	if _, err := r.store.MarkLapsed(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	r.target.reads(nil)

	replay := r.begin()
	if _, err := replay.Exec(t.Context(), `select from previews where id = $1 for update`, p.ID.UUID()); err != nil {
		t.Fatal(err)
	}
	naive := make(chan bool, 1)
	go func() {
		var seen bool
		_ = r.pool.QueryRow(context.Background(), `
			with l as materialized (select id from previews where id = $1 for update)
			select exists (select from attempts a where a.preview_id = l.id and a.kind = 'replay') from l`, p.ID.UUID()).Scan(&seen)
		naive <- seen
	}()
	r.awaitBlocked(1)
	close(resume) // the sender wakes, sends nothing, and waits to record that
	r.awaitBlocked(2)
	attempt := uuid.New()
	for _, s := range []statement{
		run(`insert into attempts (id, preview_id, item, tenant_id, kind, started_at) values ($1, $2, 0, 'acme', 'replay', clock_timestamp())`, attempt, p.ID.UUID()),
		run(`update executions set current_attempt = $1, probe_until = clock_timestamp() + interval '1 minute' where preview_id = $2`, attempt, p.ID.UUID()),
	} {
		if _, err := replay.Exec(t.Context(), s.sql, s.args...); err != nil {
			t.Fatal(err)
		}
	}
	if err := replay.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if receive(t, naive) {
		t.Error("the naive statement saw the replay; it was expected not to")
	}
	if c := receive(t, applied); c.Status != commit.StatusUnknown {
		t.Errorf("got %s, want unknown: a replay may be causing the effect", c.Status)
	}
}

// TestAClaimThatWaitedThroughAnotherLife: while a claim waits for the row, another is made and its send never leaves. The
// execution is then there, and the waiting statement does not see it.
func TestAClaimThatWaitedThroughAnotherLife(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.prepare("a", "new")
	claim := r.claimOf(p)
	r.forged = true
	r.exec(`alter table previews disable trigger user; alter table executions disable trigger user`)
	life := r.begin()
	if _, err := life.Exec(t.Context(), `select from previews where id = $1 for update`, p.ID.UUID()); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- r.store.ClaimApproved(context.Background(), claim) }()
	r.awaitBlocked(1)
	if err := forgeExecution(t.Context(), life, p.ID, 0, commit.NotSent, time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := life.Exec(t.Context(), `update attempts set result = 'not_sent', finished_at = now()`); err != nil {
		t.Fatal(err)
	}
	if err := life.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, done); !errors.Is(err, commit.ErrNotClaimed) {
		t.Errorf("got %v, want ErrNotClaimed", err)
	}
	r.exec(`alter table previews enable trigger user; alter table executions enable trigger user`)
	if err := r.store.ClaimApproved(t.Context(), claim); err != nil {
		t.Errorf("the next claim: %v", err)
	}
}
