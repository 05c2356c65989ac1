package store_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/money"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
)

// ruled is a rig whose policy has these rules within the cap of 1,000.
func ruled(t *testing.T, rules string) *rig {
	return newRig(t, func(r *rig) {
		p, err := policy.Parse("rules.yaml", []byte("version: 1\nzone: Asia/Tokyo\ndefault: {require: [{any_of: [leads]}]}\ncaps:\n"+daily+"rules:\n"+rules))
		if err != nil {
			t.Fatal(err)
		}
		r.front, r.rules.by, r.rules.real = purse{r.target}, p.Evaluate, p
	})
}

const (
	asksForSeventy = "  - {name: seventy, when: after.daily_budget.jpy == jpy(70), then: {require: [{any_of: [leads]}]}}\n"
	allowsTheRest  = "  - {name: rest, when: \"true\", then: allow}\n"
)

// spread has 100 applied, 200 approved, 50 unknown and 70 pending, and returns the last three.
func (r *rig) spread() (approved, unknown, pending preview.Preview) {
	r.t.Helper()
	if c, err := r.apply(r.raise("a", 100)); err != nil || c.Status != commit.StatusApplied {
		r.t.Fatalf("got %s, %v, want applied", c.Status, err)
	}
	approved = r.raise("b", 200)
	r.target.script(func(context.Context, connector.Plan, connector.Call, func() error) (connector.Receipt, error) {
		return connector.Receipt{}, context.DeadlineExceeded
	})
	unknown = r.raise("c", 50)
	if c, err := r.apply(unknown); err != nil || c.Status != commit.StatusUnknown {
		r.t.Fatalf("got %s, %v, want unknown", c.Status, err)
	}
	r.target.script(nil)
	pending, err := r.approvals.Request(r.t.Context(), agent("bot"), r.raise("d", 70).ID, "please")
	if err != nil || pending.State != preview.Pending {
		r.t.Fatalf("got %s, %v, want pending", pending.State, err)
	}
	return approved, unknown, pending
}

func (r *rig) exposure(p preview.Preview) (limit, applied, reserved, unknown, pending, asked int64) {
	r.t.Helper()
	c, err := r.commits.Status(r.t.Context(), agent("bot"), p.ID, 0, true)
	if err != nil || len(c.Exposure) != 1 {
		r.t.Fatalf("got %+v, %v, want one cap", c.Exposure, err)
	}
	e := c.Exposure[0]
	if !e.ResetsAt.After(p.CreatedAt) || e.Cap != "daily" || e.Limit.Currency != "JPY" {
		r.t.Errorf("got %+v, want the cap and when it begins anew", e)
	}
	return e.Limit.Minor, e.Applied.Minor, e.Reserved.Minor, e.Unknown.Minor, e.Pending.Minor, e.Asked.Minor
}

// Each change is shown what the others come to, by the state that they are in; and what a state gives back is gone at once.
func TestExposureIsToldByState(t *testing.T) {
	t.Parallel()
	r := ruled(t, asksForSeventy+allowsTheRest)
	approved, _, pending := r.spread()
	want := func(p preview.Preview, want ...int64) {
		t.Helper()
		limit, applied, reserved, unknown, waits, asked := r.exposure(p)
		if diff := cmp.Diff(want, []int64{limit, applied, reserved, unknown, waits, asked}); diff != "" {
			t.Errorf("limit, applied, reserved, unknown, pending, asked (-want +got):\n%s", diff)
		}
	}
	want(pending, 1000, 100, 200, 50, 0, 70)
	want(approved, 1000, 100, 0, 50, 70, 200)
	other := r.raise("e", 70)
	want(other, 1000, 100, 200, 50, 70, 70)
	if _, err := r.previews.Cancel(t.Context(), agent("bot"), approved.ID, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := r.reject(pending, "kim"); err != nil {
		t.Fatal(err)
	}
	want(other, 1000, 100, 0, 50, 0, 70)
}

func TestARefusalTellsReservedFromUnknown(t *testing.T) {
	t.Parallel()
	r := ruled(t, asksForSeventy+allowsTheRest)
	r.spread()
	p := r.raise("e", 900)
	wantExceeded(t, p, 1000, 100, 250, 900)
	if e := p.Ruling.Exceeded; e.Unknown != (money.Amount{Minor: 50, Currency: "JPY"}) {
		t.Errorf("got %s unknown, want 50", e.Unknown)
	}
	why, err := r.commits.Why(t.Context(), agent("bot"), p.ID)
	if err != nil || why.Text.Key != "fault.exposure_exceeded.cap" || why.Text.Args["reserved"] != (money.Amount{Minor: 200, Currency: "JPY"}) {
		t.Errorf("got %+v, %v, want the split", why.Text, err)
	}
}

const asksNearTheEnd = "  - {name: near, actions: [text_change], when: exposure.daily.left.jpy < jpy(500), then: {require: [{any_of: [leads]}]}}\n" + allowsTheRest

// A rule about totals is asked at prepare with what there is then, and again at apply.
func TestRulesAboutTotalsAreAskedAtPrepareAndAtApply(t *testing.T) {
	t.Parallel()
	r := ruled(t, asksNearTheEnd)
	early := r.raise("a", 100)
	large := r.raise("b", 600)
	if early.State != preview.Approved || large.State != preview.Approved {
		t.Fatalf("got %s and %s, want both approved", early.State, large.State)
	}
	late := r.raise("c", 100)
	if late.State != preview.NeedsApproval || late.Ruling.Rule != "near" || late.Ruling.Saw["exposure.daily.left"] != "300 JPY" {
		t.Errorf("got %s by %s, who saw %v, want people at 300 left", late.State, late.Ruling.Rule, late.Ruling.Saw)
	}
	if c, err := r.apply(large); err != nil || c.Status != commit.StatusApplied {
		t.Errorf("the large one leaves 900 to itself: got %s, %v, want applied", c.Status, err)
	}
	c, err := r.apply(early)
	if fault.From(err).Key != "fault.approval_required.tightened" || c.Status != commit.StatusNeedsApproval || r.target.total() != 1 {
		t.Errorf("got %v, %s with %d effects, want it sent back at 400 left", err, c.Status, r.target.total())
	}
}

// A percentage is of the value that the window began with, wherever it is read.
func TestExposureOfAPercentage(t *testing.T) {
	t.Parallel()
	r := capRig(t, "allow", `  - {name: daily, actions: [text_change], field: daily_budget, per: target, window: month, limit: {percent: 50}}
`)
	r.target.move("a", "1000")
	first := r.raise("a", 1100)
	if limit, _, _, _, _, asked := r.exposure(first); limit != 500 || asked != 100 {
		t.Errorf("got %d of %d, want 100 of 500", asked, limit)
	}
	if c, err := r.apply(first); err != nil || c.Status != commit.StatusApplied {
		t.Fatalf("got %s, %v, want applied", c.Status, err)
	}
	if limit, applied, _, _, _, asked := r.exposure(r.raise("a", 1200)); limit != 500 || applied != 100 || asked != 100 {
		t.Errorf("got %d applied and %d asked of %d, want 100, 100 of 500", applied, asked, limit)
	}
}
