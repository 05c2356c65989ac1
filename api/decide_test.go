package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/internal/devissuer"
)

// ownRules is a policy of one rule.
func ownRules(then string) string {
	return `version: 1
default:
  require: [{any_of: [ads-approvers], count: 1}]
  message: {en: A person must agree., ja: 承認が必要です。}
rules:
  - name: own
    when: change.daily_budget <= percent(50)
    then: ` + then + `
    message: {en: A rule of its own., ja: 独自のルール。}
`
}

func TestTheRequesterConfirmsOverHTTP(t *testing.T) {
	t.Parallel()
	r := newRig(t, withRules(ownRules("confirm")))
	id := r.prepared(raise(0, 11000))
	asked := r.post("agent", of(id, "/approval-request"), nil)
	if asked.want(t, http.StatusOK, ""); asked.text("status") != "pending" || !strings.Contains(asked.text("message"), "sato@agency.example") {
		t.Errorf("got %s, want it to wait for sato", asked.raw)
	}
	digest := r.digestOf("sato", id)
	for _, who := range []string{"agent", "kim", "admin"} {
		r.post(who, of(id, "/decisions"), decision("confirm", digest, "")).want(t, http.StatusForbidden, "forbidden")
		r.post(who, of(id, "/decisions"), decision("approve", digest, "")).want(t, http.StatusForbidden, "forbidden")
	}
	// Nothing in a body makes a rule of its own.
	for _, name := range []string{"policy", "approvals", "approved_by", "person", "groups"} {
		body := decision("confirm", digest, "")
		body[name] = "sato"
		r.post("sato", of(id, "/decisions"), body).want(t, http.StatusBadRequest, "invalid_input")
		input := raise(1, 11000)
		input[name] = "sato"
		r.post("agent", previewsPath, input).want(t, http.StatusBadRequest, "invalid_input")
		r.post("agent", of(id, "/apply"), object{name: "sato"}).want(t, http.StatusBadRequest, "invalid_input")
		r.post("agent", of(id, "/approval-request"), object{name: "sato"}).want(t, http.StatusBadRequest, "invalid_input")
	}
	said := r.post("sato", of(id, "/decisions"), decision("confirm", digest, ""))
	said.want(t, http.StatusOK, "")
	if votes, _ := said.at("change", "approval", "votes").([]any); said.text("status") != "approved" || len(votes) != 0 ||
		said.text("change", "approval", "confirmed", "name") == "" {
		t.Errorf("got %s, want approved by a confirmation and no vote", said.raw)
	}
	r.post("agent", of(id, "/apply"), nil).want(t, http.StatusOK, "")
}

func TestApprovingAtHighRiskNeedsAFreshSignInAndTheName(t *testing.T) {
	t.Parallel()
	r := newRig(t, withRules(ownRules("{require: [{any_of: [ads-approvers], count: 1}]}\n    risk: high")))
	id := r.prepared(raise(0, 11000))
	r.post("agent", of(id, "/approval-request"), nil).want(t, http.StatusOK, "")
	shown := r.get("kim", of(id, "?response_format=detailed"))
	digest, name := shown.text("change", "digest"), shown.text("change", "target", "name")
	if shown.text("change", "ruling", "risk") != "high" {
		t.Errorf("got %s, want the risk said", shown.raw)
	}
	body := decision("approve", digest, "")
	body["typed"] = name
	stale := r.token("kim", devissuer.WithLife(time.Now().Add(-approvals.DefaultFresh-time.Minute), time.Hour))
	late := r.do(ask{method: "POST", path: of(id, "/decisions"), token: stale, body: body})
	late.want(t, http.StatusUnauthorized, "unauthenticated")
	if h := late.header.Get("WWW-Authenticate"); !strings.Contains(h, `error="insufficient_user_authentication"`) || !strings.Contains(h, "max_age=900") {
		t.Errorf("got the challenge %q, want RFC 9470's", h)
	}
	fresh := r.token("kim", devissuer.WithLife(time.Now().Add(-time.Minute), time.Hour))
	for _, typed := range []string{"", "another campaign", name + "x"} {
		body["typed"] = typed
		r.do(ask{method: "POST", path: of(id, "/decisions"), token: fresh, body: body}).want(t, http.StatusBadRequest, "invalid_input")
	}
	body["typed"] = name
	said := r.do(ask{method: "POST", path: of(id, "/decisions"), token: fresh, body: body})
	if said.want(t, http.StatusOK, ""); said.text("status") != "approved" {
		t.Errorf("got %s, want approved", said.raw)
	}
}
