package mcpadapter_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/target"
	"github.com/cutonce/cutonce/preview"
)

// A caller who hangs up in the middle of an apply ends their waiting and nothing else.
func TestDisconnectDoesNotCancelAnExecution(t *testing.T) {
	t.Parallel()
	// The handler would wait longer than this test does, were it not for the caller.
	r := newRig(t, func(r *rig) { r.deps.ApplyWait = 45 * time.Second })
	campaign := target.PlainJPY(3)
	prepared := r.previewed(campaign, "12000")
	hold := target.Once(target.OpChange, campaign, target.Step{Action: target.HoldBefore, Gate: "g"})
	if err := r.ads.AddFault(hold); err != nil {
		t.Fatal(err)
	}
	ctx, hangUp := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() { gone <- r.applyUntil(ctx, prepared) }()
	r.await("the platform to receive the change", func() bool { return r.ads.Counters().Total.Received > 0 })
	hangUp()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want the call to end with its context", err)
	}
	r.await("the handler to give up waiting", func() bool {
		return strings.Contains(r.log.String(), `"tool":"budget_change_apply"`)
	})
	r.ads.Release("g")
	r.await("the change to be applied", func() bool { return r.statusOf(prepared) == commit.StatusApplied })
	if c, _ := r.ads.Campaign(campaign); c.DailyBudget != "12000" || len(r.ads.Entries()) != 1 {
		t.Errorf("got budget %s after %d effects, want 12000 after one", c.DailyBudget, len(r.ads.Entries()))
	}
}

// applyUntil applies over HTTP under a context of its own.
func (r *rig) applyUntil(ctx context.Context, previewID string) error {
	raw := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"budget_change_apply","arguments":%s,"_meta":%s}}`, id(previewID), meta)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, strings.NewReader(raw))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Authorization", "Bearer "+r.issuer.token())
	for name, value := range modernHeaders("tools/call", "budget_change_apply", "en") {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer drain(resp)
	return nil
}

func (r *rig) statusOf(id string) commit.Status {
	r.t.Helper()
	parsed, _ := preview.ParseID(id)
	c, err := r.commits.Status(r.t.Context(), r.actorOf(r.issuer.token()), parsed, 0, false)
	if err != nil {
		r.t.Fatal(err)
	}
	return c.Status
}

// await polls with a deadline.
func (r *rig) await(what string, done func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); pause(r.t.Context(), 5*time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatalf("waited too long for %s", what)
		}
	}
}

// Close lets nobody wait on: a call held by change_status answers at once, as things stand.
func TestCloseEndsWaiting(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	token := r.issuer.token()
	prepared := r.call(token, "budget_change_preview", `{"campaign_id":"2001007","new_daily_budget_jpy":40000,"expect_campaign_name":"母の日ギフト_検索","reason":"x"}`)
	r.call(token, "approval_request", fmt.Sprintf(`{"preview_id":%q,"justification":"x"}`, prepared.PreviewID))
	answered := make(chan result, 1)
	started := time.Now()
	go func() {
		got, err := r.tryCall(token, "change_status", fmt.Sprintf(`{"preview_id":%q,"wait_s":50}`, prepared.PreviewID), "en")
		if err != nil {
			t.Error(err)
		}
		answered <- got
	}()
	if err := r.handler.Close(); err != nil {
		t.Fatal(err)
	}
	if got := <-answered; got.Status != "pending" || got.IsError {
		t.Errorf("got %s, want the pending change", got.Raw)
	}
	if took := time.Since(started); took > 20*time.Second {
		t.Errorf("the call was held for %s", took)
	}
	if got := r.call(token, "change_status", id(prepared.PreviewID)); got.IsError {
		t.Errorf("a closed door no longer answers: %s", got.Raw)
	}
}

// wait_s waits for a decision, and no longer than it takes.
func TestStatusWaitsForADecision(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	token := r.issuer.token()
	prepared := r.call(token, "budget_change_preview", `{"campaign_id":"2001007","new_daily_budget_jpy":40000,"expect_campaign_name":"母の日ギフト_検索","reason":"x"}`)
	r.call(token, "approval_request", fmt.Sprintf(`{"preview_id":%q,"justification":"x"}`, prepared.PreviewID))
	answered := make(chan result, 1)
	go func() {
		got, err := r.tryCall(token, "change_status", fmt.Sprintf(`{"preview_id":%q,"wait_s":50}`, prepared.PreviewID), "en")
		if err != nil {
			t.Error(err)
		}
		answered <- got
	}()
	r.decide(prepared.PreviewID, true, "ok")
	select {
	case got := <-answered:
		if got.Status != "approved" || got.NextTool != "budget_change_apply" {
			t.Errorf("got %s, want approved", got.Raw)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the call did not notice the decision")
	}
}
