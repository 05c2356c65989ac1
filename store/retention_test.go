package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
	"github.com/cutonce/cutonce/store"
)

// withoutFloor takes away the schema's own floor, as only the tables' owner can, so that a test need not be thirty days long.
func (r *rig) withoutFloor() {
	r.t.Helper()
	r.exec(`create or replace function retention_floor() returns interval language sql immutable as $$ select interval '0' $$`)
}

// retire makes one pass with no patience at all.
func (r *rig) retire() int {
	r.t.Helper()
	n, err := store.Retention{Store: r.store, Keep: time.Microsecond}.Pass(r.t.Context())
	if err != nil {
		r.t.Fatalf("retire: %v", err)
	}
	return n
}

func (r *rig) rowsOf(id preview.ID) map[string]int {
	r.t.Helper()
	rows := map[string]int{}
	for table, key := range recordTables {
		var n int
		r.scalar(&n, fmt.Sprintf(`select count(*) from %s where %s = $1`, table, key), id.UUID())
		rows[table] = n
	}
	return rows
}

// recordTables hold a preview's record, by the column that names it.
var recordTables = map[string]string{
	"previews": "id", "audit_events": "preview_id", "decisions": "preview_id", "executions": "preview_id", "attempts": "preview_id",
	"resolutions": "preview_id",
}

// ends makes a change of every final status, each with all the rows that such a change can have.
func (r *rig) ends() map[commit.Status]preview.ID {
	r.t.Helper()
	ctx := r.t.Context()
	done := map[commit.Status]preview.ID{}
	check := func(err error) {
		r.t.Helper()
		if err != nil {
			r.t.Fatal(err)
		}
	}
	p := r.pending("applied")
	_, err := r.approve(p, "kim")
	check(err)
	_, err = r.apply(p)
	check(err)
	done[commit.StatusApplied] = p.ID
	p = r.pending("rejected")
	_, err = r.reject(p, "kim")
	check(err)
	done[commit.StatusRejected] = p.ID
	p = r.pending("canceled")
	_, err = r.previews.Cancel(ctx, agent("bot"), p.ID, "")
	check(err)
	done[commit.StatusCanceled] = p.ID
	r.rules.set(policy.Ruling{Verdict: policy.Deny, Rule: "no", Version: policyVersion})
	done[commit.StatusDenied] = r.prepare("denied", "new").ID
	r.rules.set(automatic)
	p = r.prepare("refused", "new")
	r.target.script(func(context.Context, connector.Plan, connector.Call, func() error) (connector.Receipt, error) {
		return connector.Receipt{}, connector.Rejected(422, "no such thing")
	})
	_, err = r.apply(p)
	check(err)
	r.target.script(nil)
	r.exec(`update executions set next_probe_at = null where preview_id = $1`, p.ID.UUID()) // its later looks are done
	done[commit.StatusNotApplied] = p.ID
	r.clocks.PreviewTTL = 10 * time.Millisecond
	brief, _, _ := services(r.t, r, r.store)
	lapsing, err := brief.Prepare(ctx, agent("bot"), preview.Request{Action: "text_change", Input: input("expired", "new")})
	check(err)
	r.sweepUntil(lapsing.Preview.ID, commit.StatusExpired)
	for countOf(r.kinds(lapsing.Preview.ID), "expired") == 0 { // read as expired at once; marked by the sweep
		check(r.commits.Sweep(ctx))
	}
	done[commit.StatusExpired] = lapsing.Preview.ID
	for want, id := range done {
		if got := r.status(id).Status; got != want {
			r.t.Fatalf("got a change that is %s, want %s", got, want)
		}
	}
	return done
}

func TestWhatWasSettledLongAgoIsRetiredWhole(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.withoutFloor()
	ends := r.ends()
	heads := map[preview.ID]string{}
	for _, id := range ends {
		var head string
		r.scalar(&head, `select audit_seq || ':' || encode(audit_head, 'hex') from previews where id = $1`, id.UUID())
		heads[id] = head
	}
	effects := r.target.total()
	if got, want := r.retire(), len(ends); got != want {
		t.Fatalf("got %d retired, want %d", got, want)
	}
	for status, id := range ends {
		for table, n := range r.rowsOf(id) {
			if n != 0 {
				t.Errorf("%s: got %d rows in %s, want none", status, n, table)
			}
		}
		var head string
		r.scalar(&head, `select audit_seq || ':' || encode(audit_head, 'hex') from tombstones where preview_id = $1 and tenant_id = 'acme'`, id.UUID())
		if head != heads[id] {
			t.Errorf("%s: got the tombstone %s, want %s", status, head, heads[id])
		}
		_, err := r.commits.Apply(t.Context(), agent("bot"), "text_change", id, 0)
		wantCode(t, err, fault.NotFound)
		_, err = r.commits.Status(t.Context(), agent("bot"), id, 0, true)
		wantCode(t, err, fault.NotFound)
		_, err = r.previews.Cancel(t.Context(), agent("bot"), id, "")
		wantCode(t, err, fault.NotFound)
		_, err = r.approvals.Decide(t.Context(), person("kim", "leads"), id, approvals.Decision{Approve: true})
		wantCode(t, err, fault.NotFound)
	}
	var batches, events int
	r.scalar(&batches, `select count(distinct retired_at) from tombstones`)
	r.scalar(&events, `
		select count(*) from control_events v where v.kind = 'retired' and convert_from(v.body, 'UTF8') = (
		  select format('{"changes":%s,"digest":"%s"}', count(*), encode(sha256(string_agg(uuid_send(preview_id) || int8send(audit_seq) || audit_head,
		    '' order by preview_id)), 'hex')) from tombstones s where s.retired_at = v.at)`)
	if batches != 1 || events != 1 {
		t.Errorf("got %d batches and %d control events that digest one, want 1 and 1", batches, events)
	}
	if got := r.target.total(); got != effects {
		t.Errorf("got %d effects after the retirement, want %d as before", got, effects)
	}
	if got := r.retire(); got != 0 {
		t.Errorf("a second pass: got %d retired, want none", got)
	}
}

func TestWhatIsNotSettledIsKept(t *testing.T) {
	t.Parallel()
	r := newRig(t, hasty)
	r.withoutFloor()
	kept := map[string]preview.ID{"pending": r.pending("pending").ID}
	kept["needs approval"] = r.prepare("needs approval", "new").ID
	r.rules.set(automatic)
	kept["approved"] = r.prepare("approved", "new").ID
	late := r.unknown("late")
	r.sweepUntil(late.ID, commit.StatusNotApplied)
	kept["looked at again later"] = late.ID
	r.target.looks(func(connector.Call) (connector.Finding, error) {
		return connector.Finding{Found: connector.EffectUnsure}, nil
	})
	kept["unknown"] = r.unknown("unknown").ID
	if got := r.retire(); got != 0 {
		t.Errorf("got %d retired, want none", got)
	}
	for name, id := range kept {
		if r.rowsOf(id)["previews"] != 1 {
			t.Errorf("%s: it is gone", name)
		}
	}
	r.exec(`update executions set next_probe_at = null where preview_id = $1`, late.ID.UUID())
	if got := r.retire(); got != 1 || r.rowsOf(late.ID)["previews"] != 0 {
		t.Errorf("after the last look: got %d retired, want that one", got)
	}
}

func TestAContradictionStaysOnRecord(t *testing.T) {
	t.Parallel()
	r := newRig(t, hasty)
	r.withoutFloor()
	p := r.unknown("a")
	r.sweepUntil(p.ID, commit.StatusNotApplied)
	r.forging(func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `
			update executions set state = 'applied', reason = '', contradicted = true, next_probe_at = null where preview_id = $1`, p.ID.UUID())
		return err
	})
	if got := r.retire(); got != 0 || r.rowsOf(p.ID)["executions"] != 1 {
		t.Errorf("got %d retired, want none: a contradiction is an incident", got)
	}
}

func TestAKeyOutlivesItsChange(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.withoutFloor()
	request := preview.Request{Action: "text_change", Input: input("a", "new"), Key: "k1"}
	first, err := r.previews.Prepare(t.Context(), agent("bot"), request)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.apply(first.Preview); err != nil {
		t.Fatal(err)
	}
	if got := r.retire(); got != 1 {
		t.Fatalf("got %d retired, want 1", got)
	}
	for name, again := range map[string]preview.Request{
		"the same call": request, "another input": {Action: "text_change", Input: input("a", "newer"), Key: "k1"},
	} {
		_, err := r.previews.Prepare(t.Context(), agent("bot"), again)
		var f *fault.Fault
		if !errors.As(err, &f) || f.Code != fault.IdempotencyConflict || f.Key != "fault.idempotency_conflict.retired" {
			t.Errorf("%s: got %v, want the conflict with what was retired", name, err)
		}
	}
	var stored int
	if r.scalar(&stored, `select count(*) from previews`); stored != 0 {
		t.Errorf("got %d previews, want none", stored)
	}
	for name, fresh := range map[string]struct {
		who string
		key string
	}{"another caller": {"bot2", "k1"}, "another key": {"bot", "k2"}, "no key": {"bot", ""}} {
		q := request
		q.Key = fresh.key
		if _, err := r.previews.Prepare(t.Context(), agent(fresh.who), q); err != nil {
			t.Errorf("%s: got %v, want a new preview", name, err)
		}
	}
}

// tombstone writes the stone that fits a preview, but for what a test changes.
func tombstone(id preview.ID, changed ...string) statement {
	columns := map[string]string{
		"preview_id": "id", "tenant_id": "tenant_id", "audit_seq": "audit_seq", "audit_head": "audit_head",
		"key_hash": "key_hash(tenant_id, requester_id, action, idempotency_key)", "settled_at": "coalesce(settled_at(id), created_at)", "retired_at": "clock_timestamp()",
	}
	for n := 0; n < len(changed); n += 2 {
		columns[changed[n]] = changed[n+1]
	}
	return run(fmt.Sprintf(`
		insert into tombstones (preview_id, tenant_id, audit_seq, audit_head, key_hash, settled_at, retired_at)
		select %s, %s, %s, %s, %s, %s, %s from previews where id = $1`, columns["preview_id"], columns["tenant_id"], columns["audit_seq"],
		columns["audit_head"], columns["key_hash"], columns["settled_at"], columns["retired_at"]), id.UUID())
}

// removal deletes a preview's rows, those that refer to others first.
func removal(id preview.ID, tables ...string) []statement {
	var all []statement
	for _, table := range tables {
		all = append(all, run(fmt.Sprintf(`delete from %s where %s = $1`, table, recordTables[table]), id.UUID()))
	}
	return all
}

func TestThereIsOneDoorForRemoval(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.pending("a")
	if _, err := r.approve(p, "kim"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.apply(p); err != nil {
		t.Fatal(err)
	}
	r.rules.set(automatic)
	open, other := r.prepare("b", "new").ID, r.prepare("c", "new")
	if _, err := r.apply(other); err != nil {
		t.Fatal(err)
	}
	whole := removal(p.ID, "attempts", "executions", "decisions", "audit_events", "previews")
	after := func(first statement, rest ...statement) []statement { return append([]statement{first}, rest...) }
	if got := r.sqlState(after(tombstone(p.ID), whole...)...); got != "CU010" {
		t.Errorf("under the floor: got %q, want CU010", got)
	}
	if _, err := r.store.Retire(t.Context(), time.Microsecond, preview.ID{}, 10); stateOf(t, err) != "CU010" {
		t.Errorf("the worker under the floor: got %v, want CU010", err)
	}
	r.withoutFloor()
	for _, tc := range []struct {
		name       string
		statements []statement
		want       string
	}{
		{"no tombstone", whole, "CU001"},
		{"one row, no tombstone", removal(p.ID, "attempts"), "CU001"},
		{"of an open preview", after(tombstone(open), removal(open, "audit_events", "previews")...), "CU010"},
		{"of no preview", []statement{run(`insert into tombstones values (gen_random_uuid(), 'acme', 1, '', null, 'epoch', clock_timestamp())`)}, "CU010"},
		{"another tenant", after(tombstone(p.ID, "tenant_id", "'other'"), whole...), "CU010"},
		{"another end of the chain", after(tombstone(p.ID, "audit_seq", "audit_seq - 1"), whole...), "CU010"},
		{"another head", after(tombstone(p.ID, "audit_head", "sha256(audit_head)"), whole...), "CU010"},
		{"a key that it had not", after(tombstone(p.ID, "key_hash", "sha256('')"), whole...), "CU010"},
		{"another time", after(tombstone(p.ID, "settled_at", "'epoch'"), whole...), "CU010"},
		{"retired long ago", after(tombstone(p.ID, "retired_at", "created_at"), whole...), "CU010"},
		{"retired tomorrow", after(tombstone(p.ID, "retired_at", "clock_timestamp() + interval '1 day'"), whole...), "CU010"},
		{"nothing removed", []statement{tombstone(p.ID)}, "CU010"},
		{"the preview stays", after(tombstone(p.ID), removal(p.ID, "attempts", "executions", "decisions")...), "CU010"},
		{"its events stay", after(tombstone(p.ID), removal(p.ID, "attempts", "executions", "decisions", "previews")...), "23503"},
		{"its decisions stay", after(tombstone(p.ID), removal(p.ID, "attempts", "executions", "audit_events", "previews")...), "23503"},
		{"its attempts stay", after(tombstone(p.ID), removal(p.ID, "executions", "decisions", "audit_events", "previews")...), "23503"},
		{"another's rows go with it", append(after(tombstone(p.ID), whole...), removal(other.ID, "attempts")...), "CU001"},
		{"its events are rewritten", after(tombstone(p.ID), run(`update audit_events set actor = 'other' where preview_id = $1`, p.ID.UUID())), "CU001"},
		{"whole", after(tombstone(p.ID), whole...), ""},
		{"a tombstone changed", []statement{run(`update tombstones set audit_seq = 1`)}, "CU001"},
		{"a tombstone removed", []statement{run(`delete from tombstones`)}, "CU001"},
		{"all tombstones removed", []statement{run(`truncate tombstones`)}, "CU001"},
		{"the ID again", []statement{run(`
			insert into previews select (jsonb_populate_record(p, jsonb_build_object('id', $1::text, 'state', 'denied', 'ended_at', now(), 'audit_seq', 1))).*
			from previews p where id = $2`, p.ID.UUID().String(), open.UUID())}, "CU011"},
	} {
		if got := r.sqlState(tc.statements...); got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestARetirementPassesOverWhatIsHeld(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.withoutFloor()
	held, free := r.prepare("a", "new"), r.prepare("b", "new")
	for _, p := range []preview.Preview{held, free} {
		if _, err := r.apply(p); err != nil {
			t.Fatal(err)
		}
	}
	tx := r.begin()
	if _, err := tx.Exec(t.Context(), `select from previews where id = $1 for update`, held.ID.UUID()); err != nil {
		t.Fatal(err)
	}
	if got := r.retire(); got != 1 || r.rowsOf(held.ID)["audit_events"] == 0 {
		t.Errorf("got %d retired, want the free one alone", got)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := r.retire(); got != 1 {
		t.Errorf("once it is free: got %d retired, want 1", got)
	}
}

// TestRetentionGoesByTheLastThingThatHappened moves a change into the past, as only the tables' owner can.
func TestRetentionGoesByTheLastThingThatHappened(t *testing.T) {
	t.Parallel()
	const keep = 60 * 24 * time.Hour
	r := newRig(t)
	old, revived, young := r.prepare("old", "new"), r.prepare("revived", "new"), r.prepare("young", "new")
	for _, p := range []preview.Preview{old, revived, young} {
		if _, err := r.apply(p); err != nil {
			t.Fatal(err)
		}
	}
	past := func(table, column, key string, id preview.ID, days int) {
		r.exec(fmt.Sprintf(`update %s set %s = %[2]s - make_interval(days => %d) where %s = $1`, table, column, days, key), id.UUID())
	}
	r.forged = true
	r.exec(`alter table previews disable trigger user`)
	r.exec(`alter table audit_events disable trigger user`)
	past("previews", "created_at", "id", old.ID, 61)
	past("previews", "created_at", "id", revived.ID, 61)
	past("audit_events", "at", "preview_id", old.ID, 61)
	past("audit_events", "at", "preview_id", revived.ID, 59) // created long ago, settled not so long ago
	r.exec(`alter table previews enable trigger user`)
	r.exec(`alter table audit_events enable trigger user`)
	worker := store.Retention{Store: r.store, Keep: keep, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	if n, err := worker.Pass(t.Context()); n != 1 || err != nil {
		t.Errorf("got %d, %v, want one retired", n, err)
	}
	if r.rowsOf(old.ID)["previews"] != 0 || r.rowsOf(revived.ID)["previews"] != 1 || r.rowsOf(young.ID)["previews"] != 1 {
		t.Error("another one than the oldest is gone")
	}
	if err := (store.Retention{Store: r.store}).Run(t.Context()); err != nil {
		t.Errorf("off by default: got %v, want it to end at once", err)
	}
}

// TestRetentionGoesThroughPages retires more than one batch with two workers at once; each change goes once.
func TestRetentionGoesThroughPages(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.withoutFloor()
	r.rules.set(policy.Ruling{Verdict: policy.Deny, Rule: "no", Version: policyVersion})
	const changes = 25
	for n := range changes {
		r.prepare(fmt.Sprint(n), "new")
	}
	removed := make(chan int)
	for range 2 {
		go func() {
			n, after := 0, preview.ID{}
			for {
				batch, err := r.store.Retire(t.Context(), time.Microsecond, after, 4)
				if err != nil {
					t.Error(err)
				}
				n += batch.Count
				if after = batch.Next; batch.Done || err != nil {
					removed <- n
					return
				}
			}
		}()
	}
	got := <-removed + <-removed
	got += r.retire() // what one worker held while the other passed by
	var stones int
	r.scalar(&stones, `select count(*) from tombstones`)
	if got != changes || stones != changes {
		t.Errorf("got %d retired with %d tombstones, want %d", got, stones, changes)
	}
}

// TestTheFloorLiesAboveEveryClock compares the schema's floor with what a configuration may ask for.
func TestTheFloorLiesAboveEveryClock(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var floor time.Duration
	if r.scalar(&floor, `select retention_floor()`); floor != store.RetentionFloor {
		t.Errorf("got %v in the schema, want %v", floor, store.RetentionFloor)
	}
}
