package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
	"github.com/cutonce/cutonce/store"
)

// TestNothingIsRememberedOfWhatARestoreHasTakenBack: a process lives on under a restored database, whose numbers grow again from where
// they were. What it saw in the lost time is not taken for what has happened since.
func TestNothingIsRememberedOfWhatARestoreHasTakenBack(t *testing.T) {
	t.Parallel()
	leads := policy.Seats{AnyOf: []string{"leads"}, Count: 1}
	for name, tc := range map[string]struct {
		before func(r *rig, p preview.Preview)
		lost   func(r *rig, p preview.Preview)
		since  func(back *rig, p preview.Preview)
	}{
		"another approver was removed": {
			before: func(r *rig, p preview.Preview) { r.votes(p, "lee") },
			lost: func(r *rig, _ preview.Preview) {
				r.remove("kim")
				r.freeze(commit.FreezeTenant, "")
				if err := r.commits.Lift(t.Context(), r.order(commit.FreezeTenant, "", admin("kim"))); err != nil {
					r.t.Fatal(err)
				}
			},
			since: func(back *rig, p preview.Preview) {
				back.restoreDeclared(p)
				back.remove("lee")
			},
		},
		"somebody else approved": {
			before: func(*rig, preview.Preview) {},
			lost: func(r *rig, p preview.Preview) {
				both := person("kim", "leads", "finance")
				if _, err := r.approvals.Decide(r.t.Context(), both, p.ID, approvals.Decision{Approve: true, Digest: p.Digest}); err != nil {
					r.t.Fatal(err)
				}
			},
			since: func(back *rig, p preview.Preview) {
				back.votes(p, "lee")
				back.rules.set(people(policy.Seats{AnyOf: []string{"finance"}, Count: 1}))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, hasty, func(r *rig) { r.clocks.ApplyWindow = time.Hour })
			p := r.pending("a", leads)
			tc.before(r, p)
			restore := r.backup()
			r.looked(p)
			tc.lost(r, p)
			r.looked(p)
			if c, _, ok := r.store.RecallChange("acme", p.ID); !ok || c.Status != commit.StatusApproved {
				t.Fatalf("got %s, %t remembered, want approved", c.Status, ok)
			}
			back := restore()
			tc.since(back.replica(), p)
			store.Inherit(back.store, r.store)
			if c, err := back.apply(p); !errors.Is(err, fault.ApprovalRequired) || c.Status != commit.StatusNeedsApproval {
				t.Errorf("got %s, %v, want it sent back for approval", c.Status, err)
			}
			if n := r.target.total(); n != 0 {
				t.Errorf("got %d effects, want none", n)
			}
		})
	}
}

// looked has the rig's process remember a change and its tenant's epochs as they are.
func (r *rig) looked(p preview.Preview) {
	r.t.Helper()
	if _, err := r.commits.Status(r.t.Context(), agent("bot"), p.ID, 0, false); err != nil {
		r.t.Fatal(err)
	}
}

// restoreDeclared declares a restore, has its target asked about a change, and finishes it.
func (r *rig) restoreDeclared(p preview.Preview) {
	r.t.Helper()
	if _, _, err := r.store.DeclareRestore(r.t.Context(), store.Restore{To: time.Unix(0, 0), By: "operator:kim", Reason: "a test"}); err != nil {
		r.t.Fatal(err)
	}
	r.sweepHold(p.ID, "cleared")
	if _, err := r.store.FinishRestore(r.t.Context(), "operator:kim", "a test"); err != nil {
		r.t.Fatal(err)
	}
}

// TestWhatARestoreHoldsIsCalledExpiredByNoAnswer: while a change may have been applied in the lost time, its clock has not ended, whatever
// is asked of it. To be told that it has would be an invitation to prepare it again.
func TestWhatARestoreHoldsIsCalledExpiredByNoAnswer(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(r *rig) { r.clocks.PreviewTTL = 300 * time.Millisecond })
	p := r.asking("a")
	if _, _, err := r.store.DeclareRestore(t.Context(), store.Restore{To: time.Unix(0, 0), By: "operator:kim", Reason: "a test"}); err != nil {
		t.Fatal(err)
	}
	r.await(`select deadline <= clock_timestamp() from previews`)
	asked, err := r.approvals.Request(t.Context(), agent("bot"), p.ID, "please")
	if err != nil {
		t.Fatal(err)
	}
	if c, ok := commit.Unclaimed(asked); ok {
		t.Errorf("got %s from what the request gave back, want it to be read", c.Status)
	}
	if c := r.status(p.ID); c.Status != commit.StatusNeedsApproval {
		t.Errorf("got %s, want needs_approval", c.Status)
	}
}
