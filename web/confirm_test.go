package web_test

import (
	"net/http"
	"testing"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/target"
)

func ruled(then string) func(*rig) {
	return func(r *rig) {
		r.rules = `version: 1
default:
  require: [{any_of: [ads-approvers], count: 1}]
  message: {en: A person must agree., ja: 承認が必要です。}
rules:
  - name: own
    when: change.daily_budget <= percent(100)
    then: ` + then + `
    message: {en: A rule of its own., ja: 独自のルール。}
`
	}
}

func TestThePersonWhoAskedConfirms(t *testing.T) {
	t.Parallel()
	r := newRig(t, ruled("confirm"))
	id := r.pending(target.PlainJPY(0))
	at := "/changes/" + id.String()
	r.as("kim").get(at+"/review").want(http.StatusOK, "Only sato@agency.example, whom this was asked by or for, can confirm it.").wantNone("form.decide")
	sato := r.as("sato")
	p := sato.get(at+"/review?lang=en").want(http.StatusOK, "the confirmation of sato@agency.example")
	p.wantNone("button[value=approve], button[value=reject]")
	sato.submit(p, "form.decide", "reason", "").want(http.StatusUnprocessableEntity) // no button was pressed
	digest, _ := p.Find("form.decide input[name=digest]").Attr("value")
	sato.post(at+"/decision?lang=en", "digest", digest, "decision", "confirm").want(http.StatusOK, "That is no vote.")
	if c := r.status(id); c.Status != commit.StatusApproved || len(c.Preview.Votes) != 0 || c.Preview.Confirmed == nil {
		t.Errorf("got %s, %v, want approved by a confirmation", c.Status, c.Preview.Votes)
	}
	r.apply(id, commit.StatusApplied)
}

func TestApprovingAtHighRiskAsksForTheNameAndAFreshSignIn(t *testing.T) {
	t.Parallel()
	r := newRig(t, ruled("{require: [{any_of: [ads-approvers], count: 1}]}\n    risk: high"))
	id := r.pending(target.PlainJPY(0))
	at := "/changes/" + id.String()
	kim := r.as("kim") // of whose sign-in the time is not known
	p := kim.get(at+"/review").want(http.StatusOK, "Write the name exactly as it is shown:")
	name := p.text("#typed-hint bdi")
	digest, _ := p.Find("form.decide input[name=digest]").Attr("value")
	old := kim.post(at+"/decision", "digest", digest, "decision", "approve", "typed", name, "reason", "kept")
	if old.want(http.StatusUnauthorized, "a sign-in within the last 15 minutes"); old.text("#reason") != "kept" {
		t.Errorf("got %q in the form, want what was typed", old.text("#reason"))
	}
	fresh := r.as("kim-now")
	fresh.post(at+"/decision", "digest", digest, "decision", "approve", "typed", name+"?").
		want(http.StatusUnprocessableEntity, "write out the name of the target as it is shown: "+name)
	if c := r.status(id); c.Status != commit.StatusPending {
		t.Fatalf("got %s, want pending still", c.Status)
	}
	fresh.post(at+"/decision", "digest", digest, "decision", "approve", "typed", " "+name)
	if c := r.status(id); c.Status != commit.StatusApproved {
		t.Errorf("got %s, want approved", c.Status)
	}
}
