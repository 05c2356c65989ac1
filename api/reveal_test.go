package api_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/adbudget"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/devissuer"
)

const contact = "kato-4711@billing.example"

// discreet is the ad platform's connector with somebody's address among its fields.
type discreet struct{ *adbudget.Connector }

func (d discreet) Prepare(ctx context.Context, who actor.Actor, action string, in connector.Input) (connector.Plan, connector.Impact, error) {
	plan, impact, err := d.Connector.Prepare(ctx, who, action, in)
	if err == nil {
		plan.Changes = append(plan.Changes, connector.Change{Field: "contact", Before: connector.Text(""), After: connector.Text(contact), Sensitive: true})
	}
	return plan, impact, err
}

func withDiscretion(s *settings) {
	s.front = func(c *adbudget.Connector) connector.Connector { return discreet{c} }
}

func TestHiddenValuesAreInNoAnswerButARevealed(t *testing.T) {
	t.Parallel()
	r := newRig(t, withDiscretion)
	id := r.prepared(raise(0, 16000))
	hidden := func(what string, got reply, status int) reply {
		t.Helper()
		if got.status != status || strings.Contains(string(got.raw), contact) {
			t.Errorf("%s: got %d %s, want %d and no hidden value", what, got.status, got.raw, status)
		}
		return got
	}
	hidden("asked", r.post("agent", of(id, "/approval-request?response_format=detailed"), object{"justification": "please"}), 200)
	for _, who := range []string{"agent", "sato", "kim", "oper", "auditor"} {
		detail := hidden(who, r.get(who, of(id, "?response_format=detailed")), 200)
		if got := detail.text("change", "request", "body"); got != connector.Mask {
			t.Errorf("%s: got the body %q, want the mask", who, got)
		}
		if input, _ := detail.at("change", "input").(object); input["new_daily_budget_jpy"] != connector.Mask || input["reason"] != "a test" {
			t.Errorf("%s: got the input %v", who, input)
		}
		hidden(who, r.get(who, "/v1/previews?response_format=detailed"), 200)
		hidden(who, r.get(who, of(id, "/why")), 200)
	}
	hidden("the queue", r.get("kim", "/v1/approvals?response_format=detailed"), 200)
	for _, format := range []string{"csv", "ndjson"} {
		hidden(format, r.get("oper", "/v1/previews/export?format="+format), 200)
	}

	hidden("the agent", r.post("agent", of(id, "/reveal"), nil), http.StatusForbidden).want(t, http.StatusForbidden, "forbidden")
	hidden("the requester", r.post("sato", of(id, "/reveal"), nil), http.StatusForbidden)
	stranger := r.token("admin", devissuer.WithTenant("other"))
	hidden("another tenant", r.do(ask{method: "POST", path: of(id, "/reveal"), token: stranger}), http.StatusNotFound)
	hidden("by GET", r.get("kim", of(id, "/reveal")), http.StatusMethodNotAllowed)

	shown := r.post("kim", of(id, "/reveal?response_format=detailed"), nil)
	shown.want(t, http.StatusOK, "")
	row, _ := shown.at("change", "changes").([]any)[1].(object)
	if after, _ := row["after"].(object); after["text"] != contact || row["sensitive"] != true || row["changed"] != true {
		t.Errorf("got %v, want the value", row)
	}
	if input, _ := shown.at("change", "input").(object); input["new_daily_budget_jpy"] == connector.Mask {
		t.Errorf("got the input %v, want it whole", input)
	}
	events := shown.at("change", "events").([]any)
	if last := events[len(events)-1].(object); last["kind"] != "revealed" || shown.header.Get("Cache-Control") != "no-store" {
		t.Errorf("got %v with %v, want the record and nothing kept", last, shown.header)
	}
	done := hidden("the decision", r.post("kim", of(id, "/decisions"), object{
		"decision": "approve", "digest": shown.text("change", "digest"),
	}), 200)
	done.want(t, http.StatusOK, "")
	if strings.Contains(r.log.String(), contact) {
		t.Error("the log holds the value")
	}
}

func TestNothingHiddenIsNothingToReveal(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.post("kim", of(r.prepared(raise(0, 90000)), "/reveal"), nil).want(t, http.StatusConflict, "conflict")
}
