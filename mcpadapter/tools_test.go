package mcpadapter_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

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

// A restarted agent finds its own work again, by target and by status, page by page.
func TestChangesFind(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	token := r.issuer.token()
	first := r.previewed(target.PlainJPY(0), "12000")
	second := r.previewed(target.PlainJPY(1), "12000")
	r.call(token, "change_cancel", id(second))
	for args, want := range map[string][]string{
		`{}`: {second, first},
		fmt.Sprintf(`{"target_id":%q}`, target.PlainJPY(0)): {first},
		`{"status":"canceled"}`:                             {second},
		`{"status":"approved","target_id":"2002002"}`:       {},
	} {
		got := r.call(token, "changes_find", args)
		found := []string{}
		for _, item := range got.Items {
			found = append(found, item["preview_id"].(string))
		}
		if diff := cmp.Diff(want, found); diff != "" || got.IsError {
			t.Errorf("%s: -want +got:\n%s%s", args, diff, got.Raw)
		}
	}
}

func TestChangesFindPages(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	token := r.issuer.token()
	for i := range 21 {
		r.previewed(target.PlainJPY(0), fmt.Sprint(12000+i))
	}
	page := r.call(token, "changes_find", `{}`)
	var cut struct {
		NextCursor string `json:"next_cursor"`
	}
	if err := json.Unmarshal(page.Raw, &cut); err != nil || len(page.Items) != 20 || cut.NextCursor == "" {
		t.Fatalf("got %d items, cursor %q, %v: want 20 and a cursor", len(page.Items), cut.NextCursor, err)
	}
	rest := r.call(token, "changes_find", fmt.Sprintf(`{"cursor":%q}`, cut.NextCursor))
	if len(rest.Items) != 1 {
		t.Errorf("got %d items on the second page, want 1: %s", len(rest.Items), rest.Raw)
	}
}
