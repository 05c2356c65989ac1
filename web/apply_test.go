package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/cutonce/cutonce/commit"
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
	if got := r.status(id).Status; got != commit.StatusApproved {
		t.Errorf("status: got %s, want approved", got)
	}
}
