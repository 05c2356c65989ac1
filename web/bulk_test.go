package web_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/adbudget"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/target"
	"github.com/cutonce/cutonce/preview"
)

// values are what a form's fields of one name hold.
func values(p *page, selector string) []string {
	var all []string
	p.Find(selector).Each(func(_ int, s *goquery.Selection) { all = append(all, s.AttrOr("value", "")) })
	return all
}

func TestSeveralAreDecidedTogetherEachByItself(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(r *rig) { r.rules = riskyAboveTwice })
	var ids []preview.ID
	for i, jpy := range []string{"11000", "12000", "13000", "30000"} { // the last is of high risk
		id := r.prepare(target.PlainJPY(i), jpy, "because")
		r.ask(id, "")
		ids = append(ids, id)
	}
	kim := r.as("kim")
	choose := kim.get(kim.get("/").wantOne("a[href*='/bulk?']").AttrOr("href", "")).want(http.StatusOK, "1 change is decided by itself")
	if got := values(choose, "input[name=item]"); strings.Join(got, " ") != ids[0].String()+" "+ids[1].String()+" "+ids[2].String() {
		t.Fatalf("to choose among: got %v, want the first three of %v", got, ids)
	}
	path := "/bulk?" + url.Values{"action": {"budget_change"}, "item": {ids[0].String(), ids[1].String(), ids[2].String(), ids[3].String()}}.Encode()
	look := kim.get(path).want(http.StatusOK, "3 changes were chosen.", "Difference per day+6,000 JPY", "Difference per month (30.4 days)+182,400 JPY")
	if got := look.text(".figures"); strings.Contains(got, "percent") {
		t.Errorf("the sum: got %q, want no sum of percentages", got)
	}
	items := values(look, "form.bulk input[name=item]")
	if got, want := items[0], ids[0].String()+":"+r.status(ids[0]).Preview.Digest.String(); got != want {
		t.Errorf("an item: got %s, want it with its digest, %s", got, want)
	}
	// Meanwhile somebody else decides the second; the third is sent with another digest, the fourth by hand.
	tanaka := r.as("tanaka")
	tanaka.submit(tanaka.get("/changes/"+ids[1].String()+"/review"), "form.decide", "decision", "reject", "reason", "not this one")
	items[2] = ids[2].String() + ":" + strings.Repeat("0", 64)
	items = append(items, ids[3].String()+":"+r.status(ids[3]).Preview.Digest.String(), preview.NewID().String()+":x", "nonsense")
	form := url.Values{"action": {"budget_change"}, "item": items, "decision": {"approve"}, "reason": {"the whole week"}}
	for range 2 { // sent again, it is the same decisions
		done := kim.do(http.MethodPost, "/bulk", form).want(http.StatusOK, "1 approval was recorded.", "5 were not.",
			"Approved by you.", "This was settled before you", "is not what is stored", "This change is not decided among others.", "nothing that you may see")
		if got := done.Find(".results > li").Length(); got != 6 {
			t.Errorf("results: got %d, want one for each of 6", got)
		}
	}
	for i, want := range []commit.Status{commit.StatusApproved, commit.StatusRejected, commit.StatusPending, commit.StatusPending} {
		if got := r.status(ids[i]); got.Status != want {
			t.Errorf("change %d: got %s, want %s", i, got.Status, want)
		}
	}
	if got := r.status(ids[0]).Preview.Votes; len(got) != 1 || got[0].Reason != "the whole week" {
		t.Errorf("votes of the first: got %+v, want one with its reason", got)
	}
}

func TestManyRejectionsTakeAReason(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	one, two := r.pending(target.PlainJPY(0)), r.pending(target.PlainJPY(1))
	kim := r.as("kim")
	look := kim.get("/bulk?action=budget_change&item=" + one.String() + "&item=" + two.String())
	form := url.Values{"action": {"budget_change"}, "item": values(look, "form.bulk input[name=item]"), "decision": {"reject"}, "reason": {"x"}}
	again := kim.do(http.MethodPost, "/bulk", form).want(http.StatusUnprocessableEntity, "Write at least 2 characters.")
	if got := again.wantOne("form.bulk textarea").Text(); got != "x" {
		t.Errorf("the typed text: got %q, want it kept", got)
	}
	form.Set("reason", "the sale is off")
	kim.do(http.MethodPost, "/bulk", form).want(http.StatusOK, "2 rejections were recorded.")
	for _, id := range []preview.ID{one, two} {
		if got := r.status(id).Status; got != commit.StatusRejected {
			t.Errorf("status: got %s, want rejected", got)
		}
	}
}

func TestUnusableBulks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	kim := r.as("kim")
	kim.get("/bulk?action=budget_change").want(http.StatusOK, "There is nothing to decide together.")
	for _, path := range []string{"/bulk", "/bulk?action=no_such"} {
		kim.get(path).want(http.StatusNotFound)
	}
	kim.post("/bulk", "action", "budget_change", "decision", "approve").want(http.StatusUnprocessableEntity, "Nothing was chosen.")
	kim.post("/bulk", "action", "budget_change", "decision", "maybe", "item", "x").want(http.StatusUnprocessableEntity)
	many := url.Values{"action": {"budget_change"}, "decision": {"approve"}}
	for range 51 {
		many.Add("item", preview.NewID().String()+":x")
	}
	kim.do(http.MethodPost, "/bulk", many).want(http.StatusRequestEntityTooLarge)
	// Who may not decide is told so for each.
	id := r.pending(target.PlainJPY(0))
	item := id.String() + ":" + r.status(id).Preview.Digest.String()
	r.as("sato").post("/bulk?lang=en", "action", "budget_change", "decision", "approve", "item", item).want(http.StatusOK, "You asked for this change")
	r.as("rival").post("/bulk?lang=en", "action", "budget_change", "decision", "approve", "item", item).want(http.StatusOK, "nothing that you may see")
	if got := r.status(id).Status; got != commit.StatusPending {
		t.Errorf("status: got %s, want pending", got)
	}
}

func TestWhatIsChosenTwiceIsDecidedOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.pending(target.PlainJPY(0))
	item := id.String() + ":" + r.status(id).Preview.Digest.String()
	form := url.Values{"action": {"budget_change"}, "item": {item, item, item}, "decision": {"approve"}}
	done := r.as("kim").do(http.MethodPost, "/bulk", form).want(http.StatusOK, "1 approval was recorded.")
	if got := done.Find(".results > li").Length(); got != 1 {
		t.Errorf("results: got %d, want 1", got)
	}
}

func TestABulkSaysWhatWaitsNoLonger(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	one, two := r.pending(target.PlainJPY(0)), r.pending(target.PlainJPY(1))
	path := "/bulk?action=budget_change&item=" + one.String() + "&item=" + two.String()
	kim, tanaka := r.as("kim"), r.as("tanaka")
	if got := kim.get(path).want(http.StatusOK, "2 changes were chosen.").text("main"); strings.Contains(got, "no longer") {
		t.Errorf("with both waiting: got %.300q", got)
	}
	tanaka.submit(tanaka.get("/changes/"+one.String()+"/review"), "form.decide", "decision", "reject", "reason", "not this one")
	kim.get(path).want(http.StatusOK, "1 change was chosen.", "1 that you chose no longer waits for your decision.")
	// A refusal leads to where the change is: it is not on this page.
	got := kim.post("/bulk", "action", "budget_change", "decision", "approve", "item", two.String()+":"+strings.Repeat("0", 64))
	if text := got.want(http.StatusOK, "is not what is stored", "Open it and decide").text("main"); strings.Contains(text, "below") {
		t.Errorf("got %.300q, want nothing said to be below", text)
	}
	tanaka.submit(tanaka.get("/changes/"+two.String()+"/review"), "form.decide", "decision", "reject", "reason", "nor this one")
	kim.get(path).want(http.StatusOK, "2 that you chose no longer wait for your decision.", "There is nothing to decide together.")
}

// sumless is a connector whose changes have no numbers, as a rollback has none.
type sumless struct{ *adbudget.Connector }

func (s sumless) Prepare(ctx context.Context, who actor.Actor, action string, in connector.Input) (connector.Plan, connector.Impact, error) {
	plan, impact, err := s.Connector.Prepare(ctx, who, action, in)
	impact.Figures = nil
	return plan, impact, err
}

func TestNoSumIsNoHeading(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(r *rig) {
		r.rules = "version: 1\ndefault: {require: [{any_of: [ads-approvers]}]}\n"
		r.front = func(c *adbudget.Connector) connector.Connector { return sumless{c} }
	})
	id := r.pending(target.PlainJPY(0))
	page := r.as("kim").get("/bulk?action=budget_change&item="+id.String()).want(http.StatusOK, "1 change was chosen.")
	if page.wantNone("#sums"); strings.Contains(page.text("main"), "What they come to") {
		t.Error("a heading stands over nothing")
	}
}
