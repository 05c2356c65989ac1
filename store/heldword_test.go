package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/preview"
	"github.com/cutonce/cutonce/store"
)

// sweepForOperator sweeps until a hold is handed to operators.
func (r *rig) sweepForOperator(id preview.ID) {
	r.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; {
		if err := r.commits.Sweep(r.t.Context()); err != nil {
			r.t.Fatalf("sweep: %v", err)
		}
		var needed, busy bool
		r.scalar(&needed, `select needs_operator from restore_holds where preview_id = $1`, id.UUID())
		r.scalar(&busy, `select coalesce(look_until > clock_timestamp(), false) from restore_holds where preview_id = $1`, id.UUID())
		if needed && !busy {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatal("the hold is not handed to operators in time")
		}
		time.Sleep(20 * time.Millisecond) // polling with a deadline
	}
}

// wantUnheard says a word that must not count.
func (r *rig) wantUnheard(what string, id preview.ID, happened bool, name string) {
	r.t.Helper()
	ended, err := r.store.StateHeld(r.t.Context(), id, happened, name, "I know it")
	if ended || !errors.Is(err, store.ErrNotHeard) || r.holdOf(id) != "held" {
		r.t.Errorf("%s: got %v, %v, %s; want it refused", what, ended, err, r.holdOf(id))
	}
}

// TestAWordOnAHeldChange counts only once the target was asked and cannot tell, never from the requester's human, and only if two
// say the same where the action asks for two. It never lets an open change through.
func TestAWordOnAHeldChange(t *testing.T) {
	t.Parallel()
	r := newRig(t, hasty, byTwo)
	open, gone, drifted := r.prepare("open", "new"), r.prepare("gone", "new"), r.prepare("drifted", "new")
	if _, err := r.previews.Cancel(t.Context(), agent("bot"), gone.ID, "not needed"); err != nil {
		t.Fatal(err)
	}
	r.target.script(func(context.Context, connector.Plan, connector.Call, func() error) (connector.Receipt, error) {
		return connector.Receipt{}, &connector.DriftedError{}
	})
	if c, err := r.apply(drifted); err != nil || c.Status != commit.StatusNotApplied {
		t.Fatalf("got %s, %v, want not_applied by drift", c.Status, err)
	}
	r.target.looks(func(connector.Call) (connector.Finding, error) {
		return connector.Finding{Found: connector.EffectUnsure}, nil
	})
	if _, held, err := r.store.DeclareRestore(t.Context(), store.Restore{To: time.Unix(0, 0), By: "operator:kim", Reason: "disk lost"}); err != nil || held != 3 {
		t.Fatalf("got %d, %v; want three held", held, err)
	}
	for _, p := range []preview.Preview{open, gone, drifted} {
		r.wantUnheard("before the target was asked", p.ID, false, "kim")
	}
	r.sweepHold(open.ID, "handed_over")
	if ended, err := r.store.StateHeld(t.Context(), open.ID, false, "kim", "I know it"); ended || !errors.Is(err, store.ErrNotHeard) {
		t.Errorf("an open change: got %v, %v; want it refused here", ended, err)
	}
	for _, p := range []preview.Preview{gone, drifted} {
		r.sweepForOperator(p.ID)
		r.wantUnheard("the human the agent acts for", p.ID, false, "SATO")
	}
	said := func(p preview.Preview, happened bool, name string, want bool) {
		t.Helper()
		r.sweepForOperator(p.ID) // not while it is asked
		ended, err := r.store.StateHeld(t.Context(), p.ID, happened, name, "their log")
		if err != nil || ended != want {
			t.Errorf("%s says %v: got %v, %v, want %v", name, happened, ended, err, want)
		}
	}
	said(gone, true, "kim", false)
	said(gone, false, "Kim", false) // its author may correct it, and is one person
	r.wantUnheard("a contrary second word", gone.ID, true, "lee")
	said(gone, false, "lee", true)
	said(drifted, true, "kim", false)
	said(drifted, true, "lee", true)
	if got := r.holdOf(gone.ID) + " " + r.holdOf(drifted.ID); got != "cleared found_ended" {
		t.Errorf("got %s, want the one cleared and the other an incident", got)
	}
	if c := r.status(drifted.ID); c.Status != commit.StatusNotApplied {
		t.Errorf("got %s, want the record as it was", c.Status)
	}
	kinds := r.kinds(drifted.ID)
	if countOf(kinds, "proposed") != 1 || countOf(kinds, "effect_found") != 1 {
		t.Errorf("got events %v, want both words on record", kinds)
	}
}
