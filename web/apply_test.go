package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/catalog"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/target"
	"github.com/cutonce/cutonce/preview"
)

// approved makes a change that kim has approved.
func (r *rig) approved(campaign string) preview.ID {
	r.t.Helper()
	id := r.pending(campaign)
	kim := r.as("kim")
	kim.submit(kim.get("/changes/"+id.String()+"/review"), "form.decide", "decision", "approve")
	return id
}

func TestThePersonBehindTheAgentApplies(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.pending(target.PlainJPY(0))
	sato := r.as("sato")
	path := "/changes/" + id.String() + "?lang=en"
	sato.get(path).wantNone("form.apply")
	kim := r.as("kim")
	kim.submit(kim.get("/changes/"+id.String()+"/review"), "form.decide", "decision", "approve")
	page := sato.get(path).want(http.StatusOK, "Applying sends exactly what is shown, once.", "Unchanged since prepared")
	if got, want := page.wantOne("form.apply input[name=digest]").AttrOr("value", ""), r.status(id).Preview.Digest.String(); got != want {
		t.Errorf("the digest in the form: got %s, want %s", got, want)
	}
	done := sato.submit(page, "form.apply").want(http.StatusOK, "Applied", "It happened.")
	if got, want := done.url.Path, "/changes/"+id.String(); got != want {
		t.Errorf("after it: got %s, want %s", got, want)
	}
	done.wantNone("form.apply")
	// Back, and once more: the same answer, and nothing more at the target.
	sato.submit(page, "form.apply").want(http.StatusOK, "It happened.")
	sato.get("/changes/"+id.String()+"/apply?lang=en").want(http.StatusOK, "It happened.")
	if got := r.ads.Counters().Total; got.Received != 1 || got.Effects != 1 {
		t.Errorf("at the target: got %+v, want one request and one effect", got)
	}
}

func TestManyPressesOfApplyAreOne(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.approved(target.PlainJPY(0))
	sato := r.as("sato")
	form := url.Values{"digest": {r.status(id).Preview.Digest.String()}}
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if got := sato.do(http.MethodPost, "/changes/"+id.String()+"/apply?lang=en", form); got.status != http.StatusOK {
				t.Errorf("got status %d: %.300q", got.status, got.text("main"))
			}
		})
	}
	all.Wait()
	if got := r.ads.Counters().Total; got.Received != 1 || got.Effects != 1 {
		t.Errorf("at the target: got %+v, want one request and one effect", got)
	}
	if got := r.status(id).Status; got != commit.StatusApplied {
		t.Errorf("status: got %s, want applied", got)
	}
}

// TestRolesApply: who else presses the button, or sends its form by hand, is refused, and nothing reaches the target.
func TestRolesApply(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.approved(target.PlainJPY(0))
	digest := r.status(id).Preview.Digest.String()
	path := "/changes/" + id.String()
	for person, want := range map[string]struct {
		status int
		text   string
	}{
		"kim":        {http.StatusForbidden, "Only its requester"},
		"tanaka":     {http.StatusForbidden, "Only its requester"},
		"oper":       {http.StatusForbidden, "Only its requester"},
		"admin":      {http.StatusForbidden, "Only its requester"},
		"auditor":    {http.StatusForbidden, "Only its requester"},
		"sato-reads": {http.StatusForbidden, "ads:budget"},
		"nobody":     {http.StatusNotFound, "nothing that you may see"},
		"rival":      {http.StatusNotFound, "nothing that you may see"},
	} {
		b := r.as(person)
		if page := b.get(path + "?lang=en"); page.status == http.StatusOK {
			page.wantNone("form.apply")
		}
		got := b.post(path+"/apply?lang=en", "digest", digest)
		if got.status != want.status || !strings.Contains(got.text("main"), want.text) {
			t.Errorf("%s: got status %d, %.400q, want %d and %q", person, got.status, got.text("main"), want.status, want.text)
		}
	}
	r.as("sato-reads").get(path+"?lang=en").want(http.StatusOK, "You cannot apply it from here.")
	if got := r.ads.Counters().Total.Received; got != 0 {
		t.Errorf("requests at the target: got %d, want none", got)
	}
	r.as("sato").post(path+"/apply", "digest", digest).want(http.StatusOK)
	if got := r.status(id).Status; got != commit.StatusApplied {
		t.Errorf("status: got %s, want applied", got)
	}
}

func TestWhatIsNotOnThePageIsNotApplied(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.approved(target.PlainJPY(0))
	sato := r.as("sato")
	page := sato.get("/changes/" + id.String() + "?lang=en")
	for _, digest := range []string{strings.Repeat("0", 64), "", "<b>"} {
		sato.submit(page, "form.apply", "digest", digest).want(http.StatusConflict, "is not what is stored")
	}
	r.must(r.ads.SetBudget(target.PlainJPY(0), "11000"))
	sato.submit(page, "form.apply").want(http.StatusOK, "the target had moved since the preview")
	if got := r.ads.Counters().Total.Effects; got != 0 {
		t.Errorf("effects at the target: got %d, want none", got)
	}
	// Where it has moved before the page is made, there is no button at all.
	other := r.approved(target.PlainJPY(1))
	r.must(r.ads.SetBudget(target.PlainJPY(1), "11000"))
	r.until(func() bool { // what was read a moment ago, for the page of the decision, may be shown once more
		return strings.Contains(sato.get("/changes/"+other.String()+"?lang=en").text("main"), "The target has moved since this was prepared.")
	})
	sato.get("/changes/" + other.String()).wantNone("form.apply")
}

func TestAFrozenChangeSaysSoWhenItIsApplied(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.approved(target.PlainJPY(0))
	oper, sato := r.as("oper"), r.as("sato")
	page := sato.get("/changes/" + id.String() + "?lang=en")
	oper.post("/freeze", "what", "tenant:", "for", "1h", "reason", "the platform is down").want(http.StatusOK)
	sato.submit(page, "form.apply").want(http.StatusLocked, "the platform is down")
	for _, path := range []string{"", "/review"} { // the box says what the banner says, and offers nothing
		frozen := sato.get("/changes/"+id.String()+path+"?lang=en").want(http.StatusOK, "cannot be applied before", "the platform is down")
		frozen.wantNone("form.apply")
		for _, text := range []string{"Applying sends exactly", "You cannot apply it from here."} {
			if strings.Contains(frozen.text("main"), text) {
				t.Errorf("%s: got %q beside a freeze", path, text)
			}
		}
	}
	if got := r.status(id).Status; got != commit.StatusApproved {
		t.Errorf("status: got %s, want approved", got)
	}
}

// TestAHeldTargetHasNoButton: where Apply would only say that the target is held, the page says so and by what.
func TestAHeldTargetHasNoButton(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.approved(target.PlainJPY(0))
	holder := r.unknown(target.PlainJPY(0))
	for _, path := range []string{"", "/review"} {
		page := r.as("sato").get("/changes/"+id.String()+path+"?lang=en").want(http.StatusOK, "It cannot be applied yet: the change "+holder.String()+" holds this target")
		page.wantNone("form.apply")
	}
	if got := r.status(id).Status; got != commit.StatusApproved {
		t.Errorf("status: got %s, want approved", got)
	}
}

func TestAChangeThatLostItsApproverIsOnlySentBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.approved(target.PlainJPY(0))
	sato := r.as("sato")
	path := "/changes/" + id.String() + "?lang=en"
	sato.get(path).want(http.StatusOK, "Applying sends exactly what is shown, once.")
	_, err := r.approvals.Remove(t.Context(), approvals.RemovalOrder{Person: target.UserKim, By: cast["admin"], Reason: "left the agency"})
	r.must(err)
	page := sato.get(path).want(http.StatusOK, "may not approve any more", "Send it back for approval", "nothing is sent to the target")
	if got := page.text(".settle"); strings.Contains(got, "Applying sends exactly") || strings.Contains(got, "Apply it") {
		t.Errorf("the box: got %q, want it to offer no apply", got)
	}
	if got := r.status(id).Status; got != commit.StatusApproved {
		t.Errorf("after it was looked at: got %s, want approved", got)
	}
	back := sato.submit(page, "form.apply").want(http.StatusConflict, "needs approval again", "The requester has to ask for approval.")
	if strings.Contains(back.text("main"), "approval_request") {
		t.Error("a person is told the name of an agent's tool")
	}
	back.wantNone("form.apply")
	if got := r.status(id).Status; got != commit.StatusNeedsApproval {
		t.Errorf("after it was sent back: got %s, want needs_approval", got)
	}
	if got := r.ads.Counters().Total.Received; got != 0 {
		t.Errorf("requests at the target: got %d, want none", got)
	}
}

// TestAChangeThatThePolicyDeniesByNowHasNoButton: what the policy counts has changed since the approval.
func TestAChangeThatThePolicyDeniesByNowHasNoButton(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.approved(target.PlainJPY(0))
	for _, tc := range []struct {
		refusal error
		says    string
		button  int
	}{
		{fault.New(fault.PolicyDenied, fault.Args{"rule": "no-sundays"}), "The policy does not allow this change (rule no-sundays)", 0},
		{fault.New(fault.ApprovalRequired, nil).WithKey("fault.approval_required.tightened"), "became stricter", 1},
	} {
		other := newRig(t, func(o *rig) {
			o.deps.Commits, o.deps.Sessions = refusing{r.commits, tc.refusal}, personSessions{who: cast["sato"]}
		})
		page := other.browser().get("/changes/"+id.String()+"?lang=en").want(http.StatusOK, tc.says)
		if got := page.Find("form.apply").Length(); got != tc.button {
			t.Errorf("%v: got %d forms, want %d", tc.refusal, got, tc.button)
		}
		for _, text := range []string{"It may be applied.", "Applying sends exactly"} {
			if strings.Contains(page.text("main"), text) {
				t.Errorf("%v: got %q", tc.refusal, text)
			}
		}
	}
}

// refusing is the commit service whose policy has moved on.
type refusing struct {
	*commit.Service
	refusal error
}

func (r refusing) WhyNotApply(context.Context, actor.Actor, preview.ID) error { return r.refusal }

// TestPeopleAreNotToldToolsNames: whatever refusal or explanation names an agent's tool has words of the console's own.
func TestPeopleAreNotToldToolsNames(t *testing.T) {
	t.Parallel()
	tools := regexp.MustCompile(`change_status|approval_request|changes_find|_apply\b|_preview\b`)
	for _, lang := range catalog.Languages {
		raw, err := os.ReadFile("../internal/catalog/" + lang + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var texts map[string]any
		if err := json.Unmarshal(raw, &texts); err != nil {
			t.Fatal(err)
		}
		for key, text := range texts {
			area, _, _ := strings.Cut(key, ".")
			own := key
			if area == "fault" || area == "why" {
				if own = "web." + key; texts[own] == nil && tools.MatchString(fmt.Sprint(text)) {
					t.Errorf("%s: %s names a tool, and the console has no words of its own", lang, key)
				}
			}
			if strings.HasPrefix(own, "web.") && tools.MatchString(fmt.Sprint(texts[own])) {
				t.Errorf("%s: %s names a tool to people", lang, own)
			}
		}
	}
}
