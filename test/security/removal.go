package main

import (
	"net/http"
	"strings"
)

// afterRemoval is an approver who was removed and goes on, and a change that they had approved.
func afterRemoval(w *world) {
	w.apart()
	before, waiting := w.pending(), w.pending()
	w.approves(before.PreviewID)
	b := w.browser()
	b.signsIn(kimThere())
	admin := func(name string) string {
		return w.token(w.home.person(name, name).with("roles", []string{"admin", "approver"}).with("groups", []string{"ads-approvers"}))
	}
	remove := func(by, person string) {
		r := w.send("POST", "/v1/removed-approvers", `{"person":"`+person+`","reason":"left the agency"}`, bearer(admin(by))...)
		want(w, "removing ("+r.text+")", r.status, http.StatusOK)
	}
	remove("lee@agency.example", "kim@agency.example")
	remove("lee@agency.example", "ito@agency.example")
	kim := func(subject string) claims { return w.kim().with("sub", subject) }
	w.refusesDecisions(waiting.PreviewID, kim("kim@agency.example"), kim("KIM@Agency.example"), kim("\u212aim@agency.example"),
		kim("kim@agency.example").with("groups", []string{"ads-approvers", "finance"}).with("roles", []string{"approver", "operator", "admin"}),
		w.home.person("ito@agency.example", "Ito").with("groups", []string{"ads-approvers"}).with("roles", []string{"admin"}))
	w.quiet(func() {
		r := b.post("/changes/"+waiting.PreviewID+"/decision", yes(w.digest(waiting.PreviewID)))
		want(w, "a session from before", r.status, http.StatusForbidden)
		for path, by := range map[string]string{
			"/v1/removed-approvers?person=kim@agency.example":               w.token(w.kim()),
			"/v1/removed-approvers?person=ito@agency.example":               admin("ito@agency.example"),
			"/v1/removed-approvers?person=ITO@agency.example":               admin("ito@agency.example"),
			"/v1/removed-approvers?person=elsewhere%23ito@agency.example":   admin("Ito@agency.example"),
			"/v1/removed-approvers?person=kim@agency.example&reason=please": w.token(w.agent().with("roles", []string{"admin"})),
		} {
			r := w.send("DELETE", path, "", bearer(by)...)
			want(w, "restoring by "+path+" ("+r.text+")", r.status, http.StatusForbidden)
		}
	})
	sent := w.picture().Target
	r, err := w.caller(w.agent()).Apply(w.ctx, before.PreviewID)
	w.must(err)
	if r.Code != "approval_required" || !strings.Contains(r.Message, "kim@agency.example") {
		w.fail("applying what a removed approver has approved: got %q %s", r.Code, r.Message)
	}
	want(w, "what was sent", w.picture().Target, sent)
	w.approvedBy(w.home.person("park@agency.example", "Park").with("groups", []string{"ads-approvers"}), waiting.PreviewID)
	w.applies(waiting.PreviewID)
}

// approvedBy is a decision that counts.
func (w *world) approvedBy(who claims, id string) {
	r, err := w.caller(who).Decide(w.ctx, id, "approve", w.digest(id))
	w.must(err)
	want(w, "the honest approval ("+r.Message+")", r.Status, "approved")
}
