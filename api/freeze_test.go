package api_test

import (
	"net/http"
	"net/url"
	"testing"
)

func TestAFreezeIsSetSeenAndLiftedOverHTTP(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.prepared(raise(0, 10100)) // the policy approves it
	frozen := r.post("oper", "/v1/freezes", object{
		"kind": "action", "name": "budget_change", "reason": "The platform bills twice.", "for_s": 3600,
	})
	frozen.want(t, http.StatusOK, "")
	if frozen.text("freeze", "until") == "" || frozen.text("freeze", "by") == "" {
		t.Errorf("got %s, want by whom and until when", frozen.raw)
	}
	refused := r.post("agent", of(id, "/apply"), nil)
	refused.want(t, http.StatusLocked, "frozen")
	if got := refused.text("data", "freeze", "reason"); got != "The platform bills twice." {
		t.Errorf("got %s, want the reason", refused.raw)
	}
	all := r.get("kim", "/v1/freezes")
	all.want(t, http.StatusOK, "")
	if items, _ := all.at("items").([]any); len(items) != 1 {
		t.Errorf("got %s, want one freeze", all.raw)
	}
	lift := "/v1/freezes?" + url.Values{"kind": {"action"}, "name": {"budget_change"}, "reason": {"They have mended it."}}.Encode()
	r.do(ask{method: http.MethodDelete, path: lift, as: "kim"}).want(t, http.StatusForbidden, "forbidden")
	r.do(ask{method: http.MethodDelete, path: lift, as: "oper"}).want(t, http.StatusOK, "")
	r.do(ask{method: http.MethodDelete, path: lift, as: "oper"}).want(t, http.StatusNotFound, "not_found")
	r.post("agent", of(id, "/apply"), nil).want(t, http.StatusOK, "")
}

func TestWhoMayFreezeOverHTTP(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	everything := object{"kind": "everything", "reason": "Until we know more."}
	for _, who := range []string{"agent", "sato", "kim", "auditor", "oper"} {
		r.post(who, "/v1/freezes", everything).want(t, http.StatusForbidden, "forbidden")
	}
	r.get("agent", "/v1/freezes").want(t, http.StatusForbidden, "forbidden")
	for _, body := range []object{
		{"kind": "action", "name": "budget_chnage", "reason": "misspelt"}, {"kind": "tenant", "reason": "no"},
		{"kind": "tenant", "tenant": "other", "reason": "another's"},
		{"kind": "everything", "name": "acme", "reason": "with a name"},
	} {
		r.post("admin", "/v1/freezes", body).want(t, http.StatusBadRequest, "invalid_input")
	}
	r.post("admin", "/v1/freezes", object{"kind": "tenant", "reason": "a second is too short", "for_s": 1}).want(t, http.StatusBadRequest, "invalid_number")
	r.do(ask{method: http.MethodDelete, path: "/v1/freezes", as: "oper"}).want(t, http.StatusBadRequest, "invalid_input")
	r.post("admin", "/v1/freezes", everything).want(t, http.StatusOK, "")
}
