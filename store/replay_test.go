package store_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/preview"
)

// remembers is a target that keeps keys and has no look-up.
func remembers(keep time.Duration) func(*rig) {
	return func(r *rig) {
		r.target.able = connector.Capabilities{Replay: true, ReplayFor: keep, Precondition: true}
	}
}

// swallowed makes a change whose request was lost on its way, and counts what is said to the target from then on.
func (r *rig) swallowed(id string) (preview.Preview, *atomic.Int64) {
	r.t.Helper()
	said := new(atomic.Int64)
	r.target.script(func(_ context.Context, _ connector.Plan, _ connector.Call, do func() error) (connector.Receipt, error) {
		if said.Add(1) == 1 {
			return connector.Receipt{}, context.DeadlineExceeded
		}
		return receipt(do)
	})
	r.target.looks(func(connector.Call) (connector.Finding, error) {
		return connector.Finding{Found: connector.EffectUnsure}, nil
	})
	p := r.prepare(id, "new")
	if c, err := r.apply(p); err != nil || c.Status != commit.StatusUnknown {
		r.t.Fatalf("got %s, %v, want unknown", c.Status, err)
	}
	return p, said
}

func TestAReplayUnderTheSameKeySettles(t *testing.T) {
	t.Parallel()
	r := newRig(t, remembers(time.Hour))
	p, said := r.swallowed("a")
	c := r.sweepUntil(p.ID, commit.StatusApplied)
	if e := c.Executions[0]; e.Evidence != commit.ByReplay || said.Load() != 2 || r.target.total() != 1 {
		t.Errorf("got %s after %d calls with %d effects, want one effect by a replay", e.Evidence, said.Load(), r.target.total())
	}
}

// A replay can cause the effect, so it is made only where nothing forbids it. Operators settle the rest.
func TestWhatForbidsAReplay(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		able   connector.Capabilities
		before func(r *rig, p preview.Preview)
	}{
		"the target may have forgotten the key": {able: connector.Capabilities{Replay: true, ReplayFor: time.Microsecond, Precondition: true}},
		"the target remembers no keys":          {able: connector.Capabilities{Precondition: true}},
		"it can be looked up":                   {able: connector.Capabilities{Lookup: true, Replay: true, ReplayFor: time.Hour, Precondition: true}},
		"the apply window is over": {
			able:   connector.Capabilities{Replay: true, ReplayFor: time.Hour, Precondition: true},
			before: func(r *rig, p preview.Preview) { r.shortly(p.ID, 0) },
		},
		"it is frozen": {
			able: connector.Capabilities{Replay: true, ReplayFor: time.Hour, Precondition: true},
			before: func(r *rig, _ preview.Preview) {
				r.exec(frozenSQL(""))
			},
		},
		"the target moved, and would not refuse": {
			able:   connector.Capabilities{Replay: true, ReplayFor: time.Hour},
			before: func(r *rig, _ preview.Preview) { r.target.move("a", "somebody else's") },
		},
		"the target cannot be read": {
			able: connector.Capabilities{Replay: true, ReplayFor: time.Hour, Precondition: true},
			before: func(r *rig, _ preview.Preview) {
				r.target.reads(func(connector.Reading) (connector.Reading, error) {
					return connector.Reading{}, context.DeadlineExceeded
				})
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(r *rig) { r.target.able = tc.able })
			p, said := r.swallowed("a")
			if tc.before != nil {
				tc.before(r, p)
			}
			for deadline := time.Now().Add(15 * time.Second); ; time.Sleep(20 * time.Millisecond) { // polling with a deadline
				if err := r.commits.Sweep(t.Context()); err != nil {
					t.Fatal(err)
				}
				if c := r.status(p.ID); len(c.Attempts) >= 3 {
					break // the send, and two looks or replays that were not made
				}
				if time.Now().After(deadline) {
					t.Fatal("nobody looks at the outcome")
				}
			}
			if c := r.status(p.ID); c.Status != commit.StatusUnknown || said.Load() != 1 || r.target.total() != 0 {
				t.Errorf("got %s after %d calls with %d effects, want unknown and nothing said again", c.Status, said.Load(), r.target.total())
			}
		})
	}
}

// The target's memory may end while a replay is on its way: what began in time must not arrive too late.
func TestAReplayEndsBeforeTheKeyMayBeForgotten(t *testing.T) {
	t.Parallel()
	const keep = 4 * time.Second
	r := newRig(t, remembers(keep), func(r *rig) { r.clocks.SendFor, r.clocks.LeaseFor = 15*time.Second, 30*time.Second })
	p, said := r.swallowed("a")
	r.target.reads(func(now connector.Reading) (connector.Reading, error) {
		r.await(`select clock_timestamp() > started_at + $2::interval from executions where preview_id = $1`, p.ID.UUID(), keep)
		return now, nil
	})
	if err := r.commits.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := r.status(p.ID)
	if c.Status != commit.StatusUnknown || said.Load() != 1 {
		t.Errorf("got %s after %d calls, want unknown and nothing said after the target's memory ended", c.Status, said.Load())
	}
}

// The freeze may come after the reconciler has looked and before it begins.
func TestNoReplayBeginsUnderAFreeze(t *testing.T) {
	t.Parallel()
	r := newRig(t, remembers(time.Hour))
	p, _ := r.swallowed("a")
	key := commit.Key{Tenant: "acme", ID: p.ID}
	r.exec(frozenSQL(""))
	if ok, err := r.store.BeginProbe(t.Context(), key, uuid.New(), commit.Replay, time.Minute, time.Second); ok || err != nil {
		t.Errorf("a replay: got %v, %v, want none begun", ok, err)
	}
	if ok, err := r.store.BeginProbe(t.Context(), key, uuid.New(), commit.Lookup, time.Minute, time.Second); !ok || err != nil {
		t.Errorf("a look-up: got %v, %v, want it begun: it sends nothing", ok, err)
	}
}

// Whatever holds one change, a pass looks at the others and does not wait.
func TestASweepLooksPastWhatSomebodyHolds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	silent(r)
	held, free := r.prepare("a", "new"), r.prepare("b", "new")
	for _, p := range []preview.Preview{held, free} {
		if c, err := r.apply(p); err != nil || c.Status != commit.StatusUnknown {
			t.Fatalf("got %s, %v, want unknown", c.Status, err)
		}
	}
	r.canLook()
	release := r.hold(held.ID)
	due, err := r.store.NextProbes(t.Context(), 10)
	if err != nil || len(due) != 1 || due[0].ID != free.ID {
		t.Errorf("got %v, %v due, want the one that nobody holds", due, err)
	}
	r.sweepUntil(free.ID, commit.StatusApplied)
	if got := r.status(held.ID).Status; got != commit.StatusUnknown {
		t.Errorf("what is held: got %s, want unknown still", got)
	}
	release()
	r.sweepUntil(held.ID, commit.StatusApplied)
}

// What no machine can settle is handed to operators, with the evidence so far, and is still looked at: slowly, and for ever.
func TestOperatorsAreCalledOnceLookingHasHadItsTime(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.unlooked("a")
	for deadline := time.Now().Add(15 * time.Second); ; time.Sleep(20 * time.Millisecond) { // polling with a deadline
		if err := r.commits.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		c := r.status(p.ID)
		e := c.Executions[0]
		if e.NeedsOperator {
			if c.Now.Before(e.SettleAt) || e.Detail["evidence"] == nil || !e.NextProbeAt.After(c.Now.Add(-time.Minute)) {
				t.Errorf("handed over at %s (settles at %s, next look %s, %v), want it later, with evidence, and looked at again",
					c.Now, e.SettleAt, e.NextProbeAt, e.Detail)
			}
			if n := countOf(r.kinds(p.ID), "handed_over"); n != 1 {
				t.Errorf("got %d hand-overs, want 1", n)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nobody is called")
		}
	}
	q := r.prepare("another target", "new")
	if c, err := r.apply(q); err != nil || c.Status != commit.StatusApplied {
		t.Errorf("another target meanwhile: got %s, %v, want applied", c.Status, err)
	}
}

// Who waits behind a change, and the key under which the target knows it, are told to people who review.
func TestWhatOnlyReviewersAreTold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.unlooked("a")
	waits := r.prepare("a", "next")
	_, err := r.apply(waits)
	wantCode(t, err, fault.TargetBusy)
	r.prepare("b", "elsewhere")
	y, err := r.commits.Why(t.Context(), operator("ito"), p.ID)
	if err != nil || len(y.Behind) != 1 || y.Behind[0] != waits.ID.String() {
		t.Errorf("an operator: got %v, %v, want the one that waits", y.Behind, err)
	}
	c, err := r.commits.Status(t.Context(), operator("ito"), p.ID, 0, true)
	if want := commit.IdempotencyKey(secret, "acme", p.ID, 0); err != nil || c.Executions[0].Key != want {
		t.Errorf("an operator: got key %q, %v, want %q", c.Executions[0].Key, err, want)
	}
	if y, err = r.commits.Why(t.Context(), agent("bot"), p.ID); err != nil || y.Behind != nil || y.Change.Executions[0].Key != "" {
		t.Errorf("the agent: got %v and key %q, %v, want neither", y.Behind, y.Change.Executions[0].Key, err)
	}
	if c, err = r.commits.Status(t.Context(), agent("bot"), p.ID, 0, true); err != nil || c.Executions[0].Key != "" {
		t.Errorf("the agent: got key %q, %v, want none", c.Executions[0].Key, err)
	}
}
