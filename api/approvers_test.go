package api_test

import (
	"net/http"
	"net/url"
	"testing"
)

func TestAnApproverIsRemovedAndRestoredOverHTTP(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.prepared(raise(0, 90000)) // the policy asks for ads-approvers
	asked := r.post("agent", of(id, "/approval-request"), object{"justification": "please"})
	asked.want(t, http.StatusOK, "")
	digest := r.get("kim", of(id, "?response_format=detailed")).text("change", "digest")
	r.post("kim", of(id, "/decisions"), object{"decision": "approve", "digest": digest}).want(t, http.StatusOK, "")

	for _, who := range []string{"agent", "sato", "kim", "auditor", "oper"} {
		r.post(who, "/v1/removed-approvers", object{"person": "kim@agency.example", "reason": "left the agency"}).want(t, http.StatusForbidden, "forbidden")
	}
	removed := r.post("admin", "/v1/removed-approvers", object{"person": "Kim@agency.example", "reason": "left the agency"})
	removed.want(t, http.StatusOK, "")
	if removed.at("lost") != float64(1) || removed.text("removal", "reason") != "left the agency" {
		t.Errorf("got %s, want one change that lost an approval", removed.raw)
	}
	all := r.get("auditor", "/v1/removed-approvers")
	all.want(t, http.StatusOK, "")
	if items, _ := all.at("items").([]any); len(items) != 1 {
		t.Errorf("got %s, want one removal", all.raw)
	}
	shown := r.get("auditor", of(id, "?response_format=detailed"))
	if votes, _ := shown.at("change", "approval", "votes").([]any); len(votes) != 1 || votes[0].(map[string]any)["removed"] != true {
		t.Errorf("got %s, want the vote that counts no more", shown.raw)
	}
	refused := r.post("agent", of(id, "/apply"), nil)
	refused.want(t, http.StatusConflict, "approval_required")
	if refused.text("next_tool") != "approval_request" || refused.text("change", "status") != "needs_approval" {
		t.Errorf("got %s, want to be told to ask again", refused.raw)
	}
	r.post("agent", of(id, "/approval-request"), object{"justification": "please"}).want(t, http.StatusOK, "")
	again := r.post("kim", of(id, "/decisions"), object{"decision": "approve", "digest": digest})
	again.want(t, http.StatusForbidden, "forbidden")
	if again.text("data", "removed", "reason") != "left the agency" {
		t.Errorf("got %s, want why not", again.raw)
	}

	restore := "/v1/removed-approvers?" + url.Values{"person": {"kim@agency.example"}, "reason": {"they came back"}}.Encode()
	r.do(ask{method: http.MethodDelete, path: restore, as: "oper"}).want(t, http.StatusForbidden, "forbidden")
	r.do(ask{method: http.MethodDelete, path: restore, as: "admin"}).want(t, http.StatusOK, "")
	r.do(ask{method: http.MethodDelete, path: restore, as: "admin"}).want(t, http.StatusNotFound, "not_found")
	r.do(ask{method: http.MethodDelete, path: "/v1/removed-approvers", as: "admin"}).want(t, http.StatusBadRequest, "invalid_input")
	r.post("kim", of(id, "/decisions"), object{"decision": "approve", "digest": digest}).want(t, http.StatusOK, "")
	r.post("agent", of(id, "/apply"), nil).want(t, http.StatusOK, "")
	for _, body := range []object{{"person": "kim"}, {"person": "kim", "reason": "no"}, {"person": "", "reason": "left the agency"}, {"person": "kim", "reason": "left the agency", "tenant": "other"}} {
		r.post("admin", "/v1/removed-approvers", body).want(t, http.StatusBadRequest, "invalid_input")
	}
}
