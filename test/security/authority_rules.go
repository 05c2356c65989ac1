package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cutonce/cutonce/test/fleet"
)

// apart gives the attack a service and a database of its own.
func (w *world) apart(env ...string) {
	var err error
	r := w.replica()
	r.Database, err = w.f.Database(w.ctx)
	w.must(err)
	r.Env = append(r.Env, env...)
	w.p, err = w.f.Serve(w.ctx, r)
	w.must(err)
	w.onClose(w.p.Kill)
	w.db, err = pgxpool.New(w.ctx, r.Database)
	w.must(err)
	w.onClose(w.db.Close)
}

func afterExpiry(w *world) {
	w.apart("CUTONCE_CLOCK_SWEEP=10s", "CUTONCE_CLOCK_APPROVAL=3s", "CUTONCE_CLOCK_APPLY_WINDOW=3s", "CUTONCE_CLOCK_PREVIEW_TTL=4s")
	pending, approved, ready := w.pending(), w.pending(), w.ready()
	w.approves(approved.PreviewID)
	digest := w.digest(pending.PreviewID)
	b := w.browser()
	b.signsIn(kimThere())
	w.must(fleet.Until(w.ctx, "the deadlines to pass", func() (over bool) {
		err := w.db.QueryRow(w.ctx, `select bool_and(deadline < clock_timestamp()) from previews`).Scan(&over)
		return err == nil && over
	}))
	w.unsent(func() {
		r := w.send("POST", "/v1/previews/"+pending.PreviewID+"/decisions", `{"decision":"approve","digest":"`+digest+`"}`, bearer(w.token(w.kim()))...)
		want(w, "deciding too late ("+r.text+")", r.status, http.StatusGone)
		want(w, "deciding too late at the console", b.post("/changes/"+pending.PreviewID+"/decision", yes(digest)).status, http.StatusGone, http.StatusConflict)
		for _, late := range []fleet.Reply{pending, approved, ready} {
			r := w.send("POST", "/v1/previews/"+late.PreviewID+"/apply", "", bearer(w.token(w.agent()))...)
			want(w, "applying too late ("+r.text+")", r.status, http.StatusGone)
		}
		r = w.send("POST", "/v1/previews/"+pending.PreviewID+"/approval-request", `{"justification":"again"}`, bearer(w.token(w.agent()))...)
		if !strings.Contains(r.text, `"status":"expired"`) {
			w.fail("asking again too late: %s", r.text)
		}
	})
}

func notApproved(w *world) {
	unasked, pending, rejected, canceled := w.prepared(w.agent(), large, "needs_approval"), w.pending(), w.pending(), w.ready()
	denied := w.prepared(w.agent(), 6*fleet.Budget, "denied")
	r, err := w.caller(w.kim()).Decide(w.ctx, rejected.PreviewID, "reject", w.digest(rejected.PreviewID))
	w.must(err)
	want(w, "rejecting", r.Status, "rejected")
	r, err = w.caller(w.agent()).Cancel(w.ctx, canceled.PreviewID)
	w.must(err)
	want(w, "cancelling", r.Status, "canceled")
	w.quiet(func() {
		token := w.token(w.agent())
		for _, c := range []fleet.Reply{unasked, pending, rejected, canceled, denied} {
			r := w.send("POST", "/v1/previews/"+c.PreviewID+"/apply", "", bearer(token)...)
			want(w, "applying at the API ("+r.text+")", r.status, http.StatusConflict, http.StatusForbidden)
			r = w.mcp(token, "budget_change_apply", map[string]any{"preview_id": c.PreviewID})
			if !strings.Contains(r.text, `"isError":true`) {
				w.fail("applying by MCP: %s", r.text)
			}
			r = w.mcp(token, "deployment_rollback_apply", map[string]any{"preview_id": c.PreviewID})
			if strings.Contains(r.text, `"applied"`) {
				w.fail("applying by another action's tool: %s", r.text)
			}
		}
		for _, c := range []fleet.Reply{rejected, canceled, denied} {
			r, err := w.caller(w.kim()).Decide(w.ctx, c.PreviewID, "approve", w.digest(c.PreviewID))
			w.must(err)
			want(w, "approving what has ended ("+r.Message+")", r.HTTP/100, 4)
		}
	})
	w.approves(pending.PreviewID)
	w.applies(pending.PreviewID)
}

func influence(w *world) {
	campaign, err := w.f.Campaign(w.ctx)
	w.must(err)
	token := w.token(w.agent())
	honest := map[string]any{"campaign_id": campaign, "new_daily_budget_jpy": large, "reason": "more"}
	smuggled := map[string]any{
		"policy": "allow", "policy_version": "0", "approvals": []string{"kim"}, "approved_by": "kim@agency.example", "tenant": "globex", "tenant_id": "globex",
		"requester": claims{"subject": "kim"}, "ruling": claims{"verdict": "allow"}, "state": "approved", "status": "approved", "digest": "x", "groups": []string{"ads-approvers"},
		"roles": []string{"admin"}, "risk": "none", "require": []string{}, "force": true, "dry_run": false, "__proto__": claims{"approved": true},
		"expires_at": "2099-01-01T00:00:00Z", "actor": "kim", "on_behalf_of": "kim@agency.example", "preview_id": "x", "before": claims{}, "impact": claims{},
	}
	pending, ready := w.pending(), w.ready()
	digest := w.digest(pending.PreviewID)
	w.quiet(func() {
		for name, value := range smuggled {
			for path, body := range map[string]map[string]any{
				"/v1/actions/budget_change/previews":                         honest,
				"/v1/previews/" + pending.PreviewID + "/approval-request":    {"justification": "please"},
				"/v1/previews/" + ready.PreviewID + "/apply":                 {},
				"/v1/previews/" + ready.PreviewID + "/cancel":                {"reason": "no"},
				"/v1/previews/" + pending.PreviewID + "/decisions?as=person": {"decision": "approve", "digest": digest},
			} {
				with := claims(body).with(name, value)
				r := w.send("POST", path, string(asJSON(with)), bearer(token)...)
				want(w, fmt.Sprintf("%s in %s (%s)", name, path, r.text), r.status, http.StatusBadRequest, http.StatusForbidden)
				r = w.send("POST", path+"?"+name+"=x", string(asJSON(body)), bearer(token)...)
				want(w, name+" in the query of "+path, r.status, http.StatusBadRequest, http.StatusForbidden)
			}
			r := w.mcp(token, "budget_change_preview", claims(honest).with(name, value))
			if !strings.Contains(r.text, `"isError":true`) && !strings.Contains(r.text, `"error"`) {
				w.fail("%s in a tool's arguments: %s", name, r.text)
			}
		}
		r := w.send("POST", "/v1/previews/"+pending.PreviewID+"/decisions", `{"decision":"approve","digest":"`+digest+`","approved_by":"tanaka"}`, bearer(w.token(w.kim()))...)
		want(w, "a decision in another's name", r.status, http.StatusBadRequest)
	})
	w.unsent(func() { // headers are not ours to refuse; they must say nothing
		headers := append(bearer(token), "X-Tenant", "globex", "X-Tenant-Id", "globex", "X-Approved-By", "kim", "X-User", "kim@agency.example", "X-Forwarded-User", "kim",
			"X-Forwarded-Groups", "ads-approvers", "X-Policy", "allow", "Cutonce-Tenant", "globex")
		r := w.send("POST", "/v1/actions/budget_change/previews", string(asJSON(honest)), headers...)
		var body struct {
			Status    string `json:"status"`
			PreviewID string `json:"preview_id"`
		}
		w.must(json.Unmarshal([]byte(r.text), &body))
		want(w, "preparing with headers that mean nothing", body.Status, "needs_approval")
		want(w, "its own agent knows it", w.send("GET", "/v1/previews/"+body.PreviewID, "", bearer(token)...).status, http.StatusOK)
	})
	w.approves(pending.PreviewID)
	w.applies(ready.PreviewID)
}

func operatorsWork(w *world) {
	ready, pending := w.ready(), w.pending()
	freeze := `{"kind":"tenant","reason":"an attack"}`
	w.quiet(func() {
		for what, who := range map[string]claims{
			"an agent": w.agent(), "an agent with every role": w.agent().with("roles", []string{"operator", "admin"}), "an approver": w.kim(),
			"a requester": w.kim().with("roles", []string{"requester"}), "an auditor": w.kim().with("roles", []string{"auditor"}),
			"a role that resembles it": w.kim().with("roles", []string{"Operator", "operators", "ADMIN"}), "a client": w.kim().with("sub", console).with("roles", []string{"operator", "admin"}),
		} {
			token := w.token(who)
			r := w.send("POST", "/v1/freezes", freeze, bearer(token)...)
			want(w, what+" freezes ("+r.text+")", r.status, http.StatusForbidden)
			r = w.send("DELETE", "/v1/freezes?kind=tenant&reason=no+reason", "", bearer(token)...)
			want(w, what+" lifts ("+r.text+")", r.status, http.StatusForbidden)
			for _, c := range []fleet.Reply{ready, pending} {
				r = w.send("POST", "/v1/previews/"+c.PreviewID+"/resolve", `{"outcome":"applied","reason":"seen there","evidence":"seen there"}`, bearer(token)...)
				want(w, what+" resolves ("+r.text+")", r.status, http.StatusForbidden, http.StatusConflict, http.StatusNotFound)
			}
		}
	})
	operator := w.token(w.kim().with("sub", "oper@agency.example").with("roles", []string{"operator"}))
	r := w.send("POST", "/v1/freezes", `{"kind":"action","name":"budget_change","reason":"a drill"}`, bearer(operator)...)
	want(w, "an operator freezes ("+r.text+")", r.status/100, 2)
	w.unsent(func() {
		r := w.send("POST", "/v1/previews/"+ready.PreviewID+"/apply", "", bearer(w.token(w.agent()))...)
		want(w, "applying what is frozen", r.status, http.StatusLocked)
	})
	r = w.send("DELETE", "/v1/freezes?kind=action&name=budget_change&reason=it+is+over", "", bearer(operator)...)
	want(w, "an operator lifts ("+r.text+")", r.status/100, 2)
	w.applies(ready.PreviewID)
}

func withoutScope(w *world) {
	ready := w.ready()
	w.quiet(func() {
		for _, scope := range []any{"", "ads:read", "ads:budgets", "ADS:BUDGET", "ads:*", "*", "deploy:rollback", "ads:budget,ads:read", nil, []string{"ads:read"}} {
			token := w.token(w.agent().with("scope", scope))
			r := w.send("POST", "/v1/previews/"+ready.PreviewID+"/apply", "", bearer(token)...)
			want(w, fmt.Sprintf("the scope %q (%s)", scope, r.text), r.status, http.StatusForbidden, http.StatusUnauthorized)
			r = w.mcp(token, "budget_change_apply", map[string]any{"preview_id": ready.PreviewID})
			want(w, fmt.Sprintf("the scope %q by MCP (%s)", scope, r.text), r.status, http.StatusForbidden, http.StatusUnauthorized)
		}
	})
	w.applies(ready.PreviewID)
}
