package web_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"github.com/cutonce/cutonce/internal/target"
)

const (
	evilName   = "Sale\u202Eelas<script>alert(1)</script>\u200B & \"co\""
	shownName  = `Sale⟨U+202E⟩elas<script>alert(1)</script>⟨U+200B⟩ & "co"`
	evilReason = "<img src=x onerror=alert(1)> <a href=\"javascript:alert(1)\">click</a>\nhttps://evil.example/ {{.}} \u00ADapprove"
)

// TestTextFromOutsideIsText is checked on every page by checkMarkup as well: no script, no handler, no foreign link.
func TestTextFromOutsideIsText(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.must(r.ads.Add(target.Campaign{ID: "2009001", Status: target.StatusEnabled, AccountID: "acc-jp-01", Owner: target.UserSato, Name: evilName, DailyBudget: "10000", Currency: "JPY"}))
	id := r.prepare("2009001", "16000", `<b onclick="alert(1)">Sale</b>`)
	r.ask(id, evilReason)
	kim := r.as("kim")
	for _, path := range []string{"/", "/history", "/changes/" + id.String(), "/changes/" + id.String() + "/review"} {
		page := kim.get(path)
		if got := page.text("main"); !strings.Contains(got, shownName) {
			t.Errorf("%s: got %.300q, want it to show %q", path, got, shownName)
		}
		if strings.ContainsAny(page.body, "\u202E\u200B\u00AD") {
			t.Errorf("%s: it holds a hidden character", path)
		}
		page.wantNone("main img, main a[href*=evil]")
	}
	review := kim.get("/changes/" + id.String() + "/review")
	if got, want := review.Find("blockquote.justification").Text(), strings.Replace(evilReason, "\u00AD", "⟨U+00AD⟩", 1); got != want {
		t.Errorf("the requester's words: got %q, want %q", got, want)
	}
	if got := review.text("pre.raw"); !strings.Contains(got, `Sale⟨U+202E⟩elas`) {
		t.Errorf("the canonical JSON: got %.300q, want its hidden characters visible", got)
	}
	done := kim.submit(review, "form.decide", "decision", "reject", "reason", "<b>no</b> \u00AD.").want(http.StatusOK, "<b>no</b>")
	done.wantNone("main b")
	if strings.ContainsAny(done.body, "\u202E\u00AD") {
		t.Error("a decision's reason holds a hidden character")
	}
}

func TestLookAlikesAreShown(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.prepare(target.CampaignAutumnSearch, "40000", "Weekend sale", "秋の特価_検索")
	r.ask(id, "")
	kim := r.as("kim")
	kim.get("/").want(http.StatusOK, "Other live campaigns have a similar name", "秋の特価_検索_再訪問")
	page := kim.get("/changes/"+id.String()+"/review").want(http.StatusOK, "Other live campaigns have a similar name")
	if got := page.text(".warnings .hidden"); !strings.HasPrefix(got, "Warning:") {
		t.Errorf("a warning in words: got %q", got)
	}
	if got := page.text(".figures"); !strings.Contains(got, "similar name1") {
		t.Errorf("the count of look-alikes: got %q, want 1", got)
	}
}

func TestUnknownNumbersSayUnknown(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.prepare(target.CampaignZeroBudget, "5000", "Wake them up")
	r.ask(id, "")
	page := r.as("kim").get("/changes/"+id.String()+"/review").want(http.StatusOK, "The budget was zero at the preview.")
	if got := page.text(".figures"); !strings.Contains(got, "Difference in percentunknown") {
		t.Errorf("the figures: got %q, want the percentage to be unknown", got)
	}
	page.want(http.StatusOK, "Not reversible. Cannot be put back with this action")
}

func TestLanguages(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.pending(target.PlainJPY(0))
	wantLang := func(p *page, lang, heading string) {
		t.Helper()
		if got := p.Find("html").AttrOr("lang", "") + " " + p.text("h1"); got != lang+" "+heading {
			t.Errorf("%s: got %q, want %q", p.url, got, lang+" "+heading)
		}
	}
	visitor := r.browser()
	wantLang(visitor.get("/sign-in"), "en", "Sign in")
	visitor.headers = http.Header{"Accept-Language": {"fr, ja;q=0.8, en;q=0.5"}}
	wantLang(visitor.get("/sign-in"), "ja", "サインイン")
	wantLang(visitor.get("/sign-in?lang=en"), "en", "Sign in")
	wantLang(visitor.get("/sign-in?lang=tlh"), "ja", "サインイン")

	tanaka := r.as("tanaka") // whose own language is Japanese
	wantLang(tanaka.get("/"), "ja", "承認待ちの変更")
	english := tanaka.get("/?lang=en")
	wantLang(english, "en", "Changes to decide")
	english.Find("nav a, .card a").Each(func(_ int, s *goquery.Selection) {
		if href := s.AttrOr("href", ""); !strings.Contains(href, "lang=en") {
			t.Errorf("the link %s loses the language", href)
		}
	})
	review := tanaka.get(english.Find(".card h2 a").AttrOr("href", ""))
	done := tanaka.submit(review, "form.decide", "decision", "approve")
	if got := done.Find("html").AttrOr("lang", ""); got != "en" {
		t.Errorf("after the decision: got %s, want en", got)
	}
	if got, want := done.Find(".langs a[lang=ja]").AttrOr("href", ""), "/changes/"+id.String()+"?lang=ja"; got != want {
		t.Errorf("the switch: got %s, want %s", got, want)
	}
	wantLang(tanaka.get("/history?lang=en&status=pending"), "en", "History")
}

func TestHistoryHasPages(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	pending := r.pending(target.PlainJPY(0))
	applied := r.prepare(target.PlainJPY(1), "12000", "Weekend sale")
	r.apply(applied, "applied")
	for i := range 30 {
		r.prepare(target.PlainJPY(2+i%10), []string{"9000", "9001", "9002"}[i/10], "Cut")
	}
	auditor := r.as("auditor")
	first := auditor.get("/history")
	if got := first.Find(".card").Length(); got != 25 {
		t.Errorf("the first page: got %d changes, want 25", got)
	}
	second := auditor.get(first.wantOne("main p a.button").AttrOr("href", ""))
	if got := second.Find(".card").Length(); got != 7 {
		t.Errorf("the second page: got %d changes, want 7", got)
	}
	second.wantNone("main p a.button")

	only := auditor.get("/history?status=applied").want(http.StatusOK, "Applied")
	if got := only.wantOne(".card h2").AttrOr("id", ""); got != applied.String() {
		t.Errorf("filtered by status: got %s, want %s", got, applied)
	}
	only.wantOne("option[value=applied][selected]")
	byTarget := auditor.get("/history?target=" + target.PlainJPY(0))
	if got := byTarget.wantOne(".card h2").AttrOr("id", ""); got != pending.String() {
		t.Errorf("filtered by target: got %s, want %s", got, pending)
	}
	auditor.get("/history?status=nonsense").want(http.StatusUnprocessableEntity, "There is no such status.")
	auditor.get("/history?cursor=nonsense").want(http.StatusUnprocessableEntity, "This place in the list cannot be found.")
	auditor.get("/?cursor=nonsense").want(http.StatusUnprocessableEntity, "This place in the list cannot be found.")
}
