package web_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/adbudget"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/target"
)

// long is the ad platform's connector with more fields than one screen shows.
type long struct {
	*adbudget.Connector
	more []connector.Change
}

func (l long) Prepare(ctx context.Context, who actor.Actor, action string, in connector.Input) (connector.Plan, connector.Impact, error) {
	plan, impact, err := l.Connector.Prepare(ctx, who, action, in)
	plan.Changes = append(plan.Changes, l.more...)
	return plan, impact, err
}

func words(text string) connector.Value { return connector.Value{Text: &text} }

func withRows(more ...connector.Change) func(*rig) {
	return func(r *rig) {
		r.front = func(c *adbudget.Connector) connector.Connector { return long{c, more} }
	}
}

func TestAReviewAnswersInOrder(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.prepare(target.CampaignAutumnSearch, "40000", "週末のセール", "秋の特価_検索")
	r.ask(id, "")
	other := r.prepare(target.CampaignAutumnSearch, "35000", "another agent was faster", "秋の特価_検索")
	r.ask(other, "")
	page := r.as("kim").get("/changes/" + id.String() + "/review?lang=en")
	said, at := page.text("main"), 0
	for _, want := range []string{
		"The agent dev-agent asks for " + target.UserSato, "Raise the daily budget", "+20,000 JPY", "Reversible.", "Before: 20,000 JPY", "After: 40,000 JPY",
		"Unchanged since prepared; read", "similar name", "Other changes of this target:", "→ 35,000 JPY (Waiting for a decision)",
		"0 of 1 approvals", "ads-approvers", "rule large-raise", "left", "Nobody has checked this text.",
	} {
		i := strings.Index(said[at:], want)
		if i < 0 {
			t.Fatalf("got %q, want %q after %q", said, want, said[:at])
		}
		at += i
	}
	for _, selector := range []string{"#bar a[data-open=approve][href='#decide']", "#bar a[data-open=reject][href='#decide']", "dialog#decide[open] form.decide"} {
		page.wantOne(selector)
	}
	if until := page.wantOne("[data-until]").AttrOr("data-until", ""); !strings.HasSuffix(until, "Z") {
		t.Errorf("the countdown's end: got %q", until)
	}
	if !strings.HasPrefix(page.wantOne("main[data-now]").AttrOr("data-now", ""), r.status(id).Now.UTC().Format("2006-01-02T15:")) {
		t.Error("the page does not tell the database's time")
	}
}

func TestDriftTakesTheApprovalAway(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.pending(target.PlainJPY(0))
	kim := r.as("kim")
	r.must(r.ads.SetBudget(target.PlainJPY(0), "12000"))
	page := kim.get("/changes/"+id.String()+"/review").want(http.StatusOK,
		"The target has moved since this was prepared.", "It has to be prepared again.", "12,000 JPY")
	page.wantNone("button[value=approve], [data-open=approve]")
	kim.submit(page, "form.decide", "decision", "reject", "reason", "the target moved").want(http.StatusOK, "Rejected")
}

// mute is the ad platform's connector, of which nothing can be read once a change was prepared.
type mute struct{ *adbudget.Connector }

func (mute) Read(context.Context, connector.Target) (connector.Reading, error) {
	return connector.Reading{}, errors.New("dial tcp: the secret of the target")
}

func TestATargetThatCannotBeReadIsSaidSo(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(r *rig) {
		r.front = func(c *adbudget.Connector) connector.Connector { return mute{c} }
	})
	id := r.pending(target.PlainJPY(0))
	page := r.as("kim").get("/changes/"+id.String()+"/review").want(http.StatusOK, "The target could not be read just now.")
	page.wantOne("button[value=approve]") // an apply looks again
}

func TestNothingOfALongChangeIsCut(t *testing.T) {
	t.Parallel()
	var more []connector.Change
	for i := range 60 {
		more = append(more, connector.Change{Field: fmt.Sprintf("note_%02d", i), Before: words("old"), After: words(fmt.Sprintf("new %02d %s", i, strings.Repeat("長", 400)))})
	}
	more = append(more, connector.Change{Field: "kept", Before: words("same"), After: words("same")})
	r := newRig(t, withRows(more...))
	id := r.pending(target.PlainJPY(0))
	page := r.as("kim").get("/changes/" + id.String() + "/review")
	for i := range 60 {
		if want := fmt.Sprintf("new %02d %s", i, strings.Repeat("長", 400)); !strings.Contains(page.body, want) {
			t.Fatalf("field %d is cut", i)
		}
	}
	if got := page.Find("#rows + .diff > div").Length(); got != 61 {
		t.Errorf("rows: got %d, want 61", got)
	}
	if got := page.text("#rows ~ details summary"); got != "1 field stays as it is" {
		t.Errorf("what stays: got %q", got)
	}
	row := r.as("kim").get("/").wantOne("li.card")
	if got := row.Find(".diff > div").Length(); got != 3 || !strings.Contains(row.Text(), "58 more fields on the change's own page.") {
		t.Errorf("the queue's row: got %d fields, want 3 and how many more: %q", got, strings.Join(strings.Fields(row.Text()), " "))
	}
}

func TestRiskyRowsComeFirstAndMustBeSeen(t *testing.T) {
	t.Parallel()
	r := newRig(t, withRows(
		connector.Change{Field: "plain", Before: words("a"), After: words("b")},
		connector.Change{Field: "owner", Before: words("admin"), After: words("\u0430dmin")},
		connector.Change{Field: "fresh", After: words("new")},
	))
	id := r.pending(target.PlainJPY(0))
	kim := r.as("kim")
	page := kim.get("/changes/" + id.String() + "/review")
	var risky []string
	for _, s := range page.Find("[data-risky] input[name=seen][required]").EachIter() {
		risky = append(risky, s.AttrOr("value", ""))
	}
	if got := strings.Join(risky, " "); got != "owner fresh" {
		t.Errorf("the risky rows: got %q, want owner and fresh, first", got)
	}
	if got := page.text("mark"); !strings.Contains(got, "\u0430⟨U+0430⟩") {
		t.Errorf("the foreign letter: got %q, want it marked with its code", got)
	}
	digest := page.text(".digest")
	path := "/changes/" + id.String() + "/decision"
	refused := kim.post(path, "digest", digest, "decision", "approve", "seen", "owner", "reason", "looks fine").
		want(http.StatusUnprocessableEntity, "Some rows have not been seen.")
	refused.wantOne("input[name=seen][value=owner][checked]")
	refused.wantNone("input[name=seen][value=fresh][checked]")
	if got := refused.text("form.decide textarea"); got != "looks fine" {
		t.Errorf("the typed text: got %q, want it kept", got)
	}
	if got := r.status(id).Status; got != commit.StatusPending {
		t.Fatalf("status: got %s, want pending", got)
	}
	form := map[string][]string{"digest": {digest}, "decision": {"approve"}, "seen": {"owner", "fresh"}}
	kim.do(http.MethodPost, path, form).want(http.StatusOK, "Approved")
}

const cappedRules = `
version: 1
zone: Asia/Tokyo
default: {require: [{any_of: [ads-approvers]}]}
rules: []
caps:
  - name: weekly_raise
    actions: [budget_change]
    field: daily_budget
    per: account
    window: week
    limit: {JPY: 10000}
`

func TestAReviewTellsWhatIsLeftOfACap(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(r *rig) { r.rules = cappedRules })
	kim := r.as("kim")
	first, second := r.pending(target.PlainJPY(0)), r.pending(target.PlainJPY(1)) // each raises by 6,000 JPY
	path := "/changes/" + first.String() + "/review"
	page := kim.get(path).want(http.StatusOK, "Left of the cap weekly_raise10,000 JPY / 10,000 JPY")
	if got := page.text(".warnings"); strings.Contains(got, "weekly_raise") {
		t.Errorf("what is unusual: got %q, want no word of a cap with room", got)
	}
	kim.submit(page, "form.decide", "decision", "approve")
	page = kim.get("/changes/"+second.String()+"/review").want(http.StatusOK, "Left of the cap weekly_raise4,000 JPY / 10,000 JPY",
		"The cap weekly_raise has no room for this: 4,000 JPY of 10,000 JPY are left, and it asks for 6,000 JPY.", "Other waiting changes ask for0 JPY", "The cap weekly_raise is counted anew from 2")
	if got := page.text("[aria-labelledby=more]"); strings.Contains(got, "T00:00") {
		t.Errorf("the cap's window: got %q, want its end as this page writes times", got)
	}
	kim.submit(page, "form.decide", "decision", "approve").want(http.StatusConflict)
	if got := r.status(second).Status; got != commit.StatusPending {
		t.Errorf("status: got %s, want pending", got)
	}
}
