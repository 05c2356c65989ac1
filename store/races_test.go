package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
)

// outcome is what one contender was told.
type outcome struct {
	err    error
	status commit.Status // of an apply
}

type contender func(*rig, preview.Preview) outcome

var contenders = map[string]contender{
	"approve": func(r *rig, p preview.Preview) outcome { _, err := r.approve(p, "kim"); return outcome{err: err} },
	"approve too": func(r *rig, p preview.Preview) outcome {
		_, err := r.approve(p, "choi")
		return outcome{err: err}
	},
	"reject": func(r *rig, p preview.Preview) outcome { _, err := r.reject(p, "lee"); return outcome{err: err} },
	"reject too": func(r *rig, p preview.Preview) outcome {
		_, err := r.reject(p, "choi")
		return outcome{err: err}
	},
	"cancel": func(r *rig, p preview.Preview) outcome {
		_, err := r.previews.Cancel(context.Background(), agent("bot"), p.ID, "changed my mind")
		return outcome{err: err}
	},
	"claim": func(r *rig, p preview.Preview) outcome {
		c, err := r.apply(p)
		return outcome{err, c.Status}
	},
}

// told matches what a contender was told: a code, and for a conflict the status that won.
func (o outcome) told() string {
	var f *fault.Fault
	switch {
	case o.err == nil:
		return string(o.status)
	case !errors.As(o.err, &f):
		return "error: " + o.err.Error()
	case f.Args["status"] != nil:
		return fmt.Sprintf("%s (%s)", f.Code, f.Args["status"])
	}
	return string(f.Code)
}

// TestOneWinnerAndTheLoserIsToldWho lines two contenders up behind the row's lock, in both orders: both have read the same
// state before either moves.
func TestOneWinnerAndTheLoserIsToldWho(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, tc := range []struct {
		from          preview.State
		first, second string
		ends          commit.Status
		told          string // the second
	}{
		{preview.Pending, "approve", "approve too", commit.StatusApproved, "conflict (approved)"},
		{preview.Pending, "approve", "reject", commit.StatusRejected, ""}, // a veto is heard until the claim
		{preview.Pending, "reject", "approve", commit.StatusRejected, "conflict (rejected)"},
		{preview.Pending, "reject", "reject too", commit.StatusRejected, "conflict (rejected)"},
		{preview.Pending, "approve", "cancel", commit.StatusCanceled, ""}, // what is approved can be canceled
		{preview.Pending, "cancel", "approve", commit.StatusCanceled, "conflict (canceled)"},
		{preview.Pending, "reject", "cancel", commit.StatusRejected, "conflict (rejected)"},
		{preview.Pending, "cancel", "reject", commit.StatusCanceled, "conflict (canceled)"},
		{preview.Pending, "cancel", "cancel", commit.StatusCanceled, ""}, // the same cancel
		{preview.Approved, "reject", "claim", commit.StatusRejected, "rejected"},
		{preview.Approved, "claim", "reject", commit.StatusApplied, "in_progress"},
		{preview.Approved, "cancel", "claim", commit.StatusCanceled, "canceled"},
		{preview.Approved, "claim", "cancel", commit.StatusApplied, "in_progress"},
		{preview.Approved, "reject", "cancel", commit.StatusRejected, "conflict (rejected)"},
		{preview.Approved, "cancel", "reject", commit.StatusCanceled, "conflict (canceled)"},
		{preview.Approved, "claim", "claim", commit.StatusApplied, "applied"},
	} {
		name := fmt.Sprintf("%s: %s then %s", tc.from, tc.first, tc.second)
		t.Run(name, func(t *testing.T) {
			r := r.in(t)
			p := r.pending(name)
			if tc.from == preview.Approved {
				if _, err := r.approve(p, "park"); err != nil {
					t.Fatal(err)
				}
			}
			release := r.hold(p.ID)
			first, second := make(chan outcome, 1), make(chan outcome, 1)
			go func() { first <- contenders[tc.first](r, p) }()
			r.awaitBlocked(1)
			go func() { second <- contenders[tc.second](r, p) }()
			r.awaitBlocked(2)
			release()
			if got := receive(t, first); got.err != nil {
				t.Errorf("%s came first: got %v", tc.first, got.err)
			}
			if got := receive(t, second).told(); got != tc.told {
				t.Errorf("%s was told %q, want %q", tc.second, got, tc.told)
			}
			if got := r.status(p.ID).Status; got != tc.ends {
				t.Errorf("got %s, want %s", got, tc.ends)
			}
		})
	}
}

// TestWhoMeetsAnExpiryIsToldSo holds the sweeper's own move, uncommitted, while the others line up behind it.
func TestWhoMeetsAnExpiryIsToldSo(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, told := range map[string]string{"approve": "expired", "reject": "expired", "cancel": "expired", "claim": "expired"} {
		t.Run(name, func(t *testing.T) {
			r := r.in(t)
			p := r.pending(name)
			if name == "claim" {
				if _, err := r.approve(p, "park"); err != nil {
					t.Fatal(err)
				}
			}
			sweep := r.begin()
			if _, err := sweep.Exec(t.Context(), moveSQL("state = 'expired', ended_at = now()"), p.ID.UUID()); err != nil {
				t.Fatal(err)
			}
			done := make(chan outcome, 1)
			go func() { done <- contenders[name](r, p) }()
			r.awaitBlocked(1)
			if err := sweep.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := receive(t, done).told(); got != told {
				t.Errorf("got %q, want %q", got, told)
			}
		})
	}
}

func TestASweepPassesOverWhatSomebodyHolds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.prepare("a", "new")
	r.shortly(p.ID, 0)
	release := r.hold(p.ID)
	if n, err := r.store.MarkLapsed(t.Context(), 10); n != 0 || err != nil {
		t.Errorf("got %d, %v, want none", n, err)
	}
	release()
	if n, err := r.store.MarkLapsed(t.Context(), 10); n != 1 || err != nil {
		t.Errorf("got %d, %v, want 1", n, err)
	}
	if n, err := r.store.MarkLapsed(t.Context(), 10); n != 0 || err != nil {
		t.Errorf("got %d, %v the second time, want none", n, err)
	}
}

func TestVotesAtOnceMeetAQuorum(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 6} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			p := r.pending("a", policy.Seats{AnyOf: []string{"leads"}, Count: n})
			release := r.hold(p.ID)
			var wg sync.WaitGroup
			for i := range n {
				wg.Go(func() {
					if _, err := r.approve(p, fmt.Sprintf("person%d", i)); err != nil {
						t.Errorf("person %d: %v", i, err)
					}
				})
			}
			r.awaitBlocked(n)
			release()
			wg.Wait()
			got := r.status(p.ID)
			if got.Status != commit.StatusApproved || len(got.Preview.Votes) != n {
				t.Errorf("got %s with %d votes, want approved with %d", got.Status, len(got.Preview.Votes), n)
			}
			if kinds := r.kinds(p.ID); countOf(kinds, "vote") != n-1 || countOf(kinds, "approved") != 1 {
				t.Errorf("got events %v, want %d votes and one approval", kinds, n-1)
			}
		})
	}
}

func TestTheSameDecisionManyTimesIsOne(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.pending("a", policy.Seats{AnyOf: []string{"leads"}, Count: 2})
	release := r.hold(p.ID)
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if _, err := r.approve(p, "kim"); err != nil {
				t.Error(err)
			}
		})
	}
	r.awaitBlocked(5)
	release()
	wg.Wait()
	if kinds := r.kinds(p.ID); countOf(kinds, "vote") != 1 {
		t.Errorf("got events %v, want one vote", kinds)
	}
}

func TestTwoChangesOfOneTarget(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, _, second := services(t, r, openStore(t, r.url))
	previews := []preview.Preview{r.prepare("a", "one"), r.prepare("a", "two")}
	results := make([]outcome, len(previews))
	var wg sync.WaitGroup
	for i, s := range []*commit.Service{r.commits, second} {
		wg.Go(func() {
			c, err := s.Apply(t.Context(), agent("bot"), "text_change", previews[i].ID, contentWait)
			results[i] = outcome{err, c.Status}
			if c.Status == commit.StatusNotApplied && c.Executions[0].Reason != commit.Drifted {
				t.Errorf("got %s, want drifted", c.Executions[0].Reason)
			}
		})
	}
	wg.Wait()
	told := map[string]int{}
	for _, o := range results {
		told[o.told()]++
	}
	if told["applied"] != 1 || told["target_busy"]+told["not_applied"] != 1 {
		t.Errorf("got %v, want one applied and the other target_busy or drifted", told)
	}
	if got := r.target.total(); got != 1 {
		t.Errorf("got %d effects, want 1", got)
	}
}

func TestABusyTargetNamesItsHolderAndComesFree(t *testing.T) {
	t.Parallel()
	r := newRig(t, unhurried)
	holder, waiting := r.unknown("a"), r.prepareOther("a")
	_, err := r.apply(waiting)
	wantCode(t, err, fault.TargetBusy)
	if got := fault.From(err).Data["waits_for"]; got != holder.ID.String() {
		t.Errorf("waits for %v, want %s", got, holder.ID)
	}
	r.settleNow(holder.ID)
	r.sweepUntil(holder.ID, commit.StatusNotApplied)
	if c, err := r.apply(waiting); err != nil || c.Status != commit.StatusApplied {
		t.Errorf("got %s, %v, want applied once the target is free", c.Status, err)
	}
}

func TestAnotherTenantsHolderIsNeverNamed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	holder := r.unknown("a")
	other := agent("bot")
	other.Tenant = "other"
	p, err := r.previews.Prepare(t.Context(), other, preview.Request{Action: "text_change", Input: input("a", "theirs")})
	if err != nil {
		t.Fatal(err)
	}
	c, err := r.commits.Apply(t.Context(), other, "text_change", p.Preview.ID, contentWait)
	wantCode(t, err, fault.TargetBusy)
	f := fault.From(err)
	if f.Data != nil || f.Args != nil || c.Status != commit.StatusApproved {
		t.Errorf("got %v, %v, %s: another tenant's change %s must not be named", f.Data, f.Args, c.Status, holder.ID)
	}
}
