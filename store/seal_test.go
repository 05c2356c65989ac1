package store_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/audit"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/preview"
	"github.com/cutonce/cutonce/store"
)

func sealKey(t testing.TB) audit.Key {
	t.Helper()
	key, err := audit.DeriveKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// sealer seals the rig's database, without a witness unless one is named.
func (r *rig) sealer(witness string) audit.Sealer {
	return audit.Sealer{Store: r.direct, Key: sealKey(r.t), Witness: witness, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
}

func (r *rig) seal() {
	r.t.Helper()
	if err := r.sealer("").Seal(r.t.Context()); err != nil {
		r.t.Fatalf("sealing: %v", err)
	}
}

// sealAll seals until no event is left unsealed: transactions of other tests hold the horizon back.
func (r *rig) sealAll() {
	r.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		r.seal()
		if r.verifyExport(nil).Unsealed == 0 {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatal("not everything is sealed in time")
		}
		time.Sleep(20 * time.Millisecond) // polling with a deadline
	}
}

func (r *rig) export(f store.ExportFilter) []byte {
	r.t.Helper()
	var out bytes.Buffer
	if err := r.direct.Export(r.t.Context(), f, &out); err != nil {
		r.t.Fatalf("export: %v", err)
	}
	return out.Bytes()
}

// verify checks an export of everything as somebody elsewhere would: from the file and the public key alone.
func verify(t testing.TB, file []byte, witness *audit.Seal) audit.Report {
	t.Helper()
	return verifyAs(t, file, audit.Verifier{Witness: witness, Now: time.Now()})
}

func verifyPart(t testing.TB, file []byte) audit.Report {
	t.Helper()
	return verifyAs(t, file, audit.Verifier{Part: true, Now: time.Now()})
}

func verifyAs(t testing.TB, file []byte, v audit.Verifier) audit.Report {
	t.Helper()
	public, err := audit.ReadPublic(audit.WritePublic(sealKey(t).Public()))
	if err != nil {
		t.Fatal(err)
	}
	v.Keys, v.Name = audit.Keys{audit.KeyID(public): public}, store.PublicName
	report, err := v.Verify(bytes.NewReader(file))
	if err != nil {
		t.Fatalf("verify: %v", err)
	}
	return report
}

func (r *rig) verifyExport(witness *audit.Seal) audit.Report {
	r.t.Helper()
	return verify(r.t, r.export(store.ExportFilter{}), witness)
}

// tamper runs statements as a superuser who has switched every trigger and foreign key off.
func (r *rig) tamper(statements ...statement) {
	r.t.Helper()
	r.forged = true
	err := pgx.BeginFunc(r.t.Context(), r.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(r.t.Context(), `set local session_replication_role = replica`); err != nil {
			return err
		}
		for _, s := range statements {
			if _, err := tx.Exec(r.t.Context(), s.sql, s.args...); err != nil {
				return fmt.Errorf("%s: %w", s.sql, err)
			}
		}
		return nil
	})
	if err != nil {
		r.t.Fatalf("tampering: %v", err)
	}
}

// wantFindings asks for exactly these findings, each given by a part of its line, in any order.
func wantFindings(t testing.TB, got audit.Report, want ...string) {
	t.Helper()
	var lines []string
	for _, f := range got.Findings {
		lines = append(lines, f.String())
	}
	for _, w := range want {
		i := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, w) })
		if i < 0 {
			t.Errorf("no finding says %q; left are:\n%s", w, strings.Join(lines, "\n"))
			continue
		}
		lines = slices.Delete(lines, i, i+1)
	}
	if len(lines) > 0 {
		t.Errorf("more findings than wanted:\n%s", strings.Join(lines, "\n"))
	}
}

// applied makes a change with a chain of several events.
func (r *rig) applied(id string) preview.Preview {
	r.t.Helper()
	p := r.pending(id)
	if _, err := r.approve(p, "kim"); err != nil {
		r.t.Fatal(err)
	}
	if c, err := r.apply(p); err != nil || c.Status != commit.StatusApplied {
		r.t.Fatalf("got %s, %v, want applied", c.Status, err)
	}
	return p
}

func TestAnUntouchedTrailVerifies(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, id := range []string{"a", "b", "c"} {
		r.applied(id)
		r.seal()
	}
	r.sealAll()
	report := r.verifyExport(nil)
	wantFindings(t, report)
	if report.Previews != 3 || report.Events != 15 || report.ControlEvents != 2 || report.Last == nil {
		t.Errorf("got %+v, want 3 changes with 15 events, 2 control events and a seal", report)
	}
	r.prepare("d", "new")
	if got := r.verifyExport(nil); got.Unsealed != 1 || len(got.UnsealedNamed) != 1 || !got.OK() {
		t.Errorf("an event after the seal: got %d unsealed and %v, want one, named, and nothing wrong", got.Unsealed, got.Findings)
	}
	for name, f := range map[string]store.ExportFilter{"of the tenant": {Tenant: "acme"}, "of another": {Tenant: "other"}, "since": {Since: report.Last.At}} {
		wantFindings(t, verifyPart(t, r.export(f)))
		wantFindings(t, verify(t, r.export(f), nil), "holds a part of the trail only")
		if bytes.Contains(r.export(f), []byte(`"tenant":"acme","seq"`)) != (f.Tenant != "other") {
			t.Errorf("%s: the export does not hold what it should", name)
		}
	}
}

// TestHeadToHead11_TamperingIsNamedBySequence edits a row, deletes the last three and appends a forgery, as a superuser with every
// trigger off, and verifies elsewhere with the public key.
func TestHeadToHead11_TamperingIsNamedBySequence(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	edited, truncated, appended := r.applied("a"), r.applied("b"), r.applied("c")
	r.sealAll()
	r.tamper(
		run(`update audit_events set body = '{"forged":true}' where preview_id = $1 and seq = 2`, edited.ID.UUID()),
		run(`delete from audit_events where preview_id = $1 and seq > 2`, truncated.ID.UUID()),
		run(`update previews p set audit_seq = 2, audit_head = e.hash from audit_events e
			where p.id = $1 and e.preview_id = p.id and e.seq = 2`, truncated.ID.UUID()),
		run(`insert into audit_events (preview_id, seq, tenant_id, kind, actor, at, body, hash)
			select preview_id, 6, tenant_id, 'approved', 'human:x#forger', at, '{}',
			  event_hash(hash, preview_id, 6, 'approved', 'human:x#forger', tenant_id, at, '{}')
			from audit_events where preview_id = $1 and seq = 5`, appended.ID.UUID()),
	)
	wantFindings(t, r.verifyExport(nil),
		edited.ID.String()+", event 2: it, or the hash",
		truncated.ID.String()+", event 3: events 3 to 5 are missing",
		appended.ID.String()+", event 6: it was appended")
}

func TestWhatElseATamperedTrailShows(t *testing.T) {
	t.Parallel()
	// Each tamper is done to a database of its own with three sealed changes; %s is the first one's public ID.
	for name, tc := range map[string]struct {
		tamper func(p preview.Preview) []statement
		want   []string
	}{
		"a preview deleted": {func(p preview.Preview) []statement {
			return []statement{
				run(`delete from attempts where preview_id = $1`, p.ID.UUID()), run(`delete from executions where preview_id = $1`, p.ID.UUID()),
				run(`delete from decisions where preview_id = $1`, p.ID.UUID()), run(`delete from audit_events where preview_id = $1`, p.ID.UUID()),
				run(`delete from previews where id = $1`, p.ID.UUID()),
			}
		}, []string{"%s, event 5: all of it is gone"}},
		"a preview deleted and a tombstone put in its place": {func(p preview.Preview) []statement {
			return []statement{
				run(`insert into tombstones (preview_id, tenant_id, audit_seq, audit_head, settled_at)
					select id, tenant_id, audit_seq, audit_head, created_at from previews where id = $1`, p.ID.UUID()),
				run(`delete from audit_events where preview_id = $1`, p.ID.UUID()), run(`delete from previews where id = $1`, p.ID.UUID()),
			}
		}, []string{"%s, event 5: it was removed too soon", "%s: no retirement was recorded"}},
		"a chain rewritten as a whole": {func(p preview.Preview) []statement {
			return []statement{run(`with e as (
				  select *, event_hash(decode(repeat('00', 32), 'hex'), preview_id, 1, kind, 'human:x#forger', tenant_id, at, body) as sum
				  from audit_events where preview_id = $1 and seq = 1
				), gone as (delete from audit_events where preview_id = $1)
				update previews p set audit_seq = 1, audit_head = sum from e where p.id = e.preview_id`, p.ID.UUID()),
				run(`insert into audit_events (preview_id, seq, tenant_id, kind, actor, at, body, hash)
					select id, 1, tenant_id, 'prepared', 'human:x#forger', created_at, '{}', audit_head from previews where id = $1`, p.ID.UUID()),
			}
		}, []string{"%s, event 1: it, or the hash", "%s, event 2: events 2 to 5 are missing"}},
		"an event put in between": {func(p preview.Preview) []statement {
			return []statement{
				run(`update audit_events set seq = seq + 100 where preview_id = $1 and seq > 2`, p.ID.UUID()),
				run(`update audit_events set seq = seq - 99 where preview_id = $1 and seq > 100`, p.ID.UUID()),
				run(`insert into audit_events (preview_id, seq, tenant_id, kind, actor, at, body, hash)
					select preview_id, 3, tenant_id, 'vote', actor, at, body, event_hash(hash, preview_id, 3, 'vote', actor, tenant_id, at, body)
					from audit_events where preview_id = $1 and seq = 2`, p.ID.UUID()),
				run(`update previews set audit_seq = 6 where id = $1`, p.ID.UUID()),
			}
		}, []string{"%s, event 4: it, or", "%s, event 5: it, or", "%s, event 5: it is not the event", "%s, event 6: it, or",
			"%s, event 6: it was put in behind"}},
		"two events changing places": {func(p preview.Preview) []statement {
			return []statement{
				run(`update audit_events set seq = 99 where preview_id = $1 and seq = 2`, p.ID.UUID()),
				run(`update audit_events set seq = 2 where preview_id = $1 and seq = 3`, p.ID.UUID()),
				run(`update audit_events set seq = 3 where preview_id = $1 and seq = 99`, p.ID.UUID()),
			}
		}, []string{"%s, event 2: it, or", "%s, event 3: it, or", "%s, event 4: it, or"}},
		"one from the middle": {func(p preview.Preview) []statement {
			return []statement{run(`delete from audit_events where preview_id = $1 and seq = 3`, p.ID.UUID())}
		}, []string{"%s, event 3: event 3 is missing"}},
		"an event put in behind the seals": {func(p preview.Preview) []statement {
			return []statement{
				run(`insert into audit_events (preview_id, seq, tenant_id, kind, actor, at, body, hash, xid)
					select preview_id, 6, tenant_id, 'probed', actor, at, '{}', event_hash(hash, preview_id, 6, 'probed', actor, tenant_id, at, '{}'), xid
					from audit_events where preview_id = $1 and seq = 5`, p.ID.UUID()),
				run(`update previews p set audit_seq = 6, audit_head = e.hash from audit_events e where p.id = $1 and e.preview_id = p.id and e.seq = 6`,
					p.ID.UUID()),
			}
		}, []string{"%s, event 6: it was put in behind seal"}},
		"a control event altered": {func(preview.Preview) []statement {
			return []statement{run(`update control_events set actor = 'somebody' where seq = 2`)}
		}, []string{"controls of the deployment, event 2: it, or"}},
		"a leaf altered": {func(p preview.Preview) []statement {
			return []statement{run(`update seal_leaves set tenant_id = 'other' where chain = $1 and seal = 1`, p.ID.UUID())}
		}, []string{"seal 1: its leaves are not those"}},
		"a seal altered": {func(preview.Preview) []statement {
			return []statement{run(`update seals set at = at + interval '1 second' where number = 1`)}
		}, []string{"seal 1: its hash does not cover"}},
		"a seal forged": {func(preview.Preview) []statement {
			return []statement{run(`update seals set signature = sha512(signature) where number = 1`)}
		}, []string{"seal 1: its signature is forged"}},
		"the first seal gone": {func(preview.Preview) []statement {
			return []statement{run(`delete from seal_leaves where seal = 1`), run(`delete from seals where number = 1`)}
		}, []string{"seal 1: seal 1 is missing", "controls of the deployment, event 1: it was put", "controls of the deployment, event 2: it was put"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			first, _, _ := r.applied("a"), r.applied("b"), r.applied("c")
			r.sealAll()
			r.applied("d")
			r.sealAll()
			r.tamper(tc.tamper(first)...)
			var want []string
			for _, w := range tc.want {
				want = append(want, strings.ReplaceAll(w, "%s", first.ID.String()))
			}
			got := r.verifyExport(nil)
			if name == "the first seal gone" {
				// Everything that only it covered now stands behind the seals: name one of each.
				if len(got.Findings) < 1 || !strings.Contains(got.Findings[0].String(), want[0]) {
					t.Errorf("got %v, want first %q", got.Findings, want[0])
				}
				return
			}
			wantFindings(t, got, want...)
		})
	}
}

func TestTheWitnessKnowsWhatWasCutOff(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	path := filepath.Join(t.TempDir(), "witness")
	r.applied("a")
	r.sealAll()
	first, err := r.direct.LastSeal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := r.applied("b")
	last := func() *audit.Seal {
		t.Helper()
		w, err := audit.ReadWitness(path)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	if last() != nil {
		t.Fatal("there is a witness before the first seal")
	}
	for deadline := time.Now().Add(30 * time.Second); last() == nil || r.verifyExport(nil).Unsealed > 0; {
		if err := r.sealer(path).Seal(t.Context()); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing was witnessed in time")
		}
	}
	witness := last()
	wantFindings(t, r.verifyExport(witness))
	forgotten := func() bool {
		t.Helper()
		f, err := audit.Forgotten(t.Context(), r.direct, *witness)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	if forgotten() {
		t.Error("the database is said not to know its own last seal")
	}
	// Everything after the first seals is cut off, consistently: only the witness can tell.
	r.tamper(
		run(`delete from seal_leaves where seal > $1`, first.Number), run(`delete from seals where number > $1`, first.Number),
		run(`delete from audit_events where preview_id = $1`, p.ID.UUID()), run(`delete from attempts where preview_id = $1`, p.ID.UUID()),
		run(`delete from executions where preview_id = $1`, p.ID.UUID()), run(`delete from decisions where preview_id = $1`, p.ID.UUID()),
		run(`delete from previews where id = $1`, p.ID.UUID()),
	)
	wantFindings(t, r.verifyExport(nil))
	got := r.verifyExport(witness)
	if len(got.Findings) != 1 || !strings.Contains(got.Findings[0].What, "the witness has seen") {
		t.Errorf("got %v, want the witness to know of the missing seals", got.Findings)
	}
	if !forgotten() {
		t.Error("the database is said to know the witnessed seal, which is gone")
	}
	forged := *witness
	forged.Signature = bytes.Repeat([]byte{1}, 64)
	if got := r.verifyExport(&forged); !strings.Contains(fmt.Sprint(got.Findings), "the witness: its signature is forged") {
		t.Errorf("got %v, want a forged witness to be noticed", got.Findings)
	}
}

// TestAnEventUnderAnOlderTransactionIsNotMissed: what a long transaction writes last is sealed, though later transactions came
// before it.
func TestAnEventUnderAnOlderTransactionIsNotMissed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	old := r.prepare("a", "new")
	r.sealAll()
	tx, err := r.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	if _, err := tx.Exec(t.Context(), `select pg_current_xact_id()`); err != nil {
		t.Fatal(err)
	}
	r.prepare("b", "new") // a later transaction, complete
	r.seal()
	if got := r.verifyExport(nil); got.Unsealed != 1 || !got.OK() {
		t.Errorf("got %d unsealed, %v; want one, held back by the older transaction", got.Unsealed, got.Findings)
	}
	lag, err := r.direct.Evidence(t.Context())
	if err != nil || lag.SealLag <= 0 {
		t.Errorf("got a lag of %v, %v; want it to grow", lag.SealLag, err)
	}
	if _, err := tx.Exec(t.Context(), moveSQL("deadline = deadline"), old.ID.UUID()); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.sealAll()
	report := r.verifyExport(nil)
	wantFindings(t, report)
	if lag, err = r.direct.Evidence(t.Context()); err != nil || lag.SealLag != 0 {
		t.Errorf("got a lag of %v, %v; want none", lag.SealLag, err)
	}
}

// TestAnotherClusterStartsANewWindow: transaction numbers of another cluster mean nothing, so that what it left unsealed, and what
// is written now, is found without them.
func TestAnotherClusterStartsANewWindow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.applied("a")
	r.sealAll()
	p := r.applied("b")
	// As after a dump that was loaded into another cluster: its transactions are far ahead of ours, and it names itself otherwise.
	r.tamper(
		run(`update audit_events set xid = '9000000000' where preview_id = $1`, p.ID.UUID()),
		run(`alter table seals disable trigger user`),
	)
	key := sealKey(t)
	other, err := r.direct.LastSeal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	other.System++
	other.To = 8_000_000_000
	leaves := r.leavesOf(other.Number)
	signed := key.Sign(*other, leaves)
	r.exec(`update seals set system_id = $2, to_xid = $3::text::xid8, hash = $4, signature = $5 where number = $1`,
		other.Number, int64(other.System), "8000000000", signed.Hash, signed.Signature)
	r.seal()
	last, err := r.direct.LastSeal(t.Context())
	if err != nil || last.Window != other.Window+1 || !last.CaughtUp {
		t.Fatalf("got %+v, %v; want a new window, caught up", last, err)
	}
	r.applied("c")
	r.sealAll()
	wantFindings(t, r.verifyExport(nil))
}

func (r *rig) leavesOf(seal int64) []audit.Leaf {
	r.t.Helper()
	rows, err := r.pool.Query(r.t.Context(), `select kind, chain, tenant_id, seq, head from seal_leaves where seal = $1 order by place`, seal)
	if err != nil {
		r.t.Fatal(err)
	}
	leaves, err := pgx.CollectRows(rows, pgx.RowToStructByPos[audit.Leaf])
	if err != nil {
		r.t.Fatal(err)
	}
	return leaves
}

// TestATransactionTooLargeForASealIsSealedWhole: a seal ends between transactions, and one of more events than a seal takes must
// not hold up all that come after it.
func TestATransactionTooLargeForASealIsSealedWhole(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.applied("a")
	r.sealAll()
	r.tamper(
		run(`insert into audit_events (preview_id, seq, tenant_id, kind, actor, at, body, hash)
			select preview_id, seq + n, tenant_id, 'probed', actor, at, '{}', sha256(int8send(n))
			from audit_events, generate_series(1, 20001) n where preview_id = $1 and seq = 5`, p.ID.UUID()),
	)
	last := r.applied("b")
	sealed := func() (n int) {
		r.scalar(&n, `select count(*) from seal_leaves where chain = $1 and seq = 5`, last.ID.UUID())
		return n
	}
	for deadline := time.Now().Add(30 * time.Second); sealed() == 0; {
		r.seal()
		if time.Now().After(deadline) {
			t.Fatal("what came after the large transaction is not sealed in time")
		}
		time.Sleep(20 * time.Millisecond) // polling with a deadline
	}
	var covered int
	r.scalar(&covered, `select max(seq) from seal_leaves where chain = $1`, p.ID.UUID())
	if want := 20006; covered != want {
		t.Errorf("got the large chain sealed up to event %d, want %d", covered, want)
	}
}

// TestReplicasSealOneAtATime: sealers of several replicas beside writers leave one whole, unbroken trail.
func TestReplicasSealOneAtATime(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	stop, cancel := context.WithCancel(t.Context())
	var sealers, writers sync.WaitGroup
	for range 3 {
		sealers.Go(func() {
			s := r.sealer("")
			s.Store, s.Every = openStore(t, r.url), 5*time.Millisecond
			if err := s.Run(stop); err != nil {
				t.Error(err)
			}
		})
	}
	for n := range 4 {
		writers.Go(func() {
			for i := range 5 {
				p := r.prepare(fmt.Sprintf("w%d-%d", n, i), "new")
				if _, err := r.apply(p); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	cancel()
	sealers.Wait()
	r.sealAll()
	report := r.verifyExport(nil)
	wantFindings(t, report)
	if report.Previews != 20 || report.Seals < 2 {
		t.Errorf("got %d changes under %d seals, want 20 under several", report.Previews, report.Seals)
	}
}

func TestSealsAndControlsAreNeverRewritten(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.sealAll()
	for name, tc := range map[string]struct{ sql, want string }{
		"a control without its event":  {`update controls set frozen = true, freeze_epoch = freeze_epoch + 1 where tenant_id = ''`, "CU003"},
		"an epoch that goes back":      {controlSQL("", `freeze_epoch = k.freeze_epoch - 1`), "CU002"},
		"a control removed":            {`delete from controls`, "CU001"},
		"a control event altered":      {`update control_events set actor = 'x'`, "CU001"},
		"a control event removed":      {`delete from control_events`, "CU001"},
		"all control events removed":   {`truncate control_events cascade`, "CU001"},
		"a seal altered":               {`update seals set root = hash`, "CU001"},
		"a seal removed":               {`delete from seals`, "CU001"},
		"a leaf removed":               {`delete from seal_leaves`, "CU001"},
		"a seal that stands on no one": {`insert into seals select number + 2, window_no, system_id, from_xid, to_xid, caught_up, at, leaves, hash, root, sha256(hash), key_id, signature from seals where number = 1`, "CU009"},
		"a hold out of nothing":        {`insert into restore_holds (preview_id, tenant_id, action, held_at, next_look_at) values (gen_random_uuid(), 'acme', 'x', now(), now())`, "CU003"},
	} {
		if got := r.sqlState(run(tc.sql)); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestAFreezeIsChainedAndNamesItsAuthor(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	everything, ours := r.order(commit.FreezeEverything, "", admin("kim")), r.order(commit.FreezeTenant, "", operator("lee"))
	for _, step := range []struct {
		order commit.FreezeOrder
		lift  bool
		want  fault.Code
	}{{everything, false, ""}, {ours, true, fault.NotFound}, {ours, false, ""}, {everything, true, ""}, {ours, true, ""}} {
		var err error
		if step.lift {
			err = r.commits.Lift(t.Context(), step.order)
		} else {
			_, err = r.commits.Freeze(t.Context(), step.order)
		}
		if err != nil && fault.CodeOf(err) != step.want || err == nil && step.want != "" {
			t.Errorf("%+v: got %v, want %q", step, err, step.want)
		}
	}
	if c, err := r.apply(r.prepare("a", "new")); err != nil || c.Status != commit.StatusApplied {
		t.Errorf("after the thaw: got %s, %v, want applied", c.Status, err)
	}
	var said string
	r.scalar(&said, `select string_agg(scope || ':' || kind || ':' || (convert_from(body, 'UTF8')::jsonb ->> 'by'), ' ' order by scope, seq) from control_events where kind like '%frozen'`)
	if want := ":frozen:kim :unfrozen:kim acme:frozen:lee acme:unfrozen:lee"; said != want {
		t.Errorf("got %q, want %q", said, want)
	}
	r.sealAll()
	wantFindings(t, r.verifyExport(nil))
}
