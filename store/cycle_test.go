package store_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
)

func TestAutomaticChangeIsAppliedOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.prepare("a", "new")
	for range 3 {
		c, err := r.apply(p)
		if err != nil {
			t.Fatalf("apply: %v", err)
		}
		if got, want := c.Status, commit.StatusApplied; got != want {
			t.Fatalf("got status %s, want %s", got, want)
		}
	}
	if got, want := r.target.total(), 1; got != want {
		t.Errorf("got %d effects, want %d", got, want)
	}
}

func TestApprovedByAPersonThenApplied(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.rules.set(people(policy.Seats{AnyOf: []string{"leads"}, Count: 1}))
	p := r.prepare("a", "new")
	_, err := r.apply(p)
	wantCode(t, err, fault.ApprovalRequired)
	if _, err := r.approvals.Request(t.Context(), agent("bot"), p.ID, "please"); err != nil {
		t.Fatalf("request: %v", err)
	}
	_, err = r.apply(p)
	wantCode(t, err, fault.ApprovalRequired)
	d := approvals.Decision{Approve: true, Digest: p.Digest}
	if _, err := r.approvals.Decide(t.Context(), person("sato", "leads"), p.ID, d); err == nil {
		t.Error("the human the agent acts for approved their own change")
	}
	got, err := r.approvals.Decide(t.Context(), person("kim", "leads"), p.ID, d)
	if err != nil {
		t.Fatalf("decide: %v", err)
	}
	if got.State != preview.Approved || len(got.Votes) != 1 {
		t.Errorf("got state %s with %d votes, want approved with 1", got.State, len(got.Votes))
	}
	c, err := r.apply(p)
	if err != nil || c.Status != commit.StatusApplied {
		t.Fatalf("apply: got %s, %v", c.Status, err)
	}
}

func TestManyAppliesAtOnceOneEffect(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	_, _, second := services(t, r, openStore(t, r.url))
	p := r.prepare("a", "new")
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			s := r.commits
			if i%2 == 1 {
				s = second
			}
			c, err := s.Apply(t.Context(), agent("bot"), "text_change", p.ID, 10*time.Second)
			if err != nil || c.Status != commit.StatusApplied {
				t.Errorf("got %s, %v, want applied", c.Status, err)
			}
		})
	}
	wg.Wait()
	if got, want := r.target.total(), 1; got != want {
		t.Errorf("got %d effects, want %d", got, want)
	}
}

func TestMovedTargetDriftsAndNothingIsSent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.prepare("a", "new")
	r.target.move("a", "somebody else's")
	r.target.script(func(context.Context, connector.Plan, connector.Call, func() error) (connector.Receipt, error) {
		t.Error("it was sent")
		return connector.Receipt{}, connector.Rejected(412, "moved")
	})
	c, err := r.apply(p)
	if err != nil {
		t.Fatal(err)
	}
	if c.Status != commit.StatusNotApplied || c.Executions[0].Reason != commit.Drifted || r.target.total() != 0 {
		t.Errorf("got %s (%s) with %d effects, want not_applied (drifted) with 0", c.Status, c.Executions[0].Reason, r.target.total())
	}
}

func TestLostReplyIsUnknownThenFound(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.target.execute = func(_ context.Context, _ connector.Plan, _ connector.Call, do func() error) (connector.Receipt, error) {
		if err := do(); err != nil {
			return connector.Receipt{}, err
		}
		return connector.Receipt{}, context.DeadlineExceeded
	}
	p := r.prepare("a", "new")
	c, err := r.apply(p)
	if err != nil || c.Status != commit.StatusUnknown {
		t.Fatalf("got %s, %v, want unknown", c.Status, err)
	}
	c = r.sweepUntil(p.ID, commit.StatusApplied)
	if c.Executions[0].Evidence != commit.ByLookup || r.target.total() != 1 {
		t.Errorf("got evidence %s with %d effects, want lookup with 1", c.Executions[0].Evidence, r.target.total())
	}
}

func TestNeverLeftReturnsToApproved(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.target.execute = func(context.Context, connector.Plan, connector.Call, func() error) (connector.Receipt, error) {
		return connector.Receipt{}, connector.NotSent(context.DeadlineExceeded)
	}
	p := r.prepare("a", "new")
	c, err := r.apply(p)
	wantCode(t, err, fault.TargetUnavailable)
	if c.Status != commit.StatusApproved {
		t.Fatalf("got %s, want approved", c.Status)
	}
	r.target.mu.Lock()
	r.target.execute = nil
	r.target.mu.Unlock()
	c, err = r.apply(p)
	if err != nil || c.Status != commit.StatusApplied || r.target.total() != 1 {
		t.Errorf("got %s, %v, %d effects, want applied once", c.Status, err, r.target.total())
	}
	if c = r.status(p.ID); len(c.Attempts) != 2 {
		t.Errorf("got %d attempts, want 2", len(c.Attempts))
	}
}

func TestAbsentCountsOnlyAfterSettling(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.target.execute = func(context.Context, connector.Plan, connector.Call, func() error) (connector.Receipt, error) {
		return connector.Receipt{}, context.DeadlineExceeded
	}
	p := r.prepare("a", "new")
	if c, err := r.apply(p); err != nil || c.Status != commit.StatusUnknown {
		t.Fatalf("got %s, %v, want unknown", c.Status, err)
	}
	c := r.sweepUntil(p.ID, commit.StatusNotApplied)
	e := c.Executions[0]
	if e.Reason != commit.LookedUp || e.FinishedAt.Before(e.SettleAt) {
		t.Errorf("got %s at %s, want looked_up not before %s", e.Reason, e.FinishedAt, e.SettleAt)
	}
}

func TestOperatorSettlesWhatNoMachineCan(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.target.execute = func(context.Context, connector.Plan, connector.Call, func() error) (connector.Receipt, error) {
		return connector.Receipt{}, context.DeadlineExceeded
	}
	r.target.lookup = func(connector.Call) (connector.Finding, error) {
		return connector.Finding{Found: connector.EffectUnsure}, nil
	}
	p := r.prepare("a", "new")
	if c, err := r.apply(p); err != nil || c.Status != commit.StatusUnknown {
		t.Fatalf("got %s, %v, want unknown", c.Status, err)
	}
	key := commit.Key{Tenant: "acme", ID: p.ID}
	early := commit.Resolution{Key: key, By: operator("ito"), Reason: "not in the log", Evidence: "target log, 12:00"}
	_, err := r.commits.Resolve(t.Context(), early)
	wantCode(t, err, fault.Conflict)
	yes := commit.Resolution{Key: key, By: operator("ito"), Applied: true, Reason: "seen in the log", Evidence: "target log, 12:00"}
	c, err := r.commits.Resolve(t.Context(), yes)
	if err != nil || c.Status != commit.StatusApplied || c.Executions[0].Evidence != commit.ByStatement {
		t.Fatalf("got %s, %v, want applied by operator", c.Status, err)
	}
	if _, err := r.commits.Resolve(t.Context(), yes); err != nil {
		t.Errorf("repeating the statement: %v", err)
	}
	no := yes
	no.Applied = false
	_, err = r.commits.Resolve(t.Context(), no)
	wantCode(t, err, fault.Conflict)
}
