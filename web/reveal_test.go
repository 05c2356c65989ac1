package web_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/adbudget"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/target"
	"github.com/cutonce/cutonce/preview"
)

const (
	wasContact = "kato-the-old@billing.example"
	isContact  = "@billing.example"
)

// discreet is the ad platform's connector with people's addresses among its fields: who is billed changes with the budget, and who is
// liable stays.
type discreet struct{ *adbudget.Connector }

func (d discreet) Prepare(ctx context.Context, who actor.Actor, action string, in connector.Input) (connector.Plan, connector.Impact, error) {
	plan, impact, err := d.Connector.Prepare(ctx, who, action, in)
	if err == nil {
		plan.Changes = append(plan.Changes,
			connector.Change{Field: "billing_contact", Before: words(wasContact), After: words(contactFor(plan)), Sensitive: true},
			connector.Change{Field: "liable", Before: words(wasContact), After: words(wasContact), Sensitive: true})
	}
	return plan, impact, err
}

// contactFor is another person for each budget.
func contactFor(p connector.Plan) string {
	return "kim" + p.Changes[0].After.Amount.Decimal() + isContact
}

func (d discreet) Read(ctx context.Context, t connector.Target) (connector.Reading, error) {
	r, err := d.Connector.Read(ctx, t)
	if err == nil {
		r.Values["billing_contact"], r.Values["liable"] = words("third"+isContact), words(wasContact)
	}
	return r, err
}

func (d discreet) Lookup(context.Context, connector.Plan, connector.Call) (connector.Finding, error) {
	return connector.Finding{
		Found: connector.EffectUnsure, Evidence: map[string]any{"log": "billed to " + wasContact},
		Now: map[string]connector.Value{"billing_contact": words(wasContact), "liable": words(wasContact)},
	}, nil
}

func withDiscretion(r *rig) {
	r.front = func(c *adbudget.Connector) connector.Connector { return discreet{c} }
}

// wantHidden searches the whole answer, not only what is seen of it.
func (p *page) wantHidden() *page {
	p.t.Helper()
	if strings.Contains(p.body, isContact) {
		at := strings.Index(p.body, isContact)
		p.t.Errorf("%s: it holds a hidden value: …%s…", p.url, p.body[max(0, at-200):at+len(isContact)])
	}
	return p
}

// TestHiddenValuesAreOnNoPage looks at every page that shows changes, as everybody who may see them, in both languages.
func TestHiddenValuesAreOnNoPage(t *testing.T) {
	t.Parallel()
	r := newRig(t, withDiscretion)
	waits, other := r.pending(target.PlainJPY(0)), r.prepare(target.PlainJPY(0), "17000", "another")
	r.ask(other, "")
	lost := r.unknown(target.PlainJPY(1))
	drifted := r.prepare(target.PlainJPY(2), "12000", "drifts")
	r.must(r.ads.SetBudget(target.PlainJPY(2), "11000"))
	r.apply(drifted, "not_applied")
	stale := r.pending(target.PlainJPY(3))
	r.must(r.ads.SetBudget(target.PlainJPY(3), "11000"))
	oper := r.as("oper")
	path := func(id preview.ID) string { return "/changes/" + id.String() }
	oper.submit(oper.get(path(lost)), "form[action$='/probe']").want(http.StatusOK, "as at the preview").wantHidden().wantOne("#shows-preview")
	paths := []string{"/", "/?show=all", "/bulk?action=budget_change", "/bulk?action=budget_change&item=" + waits.String(), "/history", "/outcomes"}
	for _, id := range []preview.ID{waits, other, lost, drifted, stale} {
		paths = append(paths, path(id), path(id)+"/review", path(id)+"/document", path(id)+"/reveal")
	}
	for _, person := range []string{"kim", "sato", "oper", "admin", "auditor"} {
		b, masks := r.as(person), 0
		all := paths
		if person == "oper" {
			all = append(all, "/history/export.csv", "/history/export.ndjson")
		}
		for _, at := range all {
			for _, lang := range []string{"?lang=en", "?lang=ja"} {
				if strings.Contains(at, "?") {
					lang = strings.Replace(lang, "?", "&", 1)
				}
				masks += strings.Count(b.get(at+lang).wantHidden().body, connector.Mask)
			}
		}
		if masks < 20 {
			t.Errorf("%s: got %d masks on all pages, want them where the values are", person, masks)
		}
	}
	kim := r.as("kim")
	kim.get(path(stale)+"/review").want(http.StatusOK, "The target has moved", "hidden, neither of the two")
	kim.get("/bulk?action=budget_change").want(http.StatusOK, "3 changes are decided one by one") // each on the rows it hides
	kim.get(path(waits)+"/document").want(http.StatusForbidden, "This file holds hidden values.")
	again := r.as("sato").get(path(drifted)+"?lang=en").want(http.StatusOK, "it holds hidden values")
	again.wantNone("pre.copy")
	again.wantOne("form[action*='/again']") // made from what is stored, and not from the page
}

// TestARevealShowsThePage is the way of an approver: to look, to be on record, and to decide on the digest of the real values.
func TestARevealShowsThePage(t *testing.T) {
	t.Parallel()
	r := newRig(t, withDiscretion)
	id, other := r.pending(target.PlainJPY(0)), r.prepare(target.PlainJPY(0), "17000", "another")
	r.ask(other, "")
	kim := r.as("kim")
	path := "/changes/" + id.String()
	review := kim.get(path+"/review?lang=en").want(http.StatusOK, "•••••• (hidden, changes)", "Some values of this change are secret or personal")
	if got, want := review.text(".risky dt"), "billing_contact"; got != want {
		t.Errorf("rows to be seen: got %q, want %q", got, want)
	}
	const form = "form[action*='/reveal']"
	shown := kim.submit(review, form).want(http.StatusOK, wasContact, "kim16000"+isContact, "it is on record that you have seen them", `"sensitive":true`)
	if shown.header.Get("Cache-Control") != "no-store" || strings.Contains(shown.url.String(), "kim16000") {
		t.Errorf("got %s with %v", shown.url, shown.header)
	}
	shown.wantNone("[data-live], " + form + " input[value=review]")
	if strings.Contains(shown.body, "kim17000") {
		t.Error("another change's values are shown too")
	}
	if got := shown.text("dl.diff"); strings.Contains(got, connector.Mask) {
		t.Errorf("got %q, want no mask", got)
	}
	file := kim.submit(shown, form)
	if file.status != http.StatusOK || !strings.HasPrefix(file.body, "{") || !strings.Contains(file.body, "kim16000"+isContact) {
		t.Errorf("the exact bytes: got %d %.100s", file.status, file.body)
	}
	after := kim.get(path).wantHidden().want(http.StatusOK, "Hidden values shown to a person", "billing_contact, liable", "All 4 events")
	if got := strings.Count(after.text(".timeline"), "Hidden values shown"); got != 2 {
		t.Errorf("got %d reveals in the timeline, want 2", got)
	}
	kim.submit(shown, "form.decide", "decision", "approve").want(http.StatusUnprocessableEntity).wantHidden()
	digest := shown.wantOne("form.decide input[name=digest]").AttrOr("value", "")
	kim.post(path+"/decision", "digest", digest, "decision", "approve", "seen", "billing_contact").want(http.StatusOK, "Approved")
}

func TestOnlySomeMayReveal(t *testing.T) {
	t.Parallel()
	r := newRig(t, withDiscretion)
	id := r.pending(target.PlainJPY(0))
	path := "/changes/" + id.String()
	for person, status := range map[string]int{"sato": http.StatusForbidden, "nobody": http.StatusNotFound, "rival": http.StatusNotFound} {
		b := r.as(person)
		b.get(path + "?lang=en").wantNone("form[action*='/reveal']")
		b.post(path + "/reveal?lang=en").want(status).wantHidden()
	}
	r.as("sato").get(path+"?lang=en").want(http.StatusOK, "Whoever may decide on it, operators, auditors and admins can show them.")
	for _, person := range []string{"oper", "auditor"} {
		b := r.as(person)
		b.submit(b.get(path), "form[action*='/reveal']").want(http.StatusOK, wasContact, "Hidden values shown to a person")
	}
	// Another site cannot make a browser do it, and a link does nothing.
	b := r.as("oper")
	b.headers.Set("Sec-Fetch-Site", "cross-site")
	b.post(path + "/reveal").want(http.StatusForbidden).wantHidden()
	b.headers.Del("Sec-Fetch-Site")
	if got := b.get(path + "/reveal").wantHidden(); !strings.HasSuffix(got.url.Path, path) {
		t.Errorf("got %s, want the change", got.url)
	}
	events := 0
	for _, e := range r.status(id).Events {
		if e.Kind == "revealed" {
			events++
		}
	}
	if events != 2 {
		t.Errorf("got %d reveals on record, want the 2 that were allowed", events)
	}
}

func TestARevealThatCannotBeRecordedShowsNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, withDiscretion)
	id := r.pending(target.PlainJPY(0))
	db, err := pgx.Connect(t.Context(), r.databaseURL)
	r.must(err)
	t.Cleanup(func() { _ = db.Close(context.Background()) })
	_, err = db.Exec(t.Context(), `
		create function no_record() returns trigger language plpgsql as $$ begin raise exception 'the disk is full'; end $$;
		create trigger no_record before insert on audit_events for each row when (new.kind = 'revealed') execute function no_record()`)
	r.must(err)
	b := r.as("oper")
	b.post("/changes/" + id.String() + "/reveal").want(http.StatusInternalServerError).wantHidden()
}
