package api_test

import (
	"net/http"
	"testing"
)

const cappedRules = `
version: 1
zone: Asia/Tokyo
default: {require: [{any_of: [ads-approvers]}]}
caps:
  - {name: tenant_day, actions: [budget_change], field: daily_budget, per: tenant, window: day, limit: {JPY: 10000}}
rules:
  - {name: small, when: after.daily_budget.jpy < jpy(12000), then: allow}
`

func TestAnApproverSeesWhatACapLeaves(t *testing.T) {
	t.Parallel()
	r := newRig(t, withRules(cappedRules))
	small := r.prepared(raise(0, 11000))
	r.post("agent", of(small, "/apply"), nil).want(t, http.StatusOK, "")
	r.prepared(raise(1, 11500))
	waiting, other := r.prepared(raise(2, 14000)), r.prepared(raise(3, 13000))
	for _, id := range []string{waiting, other} {
		r.post("agent", of(id, "/approval-request"), object{"justification": "please"}).want(t, http.StatusOK, "")
	}
	for name, got := range map[string]any{
		"in detail": r.get("kim", of(waiting, "?response_format=detailed")).at("change", "exposure"),
		"why":       r.get("kim", of(waiting, "/why")).at("exposure"),
	} {
		all, _ := got.([]any)
		if len(all) != 1 {
			t.Fatalf("%s: got %v, want one cap", name, got)
		}
		e := all[0].(map[string]any)
		for field, want := range map[string]string{"limit": "10000", "applied": "1000", "reserved": "1500", "unknown": "0", "pending": "3000", "asked": "4000", "left": "7500"} {
			if v, _ := e[field].(map[string]any); v["amount"] != want || v["currency"] != "JPY" {
				t.Errorf("%s: %s: got %v, want %s", name, field, e[field], want)
			}
		}
		if e["fits"] != true || e["cap"] != "tenant_day" {
			t.Errorf("%s: got %v, want that it fits", name, e)
		}
	}
	if got := r.get("kim", of(waiting, "")).at("change", "exposure"); got != nil {
		t.Errorf("concise: got %v, want nothing of it", got)
	}
}
