package mcpadapter_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
)

// Agents are told no value of a sensitive field, not even the one that they sent: what they do not hold they cannot be talked into
// passing on, and a value before the change was never theirs. There is no tool to reveal one.
func TestAgentsReadNoHiddenValue(t *testing.T) {
	t.Parallel()
	for _, status := range commit.Statuses() {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			s := &scripted{change: changeIn(status, commit.Drifted)}
			plan := &s.change.Preview.Plan
			plan.Changes[1] = connector.Change{Field: "note", Before: connector.Text("old-secret-4711"), After: connector.Text("new-secret-4712"), Sensitive: true}
			plan.Request.Body = []byte(`"new-secret-4712"`)
			s.change.Preview.Input["note"] = "new-secret-4712"
			r, change := newRig(t, behind(s)), s.change.Preview.ID.String()
			for _, c := range []struct{ tool, args string }{
				{"budget_change_preview", `{"campaign_id":"2002001","new_daily_budget_jpy":12000,"reason":"x","response_format":"detailed"}`},
				{"budget_change_apply", id(change)},
				{"change_status", fmt.Sprintf(`{"preview_id":%q,"response_format":"detailed"}`, change)},
				{"approval_request", fmt.Sprintf(`{"preview_id":%q,"justification":"x"}`, change)},
				{"change_cancel", id(change)},
				{"changes_find", `{}`},
			} {
				got := r.call(r.issuer.token(), c.tool, c.args)
				if raw := string(got.Raw); strings.Contains(raw, "-secret-") || !strings.Contains(raw, "•••••• (hidden, changes)") {
					t.Errorf("%s: got %s, want the value masked", c.tool, raw)
				}
			}
		})
	}
}
