package web_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/target"
)

func TestOperatorsFreezeAndLift(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.prepare(target.PlainJPY(0), "10100", "a test")
	oper := r.as("oper")
	p := oper.get("/freeze").want(http.StatusOK, "Nothing is frozen.")
	p.wantNone("option[value='everything:']") // that is for admins
	p = oper.submit(p, "form.freeze", "what", "action:budget_change", "for", "4h", "reason", "The platform bills <b>twice</b>.")
	p.want(http.StatusOK, "The action budget_change", "<b>twice</b>", "What it stops", "What goes on")
	if got := p.text(".frozen"); !strings.Contains(got, "oper@agency.example has frozen the action budget_change: The platform bills <b>twice</b>. Until 2") {
		t.Errorf("on top: got %q", got)
	}
	if p.url.Path != "/freeze" {
		t.Errorf("got %s, want a page that a reload does not repeat", p.url)
	}
	if _, err := r.commits.Apply(t.Context(), bot, "budget_change", id, 0); fault.CodeOf(err) != fault.Frozen {
		t.Errorf("got %v, want frozen", err)
	}
	// Whoever is signed in sees it at the top of every page.
	for _, path := range []string{"/", "/outcomes", "/history", "/changes/" + id.String()} {
		if got := r.as("kim").get(path); !strings.Contains(got.text(".frozen"), "has frozen the action budget_change") {
			t.Errorf("%s: got %q at the top", path, got.text(".frozen"))
		}
	}
	oper.submit(oper.get("/freeze"), "form.lift", "reason", "They have mended it.").want(http.StatusOK, "Nothing is frozen.").wantNone(".frozen")
	r.apply(id, commit.StatusApplied)
}

func TestOthersSeeFreezesAndCannotMoveThem(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	admin := r.as("admin")
	admin.submit(admin.get("/freeze"), "form.freeze", "what", "everything:", "for", "lifted", "reason", "Until we know more.").
		want(http.StatusOK, "All changes of the whole service", "Until we know more.", "Until it is lifted")
	for _, who := range []string{"sato", "kim", "auditor", "nobody"} {
		b := r.as(who)
		b.get("/freeze").want(http.StatusOK).wantNone("main form")
		b.post("/freeze", "what", "tenant:", "for", "1h", "reason", "Because I say so.").want(http.StatusForbidden)
		b.post("/freeze/lift", "what", "everything:").want(http.StatusForbidden)
	}
	oper := r.as("oper")
	oper.get("/freeze").wantNone("form.lift")
	oper.post("/freeze/lift", "what", "everything:").want(http.StatusForbidden)
	for name, fields := range map[string][]string{
		"no reason": {"what", "tenant:", "for", "1h"}, "no such action": {"what", "action:budget_chnage", "for", "1h", "reason", "misspelt"},
		"no length": {"what", "tenant:", "reason", "a reason"}, "nothing": {"for", "1h", "reason", "a reason"},
	} {
		if p := oper.post("/freeze", fields...); p.status != http.StatusUnprocessableEntity {
			t.Errorf("%s: got status %d, want 422", name, p.status)
		}
	}
	r.as("rival").get("/freeze").want(http.StatusOK, "Until we know more.") // everything is every tenant's
}
