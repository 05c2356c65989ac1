package web_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/target"
)

func TestApprove(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.pending(target.PlainJPY(0))
	kim := r.as("kim")

	queue := kim.get("/").want(http.StatusOK, "The agent dev-agent asks for "+target.UserSato+":", "0 of 1 approvals")
	if got := queue.text("nav [aria-current] .count"); got != "1" {
		t.Errorf("the badge: got %q, want 1", got)
	}
	if got, want := queue.text(".diff"), "Daily budget Before: 10,000 JPY → After: 16,000 JPY"; got != want {
		t.Errorf("the row: got %q, want %q", got, want)
	}
	href := queue.wantOne(".card h2 a").AttrOr("href", "")
	review := kim.get(href).want(http.StatusOK, "Weekend sale", "Please, before Friday", "Nobody has checked this text.", "rule large-raise")
	digest := r.status(id).Preview.Digest.String()
	if got := review.text(".digest"); got != digest {
		t.Errorf("the digest on the page: got %s, want %s", got, digest)
	}
	if got := review.wantOne("form.decide input[name=digest]").AttrOr("value", ""); got != digest {
		t.Errorf("the digest in the form: got %s, want %s", got, digest)
	}

	done := kim.submit(review, "form.decide", "decision", "approve").want(http.StatusOK, "Approved", "You approved this on")
	if got, want := done.url.Path, "/changes/"+id.String(); got != want {
		t.Errorf("after the decision: got %s, want %s", got, want)
	}
	if got := r.status(id).Status; got != commit.StatusApproved {
		t.Errorf("status: got %s, want approved", got)
	}
	r.apply(id, commit.StatusApplied)
	kim.get("/changes/"+id.String()).want(http.StatusOK, "It happened.", "the target's answer", "key of acme "+id.String()+" 0")
}

func TestReject(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.pending(target.PlainJPY(0))
	kim := r.as("kim")
	review := kim.get("/changes/" + id.String() + "/review")
	refused := kim.submit(review, "form.decide", "decision", "reject", "reason", "x").want(http.StatusUnprocessableEntity, "Write at least 2 characters.")
	if got := refused.wantOne("form.decide textarea").Text(); got != "x" {
		t.Errorf("the typed text: got %q, want it kept", got)
	}
	refused.wantOne("[role=alert][autofocus]")
	if got := r.status(id).Status; got != commit.StatusPending {
		t.Fatalf("status: got %s, want pending", got)
	}
	kim.submit(refused, "form.decide", "decision", "reject", "reason", "too much").want(http.StatusOK, "Rejected", "too much")
	if got := r.status(id).Status; got != commit.StatusRejected {
		t.Errorf("status: got %s, want rejected", got)
	}
}

func TestVetoAfterApproval(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.pending(target.PlainJPY(0))
	kim, tanaka := r.as("kim"), r.as("tanaka")
	path := "/changes/" + id.String()
	kim.submit(kim.get(path+"/review"), "form.decide", "decision", "approve")
	review := tanaka.get(path+"/review?lang=en").want(http.StatusOK, "Until it is applied you may still reject it.")
	review.wantNone("button[value=approve]")
	tanaka.submit(review, "form.decide", "decision", "reject", "reason", "the sale is off").want(http.StatusOK, "the sale is off")
	if got := r.status(id).Status; got != commit.StatusRejected {
		t.Errorf("status: got %s, want rejected", got)
	}
}

func TestAnotherDigestIsRefusedAndTheTextIsKept(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.pending(target.PlainJPY(0))
	kim := r.as("kim")
	review := kim.get("/changes/" + id.String() + "/review")
	for name, digest := range map[string]string{"another": strings.Repeat("0", 64), "none": "", "broken": "<b>"} {
		got := kim.submit(review, "form.decide", "decision", "approve", "digest", digest, "reason", "long thoughts\nof "+name)
		got.want(http.StatusConflict, "What you decided on is not what is stored, so nothing has been recorded.")
		if text := got.wantOne("form.decide textarea").Text(); text != "long thoughts\nof "+name {
			t.Errorf("%s: the typed text: got %q, want it kept", name, text)
		}
		if got := got.wantOne("form.decide input[name=digest]").AttrOr("value", ""); got != r.status(id).Preview.Digest.String() {
			t.Errorf("%s: the form holds the digest %s", name, got)
		}
	}
	if got := r.status(id); got.Status != commit.StatusPending || len(got.Preview.Votes) != 0 {
		t.Errorf("got status %s with %d votes, want pending with none", got.Status, len(got.Preview.Votes))
	}
}

func TestTheRequesterIsToldWhyNot(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.pending(target.PlainJPY(0))
	const why = "You asked for this change, or it was asked for you, so somebody else has to decide."
	sato := r.as("sato")
	sato.get("/?lang=en").want(http.StatusOK, "Nothing waits for you.").wantNone("li.card")
	sato.get("/?show=all&lang=en").want(http.StatusOK, "You cannot decide this. "+why)
	review := sato.get("/changes/"+id.String()+"/review?lang=en").want(http.StatusOK, why)
	review.wantNone("form.decide")
	digest := review.text(".digest")
	forced := sato.post("/changes/"+id.String()+"/decision?lang=en", "digest", digest, "decision", "approve", "reason", "let me")
	forced.want(http.StatusForbidden, why)
	if got := forced.wantOne("textarea[readonly]").Text(); got != "let me" {
		t.Errorf("the typed text: got %q, want it kept", got)
	}
	r.as("auditor").get("/?show=all").want(http.StatusOK, "This needs somebody from ads-approvers")
	if got := r.status(id); got.Status != commit.StatusPending {
		t.Errorf("status: got %s, want pending", got.Status)
	}
}

func TestTheSecondSeesWhoDecidedWhat(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.pending(target.PlainJPY(0))
	kim, tanaka := r.as("kim"), r.as("tanaka")
	path := "/changes/" + id.String() + "/review?lang=en"
	both := tanaka.get(path)
	kim.submit(kim.get(path), "form.decide", "decision", "reject", "reason", "not this week")
	late := tanaka.submit(both, "form.decide", "decision", "approve", "reason", "fine by me")
	late.want(http.StatusConflict, "This was settled before you", target.UserKim, "not this week")
	if got := late.wantOne("textarea[readonly]").Text(); got != "fine by me" {
		t.Errorf("the typed text: got %q, want it kept", got)
	}
	// The same decision twice is one decision.
	kim.post("/changes/"+id.String()+"/decision", "digest", both.text(".digest"), "decision", "reject", "reason", "not this week").
		want(http.StatusOK, "Rejected")
	if got := len(r.status(id).Preview.Votes); got != 1 {
		t.Errorf("votes: got %d, want 1", got)
	}
}

func TestExpiredWhileOpen(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(r *rig) { r.clocks.ApprovalFor = 400 * time.Millisecond })
	id := r.pending(target.PlainJPY(0))
	kim := r.as("kim")
	review := kim.get("/changes/"+id.String()+"/review").want(http.StatusOK, "less than a minute left")
	r.until(func() bool { return r.status(id).Status == commit.StatusExpired })
	late := kim.submit(review, "form.decide", "decision", "approve", "reason", "one moment")
	late.want(http.StatusGone, "Its time ran out before your decision.", "Expired")
	late.wantNone("form.decide")
	if got := late.wantOne("textarea[readonly]").Text(); got != "one moment" {
		t.Errorf("the typed text: got %q, want it kept", got)
	}
	kim.get("/").want(http.StatusOK, "Nothing waits for you.")
	kim.get("/?show=all").want(http.StatusOK, "Nothing waits for a decision.")
}

func TestOnlyAFormOfThisConsoleDecides(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.pending(target.PlainJPY(0))
	kim := r.as("kim")
	path := "/changes/" + id.String() + "/decision"
	fields := []string{"digest", r.status(id).Preview.Digest.String(), "decision", "approve"}
	for name, header := range map[string][2]string{
		"another site":      {"Sec-Fetch-Site", "cross-site"},
		"a neighbour":       {"Sec-Fetch-Site", "same-site"},
		"another origin":    {"Origin", "https://evil.example"},
		"an opaque origin":  {"Origin", "null"},
		"another port here": {"Origin", "http://127.0.0.1:1"},
	} {
		kim.headers = http.Header{header[0]: {header[1]}}
		got := kim.post(path, append(fields, "reason", "words of another site")...)
		if got.status != http.StatusForbidden || !strings.Contains(got.text("main"), "sent from another site") {
			t.Errorf("%s: got status %d, %q, want 403 and why", name, got.status, got.text("main"))
		}
		got.wantNone("textarea")
	}
	kim.headers = http.Header{}
	opened := kim.get(path+"?decision=approve&digest="+fields[1]).want(http.StatusOK, "Waiting for a decision")
	if got, want := opened.url.Path, "/changes/"+id.String(); got != want {
		t.Errorf("opened as a link: got %s, want %s", got, want)
	}
	for _, method := range []string{http.MethodPut, http.MethodDelete, http.MethodPatch} {
		kim.do(method, path, nil).want(http.StatusNotFound)
	}
	if got := r.status(id); got.Status != commit.StatusPending {
		t.Fatalf("status: got %s, want pending", got.Status)
	}
	kim.headers = http.Header{"Sec-Fetch-Site": {"same-origin"}, "Origin": {"null"}} // what a browser sends under no-referrer
	kim.post(path, fields...).want(http.StatusOK, "You approved this on")
}

func TestUnusableForms(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.pending(target.PlainJPY(0))
	kim := r.as("kim")
	path := "/changes/" + id.String() + "/decision"
	digest := r.status(id).Preview.Digest.String()
	kim.post(path, "digest", digest, "reason", "hm").want(http.StatusUnprocessableEntity, "Choose approve or reject.")
	kim.post(path, "digest", digest, "decision", "approve", "reason", strings.Repeat("長", 2001)).
		want(http.StatusUnprocessableEntity, "Write at most 2000 characters.")
	kim.post(path, "digest", digest, "decision", "approve", "reason", strings.Repeat("x", 100_000)).
		want(http.StatusRequestEntityTooLarge, "That is too long. Nothing has been recorded.")
	if got := r.status(id); len(got.Preview.Votes) != 0 {
		t.Errorf("votes: got %d, want none", len(got.Preview.Votes))
	}
}

// until polls with a deadline.
func (r *rig) until(done func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(15 * time.Second); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatal("it did not come to pass")
		}
	}
}
