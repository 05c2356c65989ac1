package store_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/session"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
	"github.com/cutonce/cutonce/store"
)

// tenantConditions are the places at which a statement keeps to one tenant.
var tenantConditions = regexp.MustCompile(`(\w+\.)?tenant_id (=|is not distinct from) @(tenant|scope)\b|(\w+\.)?tenant_id in \('', @tenant\)`)

// furnished is a deployment in which one tenant has something of everything, and another one has nothing.
type furnished struct {
	*rig
	changes  []preview.Preview
	attempts map[preview.ID]uuid.UUID
}

func furnish(t *testing.T) furnished {
	r := newRig(t, hasty, func(r *rig) {
		other := newLedger()
		other.suffix = "_other"
		r.others = append(r.others, other)
	})
	f := furnished{rig: r}
	applied := r.prepare("a", "new")
	if _, err := r.apply(applied); err != nil {
		t.Fatal(err)
	}
	f.changes = append(f.changes, applied, r.unknown("d"), r.approved("c"), r.pending("b"))
	voted := r.pending("e", policy.Seats{AnyOf: []string{"leads"}, Count: 2})
	if _, err := r.approve(voted, "kim"); err != nil {
		t.Fatal(err)
	}
	sending := r.claimOf(r.approved("f"))
	sending.Clocks.LeaseFor = time.Hour
	if err := r.store.ClaimApproved(t.Context(), sending); err != nil {
		t.Fatal(err)
	}
	f.changes = append(f.changes, voted, preview.Preview{ID: sending.ID})
	r.freeze(commit.FreezeAction, "text_change_other")
	if err := (store.Sessions{Store: r.store}).Put(t.Context(), session.Record{
		Hash: [32]byte{1}, Tenant: "acme", Person: "kim", Actor: []byte(`{}`), AbsoluteFor: time.Hour,
	}); err != nil {
		t.Fatal(err)
	}
	f.attempts = map[preview.ID]uuid.UUID{}
	for _, p := range f.changes {
		f.attempts[p.ID] = uuid.New()
		if c := r.status(p.ID); len(c.Executions) > 0 {
			f.attempts[p.ID] = c.Executions[0].CurrentAttempt
		}
	}
	return f
}

// fingerprint is all that acme has.
func (f furnished) fingerprint(tx pgx.Tx) string {
	f.t.Helper()
	var all []string
	for _, table := range slices.Sorted(maps.Keys(tenantColumn)) {
		all = append(all, `select t::text || xmin::text as row from `+table+` t where `+tenantColumn[table]+` = 'acme'`)
	}
	var sum string
	err := tx.QueryRow(f.t.Context(), `select coalesce(md5(string_agg(row, ',' order by row)), '') from (`+strings.Join(all, " union all ")+`) t`).Scan(&sum)
	if err != nil {
		f.t.Fatal(err)
	}
	return sum
}

// tried is what a statement gave and did.
type tried struct {
	told    string // its rows
	changed bool   // something of acme's
	err     error
}

// leaks reports whether anything of acme's was shown or touched.
func (d tried) leaks() bool { return strings.Contains(d.told, "acme") || d.changed }

// try runs one statement about one of acme's changes, in a transaction that is rolled back.
func (f furnished) try(conn *pgx.Conn, as, sql string, about preview.Preview, attempt uuid.UUID) (d tried) {
	f.t.Helper()
	ctx := f.t.Context()
	tx, err := conn.Begin(ctx)
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(ctx) }()
	before := f.fingerprint(tx)
	if _, err := tx.Exec(ctx, "savepoint before"); err != nil {
		f.t.Fatal(err)
	}
	if as != "" {
		if _, err := tx.Exec(ctx, as, pgx.NamedArgs{"tenant": "rival"}); err != nil {
			f.t.Fatal(err)
		}
	}
	d.told, d.err = f.run(tx, sql, about, attempt)
	if d.err == nil {
		_, d.err = tx.Exec(ctx, "set constraints all immediate")
	}
	if d.err != nil {
		if _, err := tx.Exec(ctx, "rollback to savepoint before"); err != nil {
			f.t.Fatal(err)
		}
	}
	if _, err := tx.Exec(ctx, "reset role"); err != nil {
		f.t.Fatal(err)
	}
	d.changed = f.fingerprint(tx) != before
	return d
}

// run gives a statement arguments that fit acme's change, whatever they are called.
func (f furnished) run(tx pgx.Tx, sql string, about preview.Preview, attempt uuid.UUID) (string, error) {
	args := f.arguments(tx, sql, about, attempt)
	rows, err := tx.Query(f.t.Context(), sql, args)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	var told strings.Builder
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			return "", err
		}
		for _, v := range values {
			if raw, ok := v.([]byte); ok {
				v = string(raw)
			}
			if id, ok := v.([16]byte); ok && slices.ContainsFunc(f.changes, func(p preview.Preview) bool { return p.ID.UUID() == uuid.UUID(id) }) {
				v = "a change of acme's"
			}
			fmt.Fprintf(&told, "%v|", v)
		}
	}
	return told.String(), rows.Err()
}

// arguments are those by which a statement would work for its owner; what it asks for beside them is filled in by type.
func (f furnished) arguments(tx pgx.Tx, sql string, p preview.Preview, attempt uuid.UUID) pgx.NamedArgs {
	f.t.Helper()
	now, conn := time.Now(), tx.Conn()
	var epochs [3]int64
	err := tx.QueryRow(f.t.Context(), `select coalesce(sum(freeze_epoch), 0)::bigint, coalesce(sum(policy_epoch), 0)::bigint,
		coalesce(sum(approvers_epoch), 0)::bigint from controls`).Scan(&epochs[0], &epochs[1], &epochs[2]) // as whoever asks sees them
	if err != nil {
		f.t.Fatal(err)
	}
	args := pgx.NamedArgs{
		"tenant": "rival", "scope": "rival", "id": p.ID.UUID(), "digest": p.Digest[:], "item": 0, "attempt": attempt, "from": string(p.State), "next": string(p.State),
		"revision": p.Revision, "round": p.Round, "caller": agent("bot").ID(), "owner": agent("bot").ID(), "person": agent("bot").Person(), "action": p.Action,
		"target": p.Plan.Target.Key(), "target_id": p.Plan.Target.ID, "target_key": p.Plan.Target.Key(), "hash": make([]byte, 32), "kind": "lookup",
		"limit": 50, "before": uuid.Max, "after": now.Add(-time.Hour), "after_id": uuid.Nil, "state": "approved", "body": []byte(`{}`), "actor": "x",
		"freeze_epoch": epochs[0], "policy_epoch": epochs[1], "approvers_epoch": epochs[2], "freeze_kind": "action", "name": "text_change_other",
		"input_hash": make([]byte, 32), "ruling": []byte(`{}`), "statuses": []string{"applied", "pending", "approved", "unknown", "applying"},
	}
	rewritten, _, err := args.RewriteQuery(f.t.Context(), conn, sql, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	sd, err := conn.Prepare(f.t.Context(), "", rewritten)
	if err != nil {
		f.t.Fatalf("%v: %s", err, sql)
	}
	// The names in their order, as the statement's places.
	itself := pgx.NamedArgs{}
	for _, m := range regexp.MustCompile(`@(\w+)`).FindAllStringSubmatch(sql, -1) {
		itself[m[1]] = m[1]
	}
	_, names, err := itself.RewriteQuery(f.t.Context(), conn, sql, nil)
	if err != nil || len(names) != len(sd.ParamOIDs) {
		f.t.Fatalf("got %d names for %d places, %v", len(names), len(sd.ParamOIDs), err)
	}
	for n, name := range names {
		if _, ok := args[name.(string)]; !ok || sd.ParamOIDs[n] == pgtype.JSONBOID {
			args[name.(string)] = filler(sd.ParamOIDs[n])
		}
	}
	return args
}

func filler(oid uint32) any {
	switch oid {
	case pgtype.BoolOID:
		return true
	case pgtype.UUIDOID:
		return uuid.New()
	case pgtype.Int4OID, pgtype.Int8OID:
		return 1
	case pgtype.ByteaOID, pgtype.JSONBOID:
		return []byte(`{}`)
	case pgtype.IntervalOID:
		return time.Hour
	case pgtype.TimestamptzOID:
		return time.Now()
	case pgtype.TextArrayOID:
		return []string{}
	}
	return "x"
}

// statementsForTenants are those that keep to one tenant by a condition, without it.
func statementsForTenants(t *testing.T) map[string]string {
	all := maps.Clone(store.ListStatements())
	for name, sql := range sqlConstants(t) {
		if statementStart.MatchString(sql) && !fragment[name] {
			all[name] = sql
		}
	}
	for name, sql := range all {
		without := tenantConditions.ReplaceAllString(sql, "true")
		if without == sql || strings.HasPrefix(name, "sqlExport") { // which is the worker's
			delete(all, name)
			continue
		}
		all[name] = without
	}
	return all
}

// TestARemovedConditionSeesNothingForeign takes the tenant's condition out of every statement that has one, and runs it for another
// tenant, with everything else that its owner would ask by. Without the wall, the same statements show or change what is not theirs.
func TestARemovedConditionSeesNothingForeign(t *testing.T) {
	t.Parallel()
	f := furnish(t)
	f.forged = true // nothing is: everything is rolled back, and this test's last change is in nobody's hands
	conn, err := pgx.Connect(t.Context(), f.url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	constants := sqlConstants(t)
	statements := statementsForTenants(t)
	leaked, current := map[string]bool{}, map[preview.ID]preview.Preview{}
	for _, p := range f.changes {
		current[p.ID] = f.status(p.ID).Preview
	}
	for _, name := range slices.Sorted(maps.Keys(statements)) {
		for _, p := range f.changes {
			about, attempt := current[p.ID], f.attempts[p.ID]
			if d := f.try(conn, constants["sqlAsTenant"], statements[name], about, attempt); d.leaks() {
				t.Errorf("%s, without its condition, told %q and changed something: %t", name, d.told, d.changed)
			} else if refused := (*pgconn.PgError)(nil); errors.As(d.err, &refused) && refused.Code == "42501" && strings.Contains(refused.Message, "denied") {
				t.Errorf("%s: %v: cutonce_app is to run it", name, d.err)
			}
			d := f.try(conn, "", statements[name], about, attempt)
			leaked[name] = leaked[name] || d.leaks()
		}
	}
	var without []string
	for name, leaks := range leaked {
		if leaks {
			without = append(without, name)
		}
	}
	t.Logf("%d statements without their condition; %d of them show or change what is foreign where there is no wall", len(statements), len(without))
	if len(without) < 25 {
		t.Errorf("only %d of %d statements need the wall: %v", len(without), len(statements), slices.Sorted(slices.Values(without)))
	}
}

// tenantColumn is where each table names its tenant.
var tenantColumn = map[string]string{
	"previews": "tenant_id", "executions": "tenant_id", "attempts": "tenant_id", "decisions": "tenant_id", "audit_events": "tenant_id",
	"resolutions": "tenant_id", "restore_holds": "tenant_id", "tombstones": "tenant_id", "sessions": "tenant_id", "cap_ledgers": "tenant_id",
	"cap_reservations": "tenant_id", "removed_approvers": "tenant_id", "controls": "tenant_id", "control_events": "scope", "freezes": "tenant_id", "seal_leaves": "tenant_id",
}

// walled are our tables but for those that hold nobody's rows, and for River's, which only the worker is granted.
func walled(t testing.TB) (tables []string) {
	t.Helper()
	for _, table := range store.OurTables() {
		if !slices.Contains(store.Unwalled, table) && !strings.HasPrefix(table, "river_") {
			tables = append(tables, table)
		}
	}
	return tables
}

// TestEveryTableIsBehindTheWall asks the catalogue, so that no later table is forgotten: select wall(…) in its migration.
func TestEveryTableIsBehindTheWall(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, table := range walled(t) {
		var enabled, forced, own, column bool
		err := r.pool.QueryRow(t.Context(), `
			select c.relrowsecurity, c.relforcerowsecurity,
			  exists (select from pg_policies p where p.tablename = $1 and p.policyname = 'own_tenant' and p.cmd = 'ALL' and p.roles = array['cutonce_app']::name[]),
			  exists (select from information_schema.columns k where k.table_name = $1 and k.column_name = 'tenant_id')
			from pg_class c where c.oid = $1::text::regclass`, table).Scan(&enabled, &forced, &own, &column)
		if err != nil {
			t.Fatal(err)
		}
		if !enabled || !forced {
			t.Errorf("%s is not behind row-level security (enabled %t, forced %t): select wall('%s', …) in its migration", table, enabled, forced, table)
		}
		var granted bool
		r.scalar(&granted, `select has_any_column_privilege('cutonce_app', $1::text, 'select')`, table)
		if granted && !own || column && tenantColumn[table] == "" && granted {
			t.Errorf("%s is granted to cutonce_app without a policy that keeps it to one tenant, or is not in tenantColumn", table)
		}
	}
	var definers int
	r.scalar(&definers, `select count(*) from pg_proc p where p.prosecdef and p.pronamespace = current_schema()::regnamespace`)
	if definers > 0 {
		t.Errorf("got %d functions that run as their owner, want none: they pass by the wall", definers)
	}
}

// TestTheTwoRolesMayDoTheirWorkAndNoMore is the table of grants.
func TestTheTwoRolesMayDoTheirWorkAndNoMore(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	rows, err := r.pool.Query(t.Context(), `
		select r.rolname || ' ' || c.relname, string_agg(p, ' ' order by p)
		from pg_roles r, pg_class c, unnest(array['delete', 'insert', 'references', 'select', 'trigger', 'truncate', 'update']) p
		where r.rolname in ('cutonce_app', 'cutonce_worker') and c.relnamespace = current_schema()::regnamespace and c.relkind = 'r'
		  and has_table_privilege(r.oid, c.oid, p) and c.relname not like 'river\_%'
		group by 1`)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	var what, may string
	if _, err := pgx.ForEachRow(rows, []any{&what, &may}, func() error { got[what] = may; return nil }); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(store.Grants(), got); diff != "" {
		t.Errorf("grants (-want +got):\n%s", diff)
	}
	var more int
	r.scalar(&more, `select count(*) from pg_roles where rolname in ('cutonce_app', 'cutonce_worker')
		and (rolsuper or rolbypassrls or rolcreaterole or rolcreatedb or rolcanlogin or rolinherit)`)
	if more > 0 {
		t.Errorf("got %d of the roles with more than they need", more)
	}
	for _, role := range []string{"cutonce_app", "cutonce_worker"} {
		var creates, owns bool
		r.scalar(&creates, `select has_schema_privilege($1, current_schema(), 'create')`, role)
		r.scalar(&owns, `select exists (select from pg_class where relowner = $1::text::regrole)`, role)
		if creates || owns {
			t.Errorf("%s creates %t, owns %t: want neither", role, creates, owns)
		}
	}
}

// TestNobodySeesAnythingAsThemselves: the login that serves has no right but to take the roles, and the owner of the tables has no policy.
func TestNobodySeesAnythingAsThemselves(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.prepare("a", "new")
	login, err := pgx.Connect(t.Context(), serving(t, r.url))
	if err != nil {
		t.Fatal(err)
	}
	defer login.Close(context.WithoutCancel(t.Context()))
	for _, table := range walled(t) {
		var n int
		err := login.QueryRow(t.Context(), `select count(*) from `+table).Scan(&n)
		if refused := (*pgconn.PgError)(nil); !errors.As(err, &refused) || refused.Code != "42501" {
			t.Errorf("%s: got %d rows, %v, want permission denied", table, n, err)
		}
	}
	// A role without a tenant is nobody's.
	for _, sql := range []string{`begin; set local role cutonce_app`, `begin; set local role cutonce_app; set local cutonce.tenant = ''`} {
		var n int
		if _, err := login.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
		if err := login.QueryRow(t.Context(), `select count(*) from previews`).Scan(&n); err != nil || n != 0 {
			t.Errorf("%s: got %d changes, %v, want none", sql, n, err)
		}
		if _, err := login.Exec(t.Context(), `rollback`); err != nil {
			t.Fatal(err)
		}
	}
	owner := r.ownedBy(t)
	var n int
	if err := owner.QueryRow(t.Context(), `select count(*) from previews`).Scan(&n); err != nil || n != 0 {
		t.Errorf("got %d changes as the tables' owner, %v, want none", n, err)
	}
}

// ownedBy hands all tables to a role that is no superuser, and connects as it.
func (r *rig) ownedBy(t *testing.T) *pgx.Conn {
	t.Helper()
	r.exec(`do $$ begin create role cutonce_test_owner noinherit; exception when duplicate_object or unique_violation then null; end $$`)
	for _, table := range store.OurTables() {
		r.exec(`alter table ` + table + ` owner to cutonce_test_owner`)
	}
	conn, err := pgx.Connect(t.Context(), r.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.WithoutCancel(t.Context())) })
	if _, err := conn.Exec(t.Context(), `set role cutonce_test_owner`); err != nil {
		t.Fatal(err)
	}
	return conn
}

// TestTwoTenantsShareNothingButTargets is the whole life of changes of two tenants at one target.
func TestTwoTenantsShareNothingButTargets(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	rival := agent("bot")
	rival.Tenant = "rival"
	mine := r.prepare("a", "new")
	theirs, err := r.previews.Prepare(t.Context(), rival, preview.Request{Action: "text_change", Input: input("a", "other")})
	if err != nil {
		t.Fatal(err)
	}
	if c, err := r.apply(mine); err != nil || c.Status != commit.StatusApplied {
		t.Fatalf("got %s, %v, want applied", c.Status, err)
	}
	// The same target has moved: the lock and the version are the target's, whoever asks.
	c, err := r.commits.Apply(t.Context(), rival, "text_change", theirs.Preview.ID, 10*time.Second)
	if err != nil || c.Status != commit.StatusNotApplied || c.Executions[0].Reason != commit.Drifted {
		t.Errorf("got %s, %v, want drifted", c.Status, err)
	}
	for who, own := range map[string]preview.ID{"acme": mine.ID, "rival": theirs.Preview.ID} {
		list, _, err := r.store.List(t.Context(), commit.Filter{Tenant: who, Limit: 10})
		if err != nil || len(list) != 1 || list[0].Preview.ID != own {
			t.Errorf("%s: got %d changes, %v, want its own", who, len(list), err)
		}
	}
	if err := r.commits.Sweep(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestAStaleReadIsSeenAcrossTenants: the version that a read shows was replaced by another tenant's change just now.
func TestAStaleReadIsSeenAcrossTenants(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.clocks.SettleFor = time.Minute
	mine := r.prepare("a", "new")
	if _, err := r.apply(mine); err != nil {
		t.Fatal(err)
	}
	rival := actor.Actor{Tenant: "rival", Kind: actor.Agent, Issuer: "https://id.example", Subject: "bot", Client: "bot", Scopes: []string{"ledger:read", "ledger:write"}}
	theirs, err := r.previews.Prepare(t.Context(), rival, preview.Request{Action: "text_change", Input: input("a", "other")})
	if err != nil {
		t.Fatal(err)
	}
	claim := commit.Claim{
		Key: commit.Key{Tenant: "rival", ID: theirs.Preview.ID}, Attempt: uuid.New(), By: rival, Digest: theirs.Preview.Digest, Clocks: r.clocks,
	}
	_, epochs, err := r.store.Load(t.Context(), "rival", theirs.Preview.ID, false)
	if err != nil {
		t.Fatal(err)
	}
	claim.Epochs = epochs
	if err := r.store.ClaimApproved(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	check, err := r.store.CheckLease(t.Context(), claim.Key, claim.Attempt, mine.Plan.Version, time.Minute)
	if err != nil || !check.Current || !check.ReplacedHere {
		t.Errorf("got %+v, %v, want the version of acme's change known as replaced", check, err)
	}
	if err := r.record(commit.Result{Key: claim.Key, Attempt: claim.Attempt, Kind: commit.Send, Class: connector.ClassNotSent}); err != nil {
		t.Fatal(err)
	}
}

// TestACursorIsOneTenants: a place in one tenant's list is no place in another's, whatever it would show there.
func TestACursorIsOneTenants(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, id := range []string{"a", "b"} {
		r.pending(id)
	}
	list := commit.Filter{Tenant: "acme", Limit: 1}
	_, cursor, err := r.store.List(t.Context(), list)
	if err != nil || cursor == "" {
		t.Fatalf("got cursor %q, %v", cursor, err)
	}
	list.Cursor = cursor
	if page, _, err := r.store.List(t.Context(), list); err != nil || len(page) != 1 {
		t.Errorf("got %d changes, %v, want the second", len(page), err)
	}
	list.Tenant = "rival"
	_, _, err = r.store.List(t.Context(), list)
	wantCode(t, err, fault.InvalidInput)
	_, next, _, err := r.store.Queue(t.Context(), "acme", approvals.Page{Limit: 1})
	if err != nil || next == "" {
		t.Fatalf("got cursor %q, %v", next, err)
	}
	_, _, _, err = r.store.Queue(t.Context(), "rival", approvals.Page{Limit: 1, Cursor: next})
	wantCode(t, err, fault.InvalidInput)
	for _, forged := range []string{"e30", "bm8", strings.Repeat("A", 40)} {
		_, _, err = r.store.List(t.Context(), commit.Filter{Tenant: "acme", Limit: 1, Cursor: forged})
		wantCode(t, err, fault.InvalidInput)
	}
}

// TestAStatementWithoutATenantIsRefused: one that forgets to say whose it is does not run at all.
func TestAStatementWithoutATenantIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.prepare("a", "new")
	if _, _, err := r.store.Load(t.Context(), "", p.ID, true); err == nil || errors.Is(err, fault.NotFound) {
		t.Errorf("got %v, want a refusal", err)
	}
	if _, _, err := r.store.List(t.Context(), commit.Filter{Limit: 1}); err == nil {
		t.Error("a list of nobody's was given")
	}
	if _, _, err := r.store.Cancel(t.Context(), preview.Move{ID: p.ID, By: agent("bot")}); err == nil {
		t.Error("a change of nobody's was canceled")
	}
}

// TestWhatWaitsIsCountedByTenant is for metrics.
func TestWhatWaitsIsCountedByTenant(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.pending("a")
	r.rules.set(automatic)
	r.unknown("b")
	waiting, err := r.store.Waiting(t.Context())
	want := map[string]store.Waiting{"acme": {Pending: 1, Unknown: 1}}
	if diff := cmp.Diff(want, waiting); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
