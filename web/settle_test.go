package web_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/target"
	"github.com/cutonce/cutonce/preview"
)

// unknown makes a change whose effect happened and whose reply was lost.
func (r *rig) unknown(campaign string) preview.ID {
	r.t.Helper()
	r.must(r.ads.AddFault(target.Once(target.OpChange, campaign, target.Step{Action: target.DropAfter})))
	id := r.prepare(campaign, "12000", "Weekend sale")
	c, err := r.commits.Apply(r.t.Context(), bot, "budget_change", id, 10*time.Second)
	if err != nil || c.Status != commit.StatusUnknown {
		r.t.Fatalf("apply: got status %s, %v, want unknown", c.Status, err)
	}
	return id
}

func TestAnOperatorLooksAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.unknown(target.PlainJPY(0))
	oper := r.as("oper")
	list := oper.get("/outcomes").want(http.StatusOK, "The agent dev-agent asks for "+target.UserSato, "The service keeps looking")
	if got := list.text("nav [aria-current] .count"); got != "1" {
		t.Errorf("the badge: got %q, want 1", got)
	}
	page := oper.get(list.wantOne(".card h2 a").AttrOr("href", "")).want(http.StatusOK,
		"it is not known whether it happened", "Nobody has looked yet.", "key of acme "+id.String()+" 0", `PATCH /v1/campaigns/`)
	oper.submit(page, "form[action$='/probe']").want(http.StatusOK, "It happened.", "a look-up at the target", "Look-up: the effect was found")
	if got := r.status(id).Status; got != commit.StatusApplied {
		t.Errorf("status: got %s, want applied", got)
	}
	oper.get("/outcomes").want(http.StatusOK, "There is no unknown outcome.")
	// Looking at what is settled is answered in words.
	oper.post("/changes/"+id.String()+"/probe").want(http.StatusConflict, "This was settled before you")
}

func TestAnOperatorSettlesWhatNoMachineCan(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(r *rig) { r.noLookup = true })
	id := r.unknown(target.PlainJPY(0))
	oper := r.as("oper")
	path := "/changes/" + id.String()
	looked := oper.submit(oper.get(path), "form[action$='/probe']").
		want(http.StatusOK, "Last look:", "proves nothing", "Value at the preview, at the last look, and as requested")
	if got, want := looked.text("table tbody"), "Daily budget10,000 JPY12,000 JPY12,000 JPY"; got != want {
		t.Errorf("the three columns: got %q, want %q", got, want)
	}
	if got, want := looked.text("#shows-requested"), "▲ Warning: The target shows the requested value now. Search its log for the key below before you say so."; got != want {
		t.Errorf("beside “it did not happen”: got %q, want %q", got, want)
	}
	looked.wantOne("input[value=not_applied][aria-describedby=shows-requested]")
	looked.wantNone("#shows-preview")
	if got, want := looked.text(".settle .key"), "Search the target's own log for this key: key of acme "+id.String()+" 0"; got != want {
		t.Errorf("the key in the form: got %q, want %q", got, want)
	}
	if got := strings.Count(looked.text("main"), `"columns"`); got != 1 {
		t.Errorf("the look's raw JSON: got it %d times, want once", got)
	}
	looked.wantOne("section[aria-labelledby=sent] a[href='#event-4']")
	looked.wantOne("#event-4 details pre")

	const form = "form[action$='/resolution']"
	missing := oper.submit(looked, form, "reason", "I have looked at the console").
		want(http.StatusUnprocessableEntity, "Say whether it happened.")
	if got := missing.Find("textarea#reason").Text(); got != "I have looked at the console" {
		t.Errorf("the typed text: got %q, want it kept", got)
	}
	short := oper.submit(missing, form, "outcome", "applied", "evidence", "log").
		want(http.StatusUnprocessableEntity, "Write at least 5 characters.")
	short.wantOne("input[value=applied][checked]")
	if got := short.Find("textarea#evidence").Text(); got != "log" {
		t.Errorf("the typed evidence: got %q, want it kept", got)
	}
	oper.submit(short, form, "outcome", "applied", "evidence", "ticket 4711").
		want(http.StatusOK, "an operator's statement", "oper@agency.example", "I have looked at the console", "Settled by an operator")

	second := oper.post(path+"/resolution", "outcome", "not_applied", "reason", "no, it did not", "evidence", "ticket 4712").
		want(http.StatusConflict, "oper@agency.example has already settled this", "I have looked at the console")
	second.wantNone(form)
	if got := second.text("#kept-reason") + "|" + second.text("#kept-evidence"); got != "no, it did not|ticket 4712" {
		t.Errorf("the typed texts: got %q, want them kept", got)
	}
	if got := r.status(id); got.Status != commit.StatusApplied {
		t.Errorf("status: got %s, want applied", got.Status)
	}
}

// Where the action asks for two operators, the console shows the first one's word to the second, and settles by both.
func TestTwoOperatorsSettleAtTheConsole(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(r *rig) { r.noLookup, r.resolvers = true, 2 })
	id := r.unknown(target.PlainJPY(0))
	path := "/changes/" + id.String()
	const form = "form[action$='/resolution']"
	oper, admin := r.as("oper"), r.as("admin")
	first := oper.get(path).want(http.StatusOK, "This action asks for two operators")
	first.wantNone(".proposal")
	oper.submit(first, form, "outcome", "applied", "reason", "seen in the log\nwith our key", "evidence", "ticket 4711").
		want(http.StatusOK, "oper@agency.example has said that it happened.", "ticket 4711", "It waits for a second operator until", "waits for a second").
		wantOne(".proposal blockquote")
	if got := r.status(id).Status; got != commit.StatusUnknown {
		t.Fatalf("after one word: got %s, want unknown", got)
	}
	seen := admin.get(path).want(http.StatusOK, "oper@agency.example has said that it happened.")
	otherwise := admin.submit(seen, form, "outcome", "not_applied", "reason", "nothing there", "evidence", "ticket 4712")
	if got := r.status(id).Status; got != commit.StatusUnknown {
		t.Fatalf("after a second word that contradicts: got %s, want unknown", got)
	}
	otherwise.want(http.StatusConflict)
	admin.submit(seen, form, "outcome", "applied", "reason", "I see it too", "evidence", "ticket 4712").
		want(http.StatusOK, "It happened.", "oper@agency.example, admin@agency.example").wantNone(form)
	if got := r.status(id).Status; got != commit.StatusApplied {
		t.Errorf("after two that agree: got %s, want applied", got)
	}
}

// TestAnUntouchedTargetIsShownBesideItHappened has the target put back by hand, so that it looks as it did at the preview.
func TestAnUntouchedTargetIsShownBesideItHappened(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(r *rig) { r.noLookup = true })
	id := r.unknown(target.PlainJPY(0))
	oper := r.as("oper")
	path := "/changes/" + id.String()
	oper.get(path).want(http.StatusOK, "Nobody has looked yet.").wantNone(".caution")
	r.must(r.ads.SetBudget(target.PlainJPY(0), "10000"))
	looked := oper.submit(oper.get(path), "form[action$='/probe']")
	if got, want := looked.text(".caution"), "▲ Warning: The target shows the value of the preview now. Search its log for the key below before you say so."; got != want {
		t.Errorf("the warnings: got %q, want %q", got, want)
	}
	looked.wantOne("input[value=applied][aria-describedby=shows-preview]")
	r.must(r.ads.SetBudget(target.PlainJPY(0), "11000"))
	oper.submit(looked, "form[action$='/probe']").wantNone(".caution")
}

// What a person called not applied can be looked at again by an operator, and by nobody else.
func TestALaterLookIsOffered(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(r *rig) { r.noLookup = true })
	id := r.unknown(target.PlainJPY(0))
	oper := r.as("oper")
	path := "/changes/" + id.String()
	say := func() *page {
		return oper.submit(oper.get(path), "form[action$='/resolution']", "outcome", "not_applied", "reason", "nothing in the log", "evidence", "ticket 4713")
	}
	said := say()
	for deadline := time.Now().Add(15 * time.Second); r.status(id).Status == commit.StatusUnknown && time.Now().Before(deadline); {
		said = say() // too early until lease, send deadline and settle time have passed
	}
	said.want(http.StatusOK, "Did it happen late all the same?")
	oper.submit(oper.get(path), "form[action$='/probe']").want(http.StatusOK, "Did it happen late all the same?")
	r.as("auditor").get(path).wantNone("form[action$='/probe']")
}

func TestTooEarlyToSayThatItDidNot(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(r *rig) { r.noLookup = true; r.clocks.SettleFor = time.Minute })
	id := r.unknown(target.PlainJPY(0))
	oper := r.as("oper")
	path := "/changes/" + id.String()
	page := oper.get(path).want(http.StatusOK, "counts only once a late effect is no longer to be expected")
	early := oper.submit(page, "form[action$='/resolution']", "outcome", "not_applied", "reason", "nothing there", "evidence", "ticket 1").
		want(http.StatusConflict, "It is too early to say that it did not happen")
	if got := early.Find("textarea#reason").Text(); got != "nothing there" {
		t.Errorf("the typed text: got %q, want it kept", got)
	}
	early.wantOne("input[value=not_applied][checked]")
	if got := r.status(id).Status; got != commit.StatusUnknown {
		t.Errorf("status: got %s, want unknown", got)
	}
}

func TestOnlyOperatorsSettle(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.unknown(target.PlainJPY(0))
	path := "/changes/" + id.String()
	for person, want := range map[string]string{"kim": "Only operators can settle it.", "sato": "Only operators can settle it.", "auditor": "Only operators can settle it."} {
		b := r.as(person)
		b.get(path+"?lang=en").want(http.StatusOK, want).wantNone("form[action*='/resolution'], form[action*='/probe']")
		b.post(path+"/resolution?lang=en", "outcome", "applied", "reason", "trust me", "evidence", "none at all").
			want(http.StatusForbidden, "Only operators can do this.")
		b.post(path+"/probe?lang=en").want(http.StatusForbidden, "Only operators can do this.")
	}
	if got := r.status(id).Status; got != commit.StatusUnknown {
		t.Errorf("status: got %s, want unknown", got)
	}
}

func TestWhatWasNotAppliedSaysWhy(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	oper := r.as("oper")

	drifted := r.prepare(target.PlainJPY(0), "12000", "Weekend sale")
	r.must(r.ads.SetBudget(target.PlainJPY(0), "11000"))
	r.apply(drifted, commit.StatusNotApplied)
	page := oper.get("/changes/"+drifted.String()).want(http.StatusOK, "the target had moved since the preview", "What would have been sent: nothing left")
	if got, want := page.text("table tbody"), "Daily budget10,000 JPY11,000 JPY12,000 JPY"; got != want {
		t.Errorf("the three columns: got %q, want %q", got, want)
	}

	denied := r.prepare(target.PlainJPY(2), "900000", "Everything")
	oper.get("/changes/"+denied.String()).want(http.StatusOK, "Denied by policy", "The rule ceiling of the policy does not allow it.")

	waiting := r.prepare(target.PlainJPY(3), "19000", "Soon")
	asked := oper.get("/changes/"+waiting.String()).want(http.StatusOK, "nobody has been asked yet")
	if got := asked.text(".timeline"); !strings.Contains(got, "Prepared dev-agent for sato@agency.example") {
		t.Errorf("the timeline: got %q", got)
	}
}

// TestOperatorsAreHandedAnOutcomeOnce: a look that proves nothing once more is told as a look. The record keeps each under its own kind.
func TestOperatorsAreHandedAnOutcomeOnce(t *testing.T) {
	t.Parallel()
	c := little(commit.StatusUnknown)
	for i, kind := range []string{"probed", "handed_over", "handed_over"} {
		c.Events = append(c.Events, commit.Event{Seq: int64(i + 1), Kind: kind, Actor: "service:cutonce", Body: "{}"})
	}
	why := commit.Why{Change: c, Text: connector.Say("why.unknown.operator", nil)}
	page := fakeRig(t, fakes{why: why}, cast["oper"]).browser().get("/changes/" + c.Preview.ID.String() + "?lang=en").want(http.StatusOK)
	for seq, want := range map[string]string{"1": "Looked at the target", "2": "Handed over to operators", "3": "Looked again, still with operators"} {
		if got := page.text("#event-" + seq + " strong"); got != want {
			t.Errorf("event %s: got %q, want %q", seq, got, want)
		}
	}
}
