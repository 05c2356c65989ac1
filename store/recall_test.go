package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
	"github.com/cutonce/cutonce/store"
)

// reading counts what is read of single changes.
type reading struct {
	*store.Store
	reads int
}

func (s *reading) Preview(ctx context.Context, tenant string, id preview.ID) (preview.Preview, time.Time, error) {
	s.reads++
	return s.Store.Preview(ctx, tenant, id)
}

func (s *reading) Load(ctx context.Context, tenant string, id preview.ID, detail bool) (commit.Change, commit.Epochs, error) {
	s.reads++
	return s.Store.Load(ctx, tenant, id, detail)
}

// counting makes the rig's services over a store that counts its reads.
func (r *rig) counting() *reading {
	s := &reading{Store: r.store}
	people, commits := *r.approvals, r.commits.Deps
	people.Store, commits.Store, commits.Recheck = s, s, &people
	r.approvals, r.commits = &people, commit.NewService(commits)
	return s
}

// TestAProcessThatMadeTheStepBeforeReadsNothing: the approver's look is the only reading of a whole cycle.
func TestAProcessThatMadeTheStepBeforeReadsNothing(t *testing.T) {
	t.Parallel()
	for timed, want := range map[bool]int{false: 1, true: 2} {
		r := newRig(t)
		r.rules.timed = timed // rules about the time are asked with the database's
		s := r.counting()
		p := r.pending("a")
		if _, err := r.commits.Status(t.Context(), person("kim", "leads"), p.ID, 0, true); err != nil {
			t.Fatal(err)
		}
		if _, err := r.approve(p, "kim"); err != nil {
			t.Fatal(err)
		}
		if c, err := r.apply(p); err != nil || c.Status != commit.StatusApplied {
			t.Fatalf("got %s, %v, want applied", c.Status, err)
		}
		if s.reads != want {
			t.Errorf("rules about the time %t: got %d reads, want %d", timed, s.reads, want)
		}
		if c, err := r.apply(p); err != nil || c.Status != commit.StatusApplied || s.reads != want+1 {
			t.Errorf("applied again: got %s, %v and %d reads, want applied and one more", c.Status, err, s.reads)
		}
	}
}

// TestWhatAnotherReplicaHasDoneIsSeen has one replica remember a change, another one move it, and the first go on.
func TestWhatAnotherReplicaHasDoneIsSeen(t *testing.T) {
	t.Parallel()
	two := policy.Seats{AnyOf: []string{"leads"}, Count: 2}
	for name, tc := range map[string]struct {
		needs []policy.Seats
		// before is what the first replica has done of the change, besides preparing it.
		approved bool
		other    func(t *testing.T, other *rig, p preview.Preview) error
		// then is what it says afterwards.
		then func(r *rig, p preview.Preview) error
		want error
		ends preview.State
	}{
		"canceled, then approved": {
			other: func(t *testing.T, other *rig, p preview.Preview) error {
				_, err := other.previews.Cancel(t.Context(), agent("bot"), p.ID, "no")
				return err
			},
			then: func(r *rig, p preview.Preview) error { _, err := r.approve(p, "kim"); return err }, want: fault.Conflict, ends: preview.Canceled,
		},
		"approved by another, then approved": {
			needs: []policy.Seats{two},
			other: func(_ *testing.T, other *rig, p preview.Preview) error { _, err := other.approve(p, "lee"); return err },
			then:  func(r *rig, p preview.Preview) error { _, err := r.approve(p, "kim"); return err }, ends: preview.Approved,
		},
		"approved by the same, then approved": {
			needs: []policy.Seats{two},
			other: func(_ *testing.T, other *rig, p preview.Preview) error { _, err := other.approve(p, "kim"); return err },
			then:  func(r *rig, p preview.Preview) error { _, err := r.approve(p, "kim"); return err }, ends: preview.Pending,
		},
		"vetoed, then applied": {
			approved: true,
			other:    func(_ *testing.T, other *rig, p preview.Preview) error { _, err := other.reject(p, "lee"); return err },
			then: func(r *rig, p preview.Preview) error {
				c, err := r.apply(p)
				return errors.Join(err, wantStatus(c, commit.StatusRejected))
			}, ends: preview.Rejected,
		},
		"frozen, then applied": {
			approved: true,
			other: func(_ *testing.T, other *rig, _ preview.Preview) error {
				_, err := other.commits.Freeze(other.t.Context(), other.order(commit.FreezeTenant, "", operator("lee")))
				return err
			},
			then: func(r *rig, p preview.Preview) error { _, err := r.apply(p); return err }, want: fault.Frozen, ends: preview.Approved,
		},
		"another policy in force, then applied": {
			approved: true,
			other: func(t *testing.T, other *rig, _ preview.Preview) error {
				return other.store.ActivatePolicy(t.Context(), "p2", "test")
			},
			then: func(r *rig, p preview.Preview) error { _, err := r.apply(p); return err }, want: fault.Conflict, ends: preview.Approved,
		},
		"applied, then applied": {
			approved: true,
			other:    func(_ *testing.T, other *rig, p preview.Preview) error { _, err := other.apply(p); return err },
			then: func(r *rig, p preview.Preview) error {
				c, err := r.apply(p)
				return errors.Join(err, wantStatus(c, commit.StatusApplied))
			}, ends: preview.Claimed,
		},
		"expired, then applied": {
			approved: true,
			other: func(_ *testing.T, other *rig, p preview.Preview) error {
				other.shortly(p.ID, 10*time.Millisecond)
				other.awaitDeadline(p.ID)
				return nil
			},
			then: func(r *rig, p preview.Preview) error {
				c, err := r.apply(p)
				return errors.Join(err, wantStatus(c, commit.StatusExpired))
			}, ends: preview.Approved,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			p := r.pending("a", tc.needs...)
			if _, err := r.commits.Status(t.Context(), person("kim", "leads"), p.ID, 0, true); err != nil {
				t.Fatal(err)
			}
			if tc.approved {
				if _, err := r.approve(p, "kim"); err != nil {
					t.Fatal(err)
				}
			}
			if err := tc.other(t, r.replica(), p); err != nil {
				t.Fatal(err)
			}
			if err := tc.then(r, p); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
			if got := r.status(p.ID).Preview.State; got != tc.ends {
				t.Errorf("got %s, want %s", got, tc.ends)
			}
		})
	}
}

func wantStatus(c commit.Change, want commit.Status) error {
	if c.Status != want {
		return errors.New("got " + string(c.Status) + ", want " + string(want))
	}
	return nil
}

// TestAClaimComparesTheVotes: what was authorised by votes that have changed since is authorised anew.
func TestAClaimComparesTheVotes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.pending("a", policy.Seats{AnyOf: []string{"leads"}, Count: 1})
	if _, err := r.approve(p, "kim"); err != nil {
		t.Fatal(err)
	}
	claim := r.claimOf(p)
	claim.Revision--
	if err := r.store.ClaimApproved(t.Context(), claim); !errors.Is(err, commit.ErrEpochsMoved) {
		t.Errorf("got %v, want ErrEpochsMoved", err)
	}
	claim.Revision++
	if err := r.store.ClaimApproved(t.Context(), claim); err != nil {
		t.Errorf("on the votes as they are: %v", err)
	}
}

// TestARemembererOfOneTenantTellsNoOther asks for a remembered change under another tenant.
func TestARemembererOfOneTenantTellsNoOther(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.pending("a")
	if _, ok := r.store.Recall("acme", p.ID); !ok {
		t.Fatal("nothing was remembered")
	}
	if _, ok := r.store.Recall("other", p.ID); ok {
		t.Error("another tenant was told")
	}
	spy := person("eve", "leads")
	spy.Tenant = "other"
	_, err := r.approvals.Decide(t.Context(), spy, p.ID, approvals.Decision{Approve: true, Digest: p.Digest})
	if !errors.Is(err, fault.NotFound) {
		t.Errorf("got %v, want not_found", err)
	}
}

// keeper is a connector that holds on to what it has planned.
type keeper struct {
	*ledger
	plan connector.Plan
}

func (k *keeper) Prepare(ctx context.Context, who actor.Actor, action string, in connector.Input) (connector.Plan, connector.Impact, error) {
	plan, impact, err := k.ledger.Prepare(ctx, who, action, in)
	k.plan = plan
	return plan, impact, err
}

// TestAConnectorCannotReachWhatIsRemembered: a change that is applied as it was seen when it was prepared is what its document says.
func TestAConnectorCannotReachWhatIsRemembered(t *testing.T) {
	t.Parallel()
	var k *keeper
	r := newRig(t, func(r *rig) { k = &keeper{ledger: r.target}; r.front = k })
	first := r.prepare("b", "new") // so that the epochs are known
	if c, err := r.apply(first); err != nil || c.Status != commit.StatusApplied {
		t.Fatalf("got %s, %v, want applied", c.Status, err)
	}
	s := r.counting()
	p := r.prepare("a", "new")
	copy(k.plan.Request.Body, `"BAD"`)
	*k.plan.Changes[0].After.Text = "BAD"
	sent := ""
	r.target.script(func(_ context.Context, plan connector.Plan, _ connector.Call, do func() error) (connector.Receipt, error) {
		sent = string(plan.Request.Body)
		return connector.Receipt{}, do()
	})
	if c, err := r.apply(p); err != nil || c.Status != commit.StatusApplied || s.reads != 0 {
		t.Fatalf("got %s, %v and %d reads, want applied by what was seen", c.Status, err, s.reads)
	}
	if sent != `"new"` {
		t.Errorf("sent %s, want what was stored", sent)
	}
}

// TestNothingRememberedIsSaidBesideAnError: what a process saw before a call that fails is no answer to it.
func TestNothingRememberedIsSaidBesideAnError(t *testing.T) {
	t.Parallel()
	r, wire := proxied(t)
	ready := r.pending("a")
	if _, err := r.commits.Status(t.Context(), person("kim", "leads"), ready.ID, 0, true); err != nil {
		t.Fatal(err)
	}
	if _, err := r.approve(ready, "kim"); err != nil {
		t.Fatal(err)
	}
	waits := r.pending("b")
	bare := r.prepare("c", "new")
	if c, _, ok := r.store.RecallChange("acme", ready.ID); !ok || c.Status != commit.StatusApproved {
		t.Fatalf("got %s, %t remembered, want approved", c.Status, ok)
	}
	short := agent("bot")
	short.Scopes = []string{"ledger:read"}

	if _, err := r.replica().previews.Cancel(t.Context(), agent("bot"), bare.ID, "no"); err != nil {
		t.Fatal(err)
	}
	if p, err := r.approvals.Request(t.Context(), short, bare.ID, ""); err == nil || p.State != preview.Canceled {
		t.Errorf("a request without its scope: got %q and %v, want canceled beside an error", p.State, err)
	}

	other := r.prepare("d", "new")
	wire.fall()
	if c, err := r.apply(ready); err == nil || c.Status != "" {
		t.Errorf("an apply: got %q and %v, want an error alone", c.Status, err)
	}
	if p, err := r.approve(waits, "kim"); err == nil || p.State != "" {
		t.Errorf("a decision: got %q and %v, want an error alone", p.State, err)
	}
	if p, err := r.approvals.Request(t.Context(), short, other.ID, ""); err == nil || p.State != "" {
		t.Errorf("a request: got %q and %v, want an error alone", p.State, err)
	}
}
