package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/preview"
)

// TestAConnectorCannotChangeWhatOthersAreShown hands a plan to a connector that writes into it.
func TestAConnectorCannotChangeWhatOthersAreShown(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.target.script(func(_ context.Context, plan connector.Plan, _ connector.Call, do func() error) (connector.Receipt, error) {
		err := do()
		copy(plan.Request.Body, `"BAD"`)
		*plan.Changes[0].After.Text = "BAD"
		plan.Changes[0].Field = "BAD"
		return connector.Receipt{}, err
	})
	p := r.prepare("a", "new")
	if c, err := r.apply(p); err != nil || c.Status != commit.StatusApplied {
		t.Fatalf("got %s, %v, want applied", c.Status, err)
	}
	plan := r.status(p.ID).Preview.Plan
	if got := plan.Changes[0]; string(plan.Request.Body) != `"new"` || got.Field != "text" || *got.After.Text != "new" {
		t.Errorf("got %s and %+v, want what was approved", plan.Request.Body, got)
	}
	if err := r.status(p.ID).Preview.CheckDigest(); err != nil {
		t.Error(err)
	}
}

// TestARefusalThatAnsweredASecondDeliveryIsContradicted: the effect is there, and the answer is to a duplicate of the request.
func TestARefusalThatAnsweredASecondDeliveryIsContradicted(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]error{
		"refused": connector.Rejected(409, "the value is set already"), "drifted": &connector.DriftedError{},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.target.script(func(_ context.Context, _ connector.Plan, _ connector.Call, do func() error) (connector.Receipt, error) {
				return connector.Receipt{}, errors.Join(do(), refusal)
			})
			p := r.prepare("a", "new")
			c, err := r.apply(p)
			if err != nil || c.Status != commit.StatusNotApplied || c.Executions[0].NextProbeAt.IsZero() {
				t.Fatalf("got %s, %v, next look %s, want not_applied and a later look", c.Status, err, c.Executions[0].NextProbeAt)
			}
			c, err = r.commits.Probe(t.Context(), operator("oper"), p.ID)
			if err != nil || c.Status != commit.StatusApplied || !c.Executions[0].Contradicted {
				t.Errorf("got %s, %v, contradicted %t, want applied, openly", c.Status, err, c.Executions[0].Contradicted)
			}
		})
	}
}

// TestWhatNeverAskedTheTargetIsNotLookedAtLater: a drift that the re-read showed was no answer to a send.
func TestWhatNeverAskedTheTargetIsNotLookedAtLater(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.prepare("a", "new")
	r.target.move("a", "other")
	c, err := r.apply(p)
	if err != nil || c.Status != commit.StatusNotApplied || !c.Executions[0].NextProbeAt.IsZero() {
		t.Errorf("got %s, %v, next look %s, want not_applied and no later look", c.Status, err, c.Executions[0].NextProbeAt)
	}
}

// TestALookUpThatIgnoresItsDeadlineHoldsNobodyUp hangs one look-up for good.
func TestALookUpThatIgnoresItsDeadlineHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	r := newRig(t, hasty)
	r.target.script(func(context.Context, connector.Plan, connector.Call, func() error) (connector.Receipt, error) {
		return connector.Receipt{}, errors.New("no reply")
	})
	hung, other := r.prepare("a", "new"), r.prepare("b", "new")
	for _, p := range []preview.Preview{hung, other} {
		if c, err := r.apply(p); err != nil || c.Status != commit.StatusUnknown {
			t.Fatalf("got %s, %v, want unknown", c.Status, err)
		}
	}
	forever := make(chan struct{})
	t.Cleanup(func() { close(forever) })
	key := r.keyOf(hung)
	r.target.looks(func(call connector.Call) (connector.Finding, error) {
		if call.Key == key {
			<-forever
		}
		return connector.Finding{Found: connector.EffectAbsent}, nil
	})
	r.sweepUntil(other.ID, commit.StatusNotApplied)
	done := make(chan error, 1)
	go func() {
		_, err := r.commits.Probe(context.WithoutCancel(t.Context()), operator("oper"), hung.ID)
		done <- err
	}()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("an operator's look: %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("an operator waits for a connector that never answers")
	}
}

func (r *rig) keyOf(p preview.Preview) string {
	return commit.IdempotencyKey(secret, p.Tenant, p.ID, 0)
}
