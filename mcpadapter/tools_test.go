package mcpadapter_test

import (
	"testing"

	"github.com/cutonce/cutonce/internal/target"
)

func TestSmallRaiseIsAppliedOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	token := r.issuer.token()
	campaign := target.PlainJPY(0)
	prepared := r.call(token, "budget_change_preview", budget(campaign, "12000"))
	if prepared.IsError || prepared.Status != "approved" || prepared.NextTool != "budget_change_apply" {
		t.Fatalf("preview: %s", prepared.Raw)
	}
	for range 2 {
		got := r.call(token, "budget_change_apply", id(prepared.PreviewID))
		if got.IsError || got.Status != "applied" {
			t.Fatalf("apply: %s", got.Raw)
		}
	}
	c, _ := r.ads.Campaign(campaign)
	if got, want := c.DailyBudget, "12000"; got != want {
		t.Errorf("got budget %s, want %s", got, want)
	}
	if got, want := len(r.ads.Entries()), 1; got != want {
		t.Errorf("got %d effects, want %d", got, want)
	}
}
