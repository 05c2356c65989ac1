package store_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/cutonce/cutonce/audit"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/preview"
)

// pass makes one pass of a sealer, and gives the witness after it.
func (r *rig) pass(path string) *audit.Seal {
	r.t.Helper()
	if err := r.sealer(path).Seal(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	w, err := audit.ReadWitness(path)
	if err != nil {
		r.t.Fatal(err)
	}
	return w
}

func (r *rig) mustApply(p preview.Preview) {
	r.t.Helper()
	if c, err := r.apply(p); err != nil || c.Status != commit.StatusApplied {
		r.t.Fatalf("got %s, %v, want applied", c.Status, err)
	}
}

func wantSeal(t *testing.T, what string, got, want *audit.Seal) {
	t.Helper()
	if got == nil || want == nil || got.Number != want.Number || string(got.Hash) != string(want.Hash) {
		t.Errorf("%s: got %+v, want %+v", what, got, want)
	}
}

// TestARestoreUnderARunningProcess: the sealer that finds itself on a database that has forgotten the witness freezes it, and keeps
// the witness until the restore is finished. A second disaster right after is noticed too, whatever clocks say.
func TestARestoreUnderARunningProcess(t *testing.T) {
	t.Parallel()
	r := newRig(t, hasty)
	path := filepath.Join(t.TempDir(), "witness")
	p := r.prepare("a", "new")
	r.sealWitnessed(path)
	restore := r.backup()
	r.mustApply(p)
	lost := r.sealWitnessed(path)

	back := restore() // the same process, whose pool has come back to the other server
	fresh := back.prepare("z", "new")
	before, err := back.store.LastSeal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantSeal(t, "the witness after the pass that noticed", back.pass(path), lost)
	after, err := back.store.LastSeal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantSeal(t, "the database's last seal after that pass", after, before)
	for _, x := range []preview.Preview{p, fresh} {
		_, err := back.apply(x)
		wantCode(t, err, fault.Frozen)
	}
	back.sealAll()
	wantSeal(t, "the witness while the restore is not finished", back.pass(path), lost)
	var declared int
	back.scalar(&declared, `select count(*) from control_events where kind = 'restore_declared'`)
	if declared != 1 {
		t.Errorf("got %d declarations of one restore, want 1", declared)
	}
	back.sweepHold(p.ID, "found")
	back.sweepHold(fresh.ID, "cleared")
	if _, err := back.store.FinishRestore(t.Context(), "operator:kim", "all looked up"); err != nil {
		t.Fatal(err)
	}
	back.sealWitnessed(path)
	last, err := back.store.LastSeal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantSeal(t, "the witness once the restore is finished", back.pass(path), last)

	// The lost seal's clock was an hour fast, say: the next loss is a second one all the same.
	next := *last
	next.Number, next.At = last.Number+1, lost.At
	next = sealKey(t).Sign(next, nil)
	again, held, err := back.store.CheckWitness(t.Context(), next)
	if err != nil || !again {
		t.Errorf("a second disaster: got %v, %d, %v; want it declared", again, held, err)
	}
}

// TestEachReplicasWitnessKeepsUp: a replica whose passes find nothing to seal witnesses what another has sealed, and so notices a
// restore though it starts first.
func TestEachReplicasWitnessKeepsUp(t *testing.T) {
	t.Parallel()
	r := newRig(t, hasty)
	a, b := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	p := r.prepare("a", "new")
	r.sealWitnessed(b)
	restore := r.backup()
	r.mustApply(p)
	seen := r.sealWitnessed(a)
	wantSeal(t, "the idle replica's witness", r.pass(b), seen)
	back := restore()
	if witness, err := back.sealer(b).Compare(t.Context()); err != nil || witness == nil {
		t.Fatalf("got %v, %v", witness, err)
	}
	_, err := back.apply(p)
	wantCode(t, err, fault.Frozen)
	back.sweepHold(p.ID, "found")
}

// TestAWitnessThatCouldNotBeWrittenIsWrittenNext though nothing is sealed any more.
func TestAWitnessThatCouldNotBeWrittenIsWrittenNext(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	dir := filepath.Join(t.TempDir(), "disk")
	r.prepare("a", "new")
	for deadline := time.Now().Add(30 * time.Second); r.verifyExport(nil).Unsealed > 0; {
		if err := r.sealer(filepath.Join(dir, "witness")).Seal(t.Context()); err == nil {
			last, err := r.store.LastSeal(t.Context())
			if err != nil || last != nil {
				t.Fatalf("got seal %v, %v and no error, though it cannot be witnessed", last, err)
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("not everything is sealed in time")
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	last, err := r.store.LastSeal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantSeal(t, "the witness on the repaired disk", r.pass(filepath.Join(dir, "witness")), last)
}

// TestAForgedWitnessStopsTheSealer before it overwrites the trace.
func TestAForgedWitnessStopsTheSealer(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	path := filepath.Join(t.TempDir(), "witness")
	r.prepare("a", "new")
	w := r.sealWitnessed(path)
	key, err := audit.DeriveKey([]byte("somebody else's secret, of some length"))
	if err != nil {
		t.Fatal(err)
	}
	forged := *w
	forged.Number++
	forged = key.Sign(forged, nil)
	forged.KeyID = w.KeyID
	if err := audit.WriteWitness(path, w, forged); err != nil {
		t.Fatal(err)
	}
	newer := forged
	newer.Number++
	if err := audit.WriteWitness(path, w, newer); err != nil {
		t.Fatal(err)
	}
	if got, err := audit.ReadWitness(path); err != nil || got.Number != forged.Number {
		t.Errorf("got %v, %v; want what another process has written to stay", got, err)
	}
	for _, content := range []string{"", "half a wit"} {
		if content != "" {
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := r.sealer(path).Compare(t.Context()); !errors.Is(err, audit.ErrNoWitness) {
			t.Errorf("got %v, want ErrNoWitness", err)
		}
		if err := r.sealer(path).Seal(t.Context()); !errors.Is(err, audit.ErrNoWitness) {
			t.Errorf("got %v, want ErrNoWitness", err)
		}
	}
}
