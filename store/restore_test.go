package store_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cutonce/cutonce/audit"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/pgtest"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
	"github.com/cutonce/cutonce/store"
)

// backup copies the database as it is now, and returns what opens a service on the copy, with the same target.
func (r *rig) backup() (restore func() *rig) {
	r.t.Helper()
	name := r.pool.Config().ConnConfig.Database
	copied := name + "_backup"
	admin := pgtest.Admin(r.t)
	deadline := time.Now().Add(30 * time.Second)
	for {
		pgtest.Terminate(r.t, r.pool)
		_, err := admin.Exec(r.t.Context(), "create database "+pgx.Identifier{copied}.Sanitize()+" template "+pgx.Identifier{name}.Sanitize())
		if err == nil {
			break
		}
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != "55006" || time.Now().After(deadline) { // in use: sessions take a moment to go
			r.t.Fatal(err)
		}
	}
	r.t.Cleanup(func() {
		ctx := context.Background()
		conn, err := pgx.Connect(ctx, admin.Config().ConnString())
		if err != nil {
			r.t.Fatal(err)
		}
		defer conn.Close(ctx)
		if _, err := conn.Exec(ctx, "drop database if exists "+pgx.Identifier{copied}.Sanitize()+" with (force)"); err != nil {
			r.t.Error(err)
		}
	})
	r.forged = true // what is left behind is of no interest: its changes are applied elsewhere
	config := r.pool.Config().ConnConfig.Copy()
	config.Database = copied
	return func() *rig {
		r.t.Helper()
		same := *r
		same.forged = false
		pool, err := pgxpool.NewWithConfig(r.t.Context(), func() *pgxpool.Config {
			c := r.pool.Config()
			c.ConnConfig = config
			return c
		}())
		if err != nil {
			r.t.Fatal(err)
		}
		r.t.Cleanup(pool.Close)
		same.pool = pool
		same.url = replaceDatabase(r.t, r.url, copied)
		same.store = openStore(r.t, same.url)
		same.direct = same.store
		r.t.Cleanup(func() { same.verifyAtEnd() })
		same.previews, same.approvals, same.commits = services(r.t, &same, same.store)
		return &same
	}
}

// sealWitnessed seals until the witness covers everything so far.
func (r *rig) sealWitnessed(path string) *audit.Seal {
	r.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		if err := r.sealer(path).Seal(r.t.Context()); err != nil {
			r.t.Fatal(err)
		}
		w, err := audit.ReadWitness(path)
		if err != nil {
			r.t.Fatal(err)
		}
		if w != nil && r.verifyExport(nil).Unsealed == 0 {
			return w
		}
		if time.Now().After(deadline) {
			r.t.Fatal("not everything is witnessed in time")
		}
		time.Sleep(20 * time.Millisecond) // polling with a deadline
	}
}

func (r *rig) declare(w *audit.Seal) int {
	r.t.Helper()
	declared, held, err := r.store.CheckWitness(r.t.Context(), *w)
	if err != nil || !declared {
		r.t.Fatalf("got %v, %v; want the witness to declare a restore", declared, err)
	}
	return held
}

// holdOf is the state of a change's hold.
func (r *rig) holdOf(id preview.ID) string {
	r.t.Helper()
	var state string
	r.scalar(&state, `select coalesce((select state from restore_holds where preview_id = $1), 'none')`, id.UUID())
	return state
}

// sweepHold sweeps until the change's hold has the state, or fails.
func (r *rig) sweepHold(id preview.ID, want string) {
	r.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; {
		if err := r.commits.Sweep(r.t.Context()); err != nil {
			r.t.Fatalf("sweep: %v", err)
		}
		got := r.holdOf(id)
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("the hold is %s, want %s", got, want)
		}
		time.Sleep(20 * time.Millisecond) // polling with a deadline
	}
}

// TestARestoredBackupIsFrozenAndLooksEffectsUp: what was applied after the backup is found by its constant key and never sent again;
// what was not is cleared, and can be applied once the restore is finished.
func TestARestoredBackupIsFrozenAndLooksEffectsUp(t *testing.T) {
	t.Parallel()
	r := newRig(t, hasty)
	path := filepath.Join(t.TempDir(), "witness")
	applied, left := r.prepare("applied", "new"), r.prepare("left", "new")
	retried := r.prepare("retried", "new")
	r.target.script(func(context.Context, connector.Plan, connector.Call, func() error) (connector.Receipt, error) {
		return connector.Receipt{}, connector.NotSent(errors.New("no route"))
	})
	if _, err := r.apply(retried); err == nil {
		t.Fatal("want the first send never to have left")
	}
	r.target.script(nil)
	pending, waiting := r.pending("pending"), r.pending("waiting")
	asking := r.asking("asking")
	r.sealWitnessed(path)

	restore := r.backup()

	r.rules.set(automatic)
	for _, p := range []preview.Preview{applied, retried} {
		if c, err := r.apply(p); err != nil || c.Status != commit.StatusApplied {
			t.Fatalf("in the lost time: got %s, %v, want applied", c.Status, err)
		}
	}
	r.rules.set(people(policy.Seats{AnyOf: []string{"leads"}, Count: 1}))
	if _, err := r.approve(pending, "kim"); err != nil {
		t.Fatal(err)
	}
	if c, err := r.apply(pending); err != nil || c.Status != commit.StatusApplied {
		t.Fatalf("in the lost time: got %s, %v, want applied", c.Status, err)
	}
	witness := r.sealWitnessed(path)

	back := restore()
	if got := back.declare(witness); got != 6 {
		t.Errorf("got %d changes held, want 6", got)
	}
	if declared, _, err := back.store.CheckWitness(t.Context(), *witness); err != nil || declared {
		t.Errorf("the same witness again: got %v, %v, want nothing declared", declared, err)
	}
	c, err := back.apply(left)
	wantCode(t, err, fault.Frozen)
	if f := fault.From(err); f.Key != "fault.frozen.held" || f.Next != fault.NextContactOperator || c.Status != commit.StatusApproved {
		t.Errorf("a held change: got %s, %s, %s", f.Key, f.Next, c.Status)
	}
	back.rules.set(automatic)
	fresh := back.prepare("fresh", "new")
	_, err = back.apply(fresh)
	if f := fault.From(err); f.Code != fault.Frozen || f.Key != "fault.frozen.restored" {
		t.Errorf("a new change: got %v, want it frozen by the restore", err)
	}
	for _, p := range []preview.Preview{applied, retried, pending} {
		back.sweepHold(p.ID, "found")
		got := back.status(p.ID)
		if got.Status != commit.StatusApplied || got.Executions[0].Evidence != commit.ByLookup {
			t.Errorf("%s: got %s by %v, want applied by look-up", p.Plan.Target.ID, got.Status, got.Executions)
		}
	}
	for _, p := range []preview.Preview{left, waiting, asking} {
		back.sweepHold(p.ID, "cleared")
	}
	if _, err = back.apply(left); fault.From(err).Key != "fault.frozen.restored" {
		t.Errorf("a cleared change before the end of the restore: got %v, want it frozen", err)
	}
	finished, err := back.store.FinishRestore(t.Context(), "operator:kim", "all looked up")
	if err != nil || !finished {
		t.Fatalf("finishing: got %v, %v", finished, err)
	}
	for _, p := range []preview.Preview{left, fresh, applied, retried, pending} {
		if c, err := back.apply(p); err != nil || c.Status != commit.StatusApplied {
			t.Errorf("%s after the restore: got %s, %v, want applied", p.Plan.Target.ID, c.Status, err)
		}
	}
	if got := r.target.total(); got != 5 {
		t.Errorf("got %d effects, want 5, one of each", got)
	}
	back.sealWitnessed(path)
	report := back.verifyExport(nil)
	wantFindings(t, report)
	if report.Restores != 1 {
		t.Errorf("got %d restores in the trail, want 1", report.Restores)
	}
}

// asking prepares a change that needs approval and has asked nobody.
func (r *rig) asking(id string) preview.Preview {
	r.t.Helper()
	r.rules.set(people(policy.Seats{AnyOf: []string{"leads"}, Count: 1}))
	return r.prepare(id, "new")
}

// TestWhatNobodyCanTellAfterARestore: an open change becomes an unknown outcome in operators' hands and is never replayed; one that
// ended since is an incident if its effect is there.
func TestWhatNobodyCanTellAfterARestore(t *testing.T) {
	t.Parallel()
	r := newRig(t, hasty)
	open, withdrawn, vanished := r.prepare("open", "new"), r.prepare("withdrawn", "new"), r.prepare("vanished", "new")
	restore := r.backup()
	if c, err := r.apply(withdrawn); err != nil || c.Status != commit.StatusApplied {
		t.Fatalf("in the lost time: got %s, %v, want applied", c.Status, err)
	}
	back := restore()
	back.target.looks(func(call connector.Call) (connector.Finding, error) {
		if call.PreviewID == withdrawn.ID.String() {
			return connector.Finding{Found: connector.EffectFound, Evidence: map[string]any{"seen": true}}, nil
		}
		return connector.Finding{Found: connector.EffectUnsure}, nil
	})
	// A person declares it, later than the first withdrawals on the restored database.
	to, err := back.store.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []preview.Preview{withdrawn, vanished} {
		if _, err := back.previews.Cancel(t.Context(), agent("bot"), p.ID, "not needed"); err != nil {
			t.Fatal(err)
		}
	}
	declared, held, err := back.store.DeclareRestore(t.Context(), store.Restore{To: to, By: "operator:kim", Reason: "disk lost"})
	if err != nil || !declared || held != 3 {
		t.Fatalf("got %v, %d, %v; want three changes held", declared, held, err)
	}
	back.sweepHold(withdrawn.ID, "found_ended")
	back.sweepHold(open.ID, "handed_over")
	if c := back.status(open.ID); c.Status != commit.StatusUnknown || !c.Executions[0].NeedsOperator || c.Hold == nil || c.Hold.Held {
		t.Errorf("got %s, %+v; want an unknown outcome for operators", c.Status, c.Executions)
	}
	e, err := back.store.Evidence(t.Context())
	if err != nil || !e.Restoring || e.Held != 1 || e.FoundEnded != 1 {
		t.Errorf("got %+v, %v; want one held and one incident", e, err)
	}
	status, err := back.store.RestoreStatus(t.Context())
	if err != nil || !status.Restoring || status.By != "operator:kim" || status.Reason != "disk lost" || len(status.Open) != 3 {
		t.Errorf("got %+v, %v", status, err)
	}
	back.sweepForOperator(vanished.ID)
	ended, err := back.store.StateHeld(t.Context(), vanished.ID, false, "kim", "the target's log has no such key")
	if err != nil || !ended || back.holdOf(vanished.ID) != "cleared" {
		t.Errorf("an operator's word: got %v, %v, %s; want it cleared", ended, err, back.holdOf(vanished.ID))
	}
	c, err := back.commits.Resolve(t.Context(), commit.Resolution{
		Key: commit.Key{Tenant: "acme", ID: open.ID}, By: operator("lee"), Reason: "not in their log", Evidence: "log of today",
	})
	if err != nil || c.Status != commit.StatusNotApplied {
		t.Errorf("resolving: got %s, %v, want not_applied", c.Status, err)
	}
	back.sealAll()
	wantFindings(t, back.verifyExport(nil))
	back.forged = true // withdrawn is canceled with its effect there: that is the incident
}

// TestARestoreDeclaredLate: a change that was applied in the lost time, and refused as drifted when it was applied again on the
// restored database, is contradicted openly.
func TestARestoreDeclaredLate(t *testing.T) {
	t.Parallel()
	r := newRig(t, hasty)
	p := r.prepare("a", "new")
	restore := r.backup()
	if c, err := r.apply(p); err != nil || c.Status != commit.StatusApplied {
		t.Fatalf("in the lost time: got %s, %v, want applied", c.Status, err)
	}
	back := restore()
	to, err := back.store.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if c, err := back.apply(p); err != nil || c.Status != commit.StatusNotApplied {
		t.Fatalf("before the restore is declared: got %s, %v, want not_applied by drift", c.Status, err)
	}
	if _, _, err := back.store.DeclareRestore(t.Context(), store.Restore{To: to, By: "operator:kim", Reason: "disk lost"}); err != nil {
		t.Fatal(err)
	}
	back.sweepHold(p.ID, "found")
	if c := back.status(p.ID); c.Status != commit.StatusApplied || !c.Executions[0].Contradicted {
		t.Errorf("got %s, contradicted %v; want applied, contradicted", c.Status, c.Executions[0].Contradicted)
	}
}

// TestAPromotedDatabaseKnowsItsWitness: a database that has everything which was acknowledged is never frozen by the witness.
func TestAPromotedDatabaseKnowsItsWitness(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	path := filepath.Join(t.TempDir(), "witness")
	p := r.prepare("a", "new")
	witness := r.sealWitnessed(path)
	promoted := r.backup()() // a copy of all that was acknowledged
	if declared, _, err := promoted.store.CheckWitness(t.Context(), *witness); err != nil || declared {
		t.Fatalf("got %v, %v; want nothing declared", declared, err)
	}
	if c, err := promoted.apply(p); err != nil || c.Status != commit.StatusApplied {
		t.Errorf("got %s, %v, want applied", c.Status, err)
	}
}

// TestNoClaimPassesAHold: the claim's own statement refuses, whatever its caller has seen.
func TestNoClaimPassesAHold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.prepare("a", "new")
	if _, _, err := r.store.DeclareRestore(t.Context(), store.Restore{To: time.Unix(0, 0), By: "operator:kim", Reason: "a test"}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.store.FinishRestore(t.Context(), "operator:kim", "a test"); err != nil {
		t.Fatal(err)
	}
	if err := r.store.ClaimApproved(t.Context(), r.claimOf(p)); !errors.Is(err, commit.ErrNotClaimed) {
		t.Errorf("got %v, want ErrNotClaimed", err)
	}
	if _, err := r.apply(p); fault.From(err).Key != "fault.frozen.held" {
		t.Errorf("got %v, want it held", err)
	}
	for name, sql := range map[string]string{
		"a hold that ends without an event": `update restore_holds set state = 'cleared', cleared_at = now(), next_look_at = null`,
		"a hold of no restore":              `insert into restore_holds (preview_id, tenant_id, action, held_at, next_look_at) values (gen_random_uuid(), 'acme', 'x', now(), now())`,
	} {
		if got := r.sqlState(run(sql)); got != "CU003" {
			t.Errorf("%s: got %q, want CU003", name, got)
		}
	}
	if got := r.sqlState(run(`delete from restore_holds`)); got != "CU001" {
		t.Errorf("a hold removed: got %q, want CU001", got)
	}
	// Nothing but the end of a hold claims what was never approved, or finds the effect of what never left.
	q := r.pending("b")
	got := r.sqlState(run(moveSQL("state = 'claimed'"), q.ID.UUID()))
	if got != "CU004" {
		t.Errorf("a pending change claimed: got %q, want CU004", got)
	}
}
