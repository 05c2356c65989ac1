package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/cutonce/cutonce/internal/devissuer"
	"github.com/cutonce/cutonce/test/fleet"
)

// byID tries every route and tool that takes an ID, and wants none to know it.
func (w *world) byID(who claims, id, digest string) {
	token := w.token(who)
	for _, route := range [][3]string{
		{"GET", "", ""}, {"GET", "/why", ""}, {"GET", "?response_format=detailed", ""}, {"POST", "/approval-request", `{"justification":"please"}`},
		{"POST", "/decisions", `{"decision":"approve","digest":"` + digest + `"}`}, {"POST", "/decisions", `{"decision":"reject","digest":"` + digest + `","reason":"no"}`},
		{"POST", "/apply", ""}, {"POST", "/cancel", `{"reason":"no"}`}, {"POST", "/undo", `{"reason":"no"}`}, {"POST", "/probe", ""},
		{"POST", "/reveal", ""},
		{"POST", "/resolve", `{"outcome":"applied","reason":"seen there","evidence":"seen there"}`},
	} {
		r := w.send(route[0], "/v1/previews/"+id+route[1], route[2], bearer(token)...)
		want(w, route[0]+" "+route[1]+" ("+r.text+")", r.status, http.StatusNotFound, http.StatusForbidden)
		if strings.Contains(r.text, digest) || strings.Contains(r.text, "campaign") {
			w.fail("%s tells of the change: %s", route[1], r.text)
		}
	}
	for tool, args := range map[string]map[string]any{
		"change_status": {"preview_id": id}, "change_cancel": {"preview_id": id, "reason": "no"},
		"approval_request": {"preview_id": id, "justification": "please"}, "budget_change_apply": {"preview_id": id},
	} {
		r := w.mcp(token, tool, args)
		if r.status == http.StatusOK && !strings.Contains(r.text, "not_found") {
			w.fail("%s answers %s", tool, r.text)
		}
	}
	for _, list := range []string{"/v1/previews?limit=50", "/v1/outcomes", "/v1/approvals"} {
		if r := w.send("GET", list, "", bearer(token)...); strings.Contains(r.text, id) {
			w.fail("%s lists it", list)
		}
	}
}

func otherTenant(w *world) {
	pending, ready := w.pending(), w.ready()
	digest := w.digest(pending.PreviewID)
	approver := w.partner.person("kim@agency.example", "Kim").with("groups", []string{"ads-approvers"}).with("roles", []string{"approver"})
	w.quiet(func() {
		for _, who := range []claims{
			w.stranger(), approver, approver.with("roles", []string{"operator", "admin", "auditor"}), w.agent().with("tenant", neighbour),
			w.kim().with("tenant", neighbour).with("roles", []string{"approver", "operator", "admin", "auditor"}),
		} {
			w.byID(who, pending.PreviewID, digest)
			w.byID(who, ready.PreviewID, digest)
		}
		b := w.browser()
		b.signsIn(kimThere().with("tenant", neighbour).with("roles", []string{"approver", "operator", "admin", "auditor"}))
		for _, page := range []string{"", "/review", "/document"} {
			want(w, "the page"+page, b.get("/changes/"+pending.PreviewID+page).status, http.StatusNotFound)
		}
		want(w, "a decision", b.post("/changes/"+pending.PreviewID+"/decision", yes(digest)).status, http.StatusNotFound)
		for _, page := range []string{"/", "/history", "/outcomes"} {
			if strings.Contains(b.get(page).text, pending.PreviewID) {
				w.fail("%s lists another tenant's change", page)
			}
		}
	})
	w.approves(pending.PreviewID)
	w.applies(ready.PreviewID)
}

func otherAgents(w *world) {
	pending, ready := w.pending(), w.ready()
	digest := w.digest(pending.PreviewID)
	w.quiet(func() {
		for _, who := range []claims{
			w.otherAgent(), w.otherAgent().with("act", claims{"sub": "another-bot"}), w.agent().with("sub", bot).without("act"),
			w.otherAgent().with("groups", []string{"ads-approvers"}).with("roles", []string{"approver", "operator", "admin"}),
		} {
			w.byID(who, pending.PreviewID, digest)
			w.byID(who, ready.PreviewID, digest)
		}
	})
	w.approves(pending.PreviewID)
	w.applies(ready.PreviewID)
}

func enumeration(w *world) {
	ready := w.ready()
	unknown := "pv_" + strings.Repeat("0", len(ready.PreviewID)-3)
	if !strings.HasPrefix(ready.PreviewID, "pv_") {
		unknown = uuid.NewString()
	}
	w.quiet(func() {
		for _, who := range []claims{w.stranger(), w.otherAgent()} {
			token := w.token(who)
			for _, suffix := range []string{"", "/why"} {
				w.alike(w.send("GET", "/v1/previews/"+ready.PreviewID+suffix, "", bearer(token)...), w.send("GET", "/v1/previews/"+unknown+suffix, "", bearer(token)...))
			}
			for _, suffix := range []string{"/apply", "/cancel", "/probe", "/reveal"} {
				w.alike(w.send("POST", "/v1/previews/"+ready.PreviewID+suffix, "", bearer(token)...), w.send("POST", "/v1/previews/"+unknown+suffix, "", bearer(token)...))
			}
		}
	})
}

// alike wants two answers that differ in nothing but the request's name and the address asked for.
func (w *world) alike(a, b reply) {
	plain := func(r reply) string {
		var members map[string]any
		w.must(json.Unmarshal([]byte(r.text), &members))
		for _, name := range []string{"request_id", "instance"} {
			delete(members, name)
		}
		return fmt.Sprint(r.status, members)
	}
	want(w, "the answer for a foreign ID", plain(a), plain(b))
}

func ownApproval(w *world) {
	sato := func(subject string) claims {
		return w.kim().with("sub", subject)
	}
	selves := []claims{sato("sato@agency.example"), sato("SATO@AGENCY.EXAMPLE"), sato("Sato@Agency.example"), sato("\u017fato@agency.example")}
	ofAgent := w.pending()
	w.refusesDecisions(ofAgent.PreviewID, selves...)
	w.quiet(func() {
		digest := w.digest(ofAgent.PreviewID)
		for _, subject := range []string{"sato@agency.example", "SATO@agency.example"} {
			b := w.browser()
			b.signsIn(kimThere().with("sub", subject))
			r := b.post("/changes/"+ofAgent.PreviewID+"/decision", yes(digest))
			want(w, "the requester at the console", r.status, http.StatusForbidden)
		}
	})
	w.approves(ofAgent.PreviewID)

	owned := w.requested(w.agent().with("sub", bot).without("act").with("owner", "sato@agency.example"))
	w.refusesDecisionsOn(owned, selves...)
	own := w.requested(w.home.person("sato@agency.example", "Sato").with("scope", "ads:read ads:budget"))
	w.refusesDecisionsOn(own, selves...)
	token, err := w.f.Issuer.Token("agent", devissuer.WithScopes("ads:read", "ads:budget"))
	w.must(err)
	elsewhere := w.requestedWith(token) // known to another issuer
	w.refusesDecisionsOn(elsewhere, selves...)
	r, err := w.caller(w.kim()).Decide(w.ctx, elsewhere.id, "approve", elsewhere.digest)
	w.must(err)
	want(w, "somebody else approves", r.Status, "approved")
}

// asked is a change that waits for approval.
type asked struct{ id, digest string }

func (w *world) requested(who claims) asked { return w.requestedWith(w.token(who)) }

func (w *world) requestedWith(token string) asked {
	caller := fleet.Caller{URL: w.p.URL, Token: token}
	campaign, err := w.f.Campaign(w.ctx)
	w.must(err)
	r, err := caller.Prepare(w.ctx, campaign, large, "")
	w.must(err)
	want(w, "preparing ("+r.Message+")", r.Status, "needs_approval")
	id := r.PreviewID
	r, err = caller.Request(w.ctx, id)
	w.must(err)
	want(w, "asking ("+r.Message+")", r.Status, "pending")
	r, err = caller.Status(w.ctx, id, 0)
	w.must(err)
	return asked{id, r.Change.Digest}
}

func (w *world) refusesDecisions(id string, by ...claims) {
	w.refusesDecisionsOn(asked{id, w.digest(id)}, by...)
}

// refusesDecisionsOn lets each try to approve.
func (w *world) refusesDecisionsOn(a asked, by ...claims) {
	w.quiet(func() {
		for _, who := range by {
			r := w.send("POST", "/v1/previews/"+a.id+"/decisions", `{"decision":"approve","digest":"`+a.digest+`"}`, bearer(w.token(who))...)
			want(w, fmt.Sprintf("an approval by %v (%s)", who, r.text), r.status, http.StatusForbidden, http.StatusUnauthorized, http.StatusNotFound)
		}
	})
}

func agentApproves(w *world) {
	pending := w.pending()
	kim := w.kim()
	digest := w.digest(pending.PreviewID)
	w.refusesDecisions(pending.PreviewID,
		w.agent().with("groups", []string{"ads-approvers"}).with("roles", []string{"approver"}),
		kim.with("act", claims{"sub": bot}), kim.with("act", nil), kim.with("act", claims{}), kim.with("act", "bot"), kim.with("act", []any{}),
		kim.with("act", claims{"sub": "kim@agency.example"}), kim.with("client_id", bot), kim.with("client_id", "registered-itself"),
		kim.without("client_id"), kim.with("client_id", ""), kim.with("client_id", []string{console}), kim.with("client_id", "Console"),
		kim.with("sub", console), kim.with("sub", console+"@clients"), kim.with("gty", "client-credentials"), kim.with("idtyp", "app"),
		kim.with("preferred_username", "service-account-console"),
	)
	w.quiet(func() {
		token := w.token(w.agent().with("groups", []string{"ads-approvers"}))
		for _, tool := range []string{"approval_decide", "approve", "approval_approve", "decide", "change_resolve", "change_freeze"} {
			r := w.mcp(token, tool, map[string]any{"preview_id": pending.PreviewID, "decision": "approve", "digest": digest})
			if !strings.Contains(r.text, `"error"`) {
				w.fail("the tool %s answers %s", tool, r.text)
			}
		}
	})
	w.approves(pending.PreviewID)
}

func withoutGroup(w *world) {
	pending := w.pending()
	kim := w.kim()
	w.refusesDecisions(pending.PreviewID,
		kim.without("groups"), kim.with("groups", []string{}), kim.with("groups", []string{"ADS-APPROVERS"}), kim.with("groups", []string{"ads-approvers-2"}),
		kim.with("groups", []string{"ads-approvers "}), kim.with("groups", []string{"ads"}), kim.with("groups", []string{"release-managers"}),
		kim.with("groups", []string{"ads-approvers\u200b"}), kim.with("groups", "ads-approvers,x"), kim.with("groups", claims{"ads-approvers": true}),
		kim.without("groups").with("roles", []string{"approver", "operator", "admin", "auditor"}), kim.without("groups").with("scope", "ads-approvers"),
		kim.without("groups").with("Groups", []string{"ads-approvers"}),
	)
	w.approves(pending.PreviewID)
}

func staleDigest(w *world) {
	pending, other := w.pending(), w.pending()
	right, wrong := w.digest(pending.PreviewID), w.digest(other.PreviewID)
	b := w.browser()
	b.signsIn(kimThere())
	w.quiet(func() {
		token := w.token(w.kim())
		for _, digest := range []string{wrong, "", "sha256:" + strings.Repeat("0", 64), right[:len(right)-1], right + "0", right + "\n", "*", "null"} {
			body, err := json.Marshal(map[string]any{"decision": "approve", "digest": digest})
			w.must(err)
			r := w.send("POST", "/v1/previews/"+pending.PreviewID+"/decisions", string(body), bearer(token)...)
			want(w, "the digest "+digest+" ("+r.text+")", r.status, http.StatusConflict, http.StatusBadRequest)
		}
		r := w.send("POST", "/v1/previews/"+pending.PreviewID+"/decisions", `{"decision":"approve"}`, bearer(token)...)
		want(w, "no digest", r.status, http.StatusBadRequest)
		for _, digest := range []string{wrong, "", "x"} {
			r = b.post("/changes/"+pending.PreviewID+"/decision", yes(digest))
			want(w, "the digest "+digest+" at the console", r.status, http.StatusConflict, http.StatusBadRequest)
		}
	})
	b.decides(pending.PreviewID, right)
	w.approves(other.PreviewID)
}
