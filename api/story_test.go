package api_test

import (
	"net/http"
	"testing"

	"github.com/cutonce/cutonce/internal/target"
)

func TestSmallRaiseIsAppliedOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)

	found := r.post("agent", "/v1/finds/campaigns_find", object{"query": "秋の特価"})
	found.want(t, http.StatusOK, "")
	if items := found.at("items").([]any); len(items) < 2 || found.at("warnings") == nil {
		t.Fatalf("got %s, want the look-alikes and a warning", found.raw)
	}

	input := object{
		"campaign_id": target.CampaignAutumnSearch, "new_daily_budget_jpy": 24000, "expect_campaign_name": "秋の特価_検索", "reason": "autumn",
	}
	made := r.post("agent", previewsPath, input)
	made.want(t, http.StatusCreated, "")
	id := made.text("preview_id")
	if got, want := made.header.Get("Location"), of(id, ""); got != want || made.text("status") != "approved" || made.text("next") != "apply" {
		t.Fatalf("got Location %q, want %q; %s", got, want, made.raw)
	}
	for range 2 {
		applied := r.post("agent", of(id, "/apply"), nil)
		applied.want(t, http.StatusOK, "")
		if applied.text("status") != "applied" {
			t.Fatalf("got %s, want applied", applied.raw)
		}
	}
	if got := r.ads.Counters().Total.Effects; got != 1 {
		t.Errorf("got %d effects, want 1", got)
	}
	detail := r.get("agent", of(id, "?response_format=detailed"))
	detail.want(t, http.StatusOK, "")
	if detail.text("change", "digest") == "" || detail.at("change", "events") == nil {
		t.Errorf("got %s, want the digest and the events", detail.raw)
	}
	why := r.get("agent", of(id, "/why"))
	why.want(t, http.StatusOK, "")
	if why.text("mover") != "nobody" {
		t.Errorf("got %s, want nobody to move", why.raw)
	}
}
