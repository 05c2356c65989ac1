package mcpadapter_test

import (
	"fmt"
	"testing"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/fault"
)

// The table of docs/errors.md: which answer is an error, for every call and every status that it can meet. An answer is an
// error exactly when it carries a code.
func TestIsErrorTable(t *testing.T) {
	t.Parallel()
	const no = ""
	rows := []struct {
		status                                  commit.Status
		reason                                  commit.Reason
		prepare, replay, apply, status_, others string
	}{
		{commit.StatusNeedsApproval, "", no, no, no, no, no},
		{commit.StatusPending, "", no, no, no, no, no},
		{commit.StatusApproved, "", no, no, no, no, no},
		{commit.StatusDenied, "", "policy_denied", no, "policy_denied", no, no},
		{commit.StatusRejected, "", no, no, "rejected", no, no},
		{commit.StatusCanceled, "", no, no, "canceled", no, no},
		{commit.StatusExpired, "", no, no, "expired", no, no},
		{commit.StatusApplying, "", no, no, no, no, no},
		{commit.StatusApplied, "", no, no, no, no, no},
		{commit.StatusPartlyApplied, "", no, no, no, no, no},
		{commit.StatusUnknown, "", no, no, "outcome_unknown", no, no},
		{commit.StatusNotApplied, commit.NeverLeft, no, no, "target_unavailable", no, no},
		{commit.StatusNotApplied, commit.Refused, no, no, "target_refused", no, no},
		{commit.StatusNotApplied, commit.Drifted, no, no, "drifted", no, no},
		{commit.StatusNotApplied, commit.LookedUp, no, no, "conflict", no, no},
		{commit.StatusNotApplied, commit.ByOperator, no, no, "conflict", no, no},
	}
	seen := map[commit.Status]bool{}
	for _, row := range rows {
		seen[row.status] = true
		t.Run(fmt.Sprint(row.status, row.reason), func(t *testing.T) {
			t.Parallel()
			s := &scripted{change: changeIn(row.status, row.reason)}
			r := newRig(t, behind(s))
			for _, c := range []struct{ tool, args, want string }{
				{"budget_change_preview", budget("2002001", "12000"), row.prepare},
				{"budget_change_preview", `{"campaign_id":"2002001","new_daily_budget_jpy":12000,"reason":"x","response_format":"detailed"}`, row.prepare},
				{"budget_change_apply", id(s.change.Preview.ID.String()), row.apply},
				{"change_status", id(s.change.Preview.ID.String()), row.status_},
				{"approval_request", fmt.Sprintf(`{"preview_id":%q,"justification":"x"}`, s.change.Preview.ID), row.others},
				{"change_cancel", id(s.change.Preview.ID.String()), row.others},
			} {
				wantError(t, r.call(r.issuer.token(), c.tool, c.args), row.status, c.want)
			}
			s.replayed = true
			wantError(t, r.call(r.issuer.token(), "budget_change_preview", budget("2002001", "12000")), row.status, row.replay)
		})
	}
	for _, status := range commit.Statuses() {
		if !seen[status] {
			t.Errorf("the table has no row for %s", status)
		}
	}
}

func wantError(t *testing.T, got result, status commit.Status, code string) {
	t.Helper()
	if got.IsError != (code != "") || got.Code != code {
		t.Errorf("got isError %v, code %q, want code %q: %s", got.IsError, got.Code, code, got.Raw)
	}
	if got.Status != string(status) {
		t.Errorf("got status %q, want %q", got.Status, status)
	}
}

// Every code that a service can answer with arrives as a result with its kind and next step, and matches the schema of each
// tool: never a protocol error.
func TestEveryCodeIsAResult(t *testing.T) {
	t.Parallel()
	s := &scripted{change: changeIn(commit.StatusApproved, "")}
	r := newRig(t, behind(s))
	for code, rule := range fault.Codes() {
		s.err = fault.New(code, fault.Args{"scopes": "x"}).WithField("/x", "field.required", nil).WithData(map[string]any{"waits_for": "x"}).After(1)
		for _, c := range []struct{ tool, args string }{
			{"budget_change_preview", budget("2002001", "12000")},
			{"budget_change_apply", id(s.change.Preview.ID.String())},
			{"change_cancel", id(s.change.Preview.ID.String())},
			{"approval_request", fmt.Sprintf(`{"preview_id":%q,"justification":"x"}`, s.change.Preview.ID)},
			{"campaigns_find", `{}`},
			{"changes_find", `{}`},
		} {
			got := r.call(r.issuer.token(), c.tool, c.args)
			if !got.IsError || got.Code != string(code) || got.Kind != string(rule.Kind) || got.Next != string(rule.Next) || got.Message == "" {
				t.Errorf("%s: got %s, want the refusal %s", c.tool, got.Raw, code)
			}
			if got.Retryable == nil || *got.Retryable != rule.Retryable {
				t.Errorf("%s: got retryable %v for %s, want %v", c.tool, got.Retryable, code, rule.Retryable)
			}
		}
	}
}
