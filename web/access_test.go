package web_test

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/target"
	"github.com/cutonce/cutonce/preview"
	"github.com/cutonce/cutonce/web"
)

func TestSignInAndOut(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.pending(target.PlainJPY(0))
	b := r.browser()
	page := b.get("/changes/"+id.String()+"/review").want(http.StatusOK, "Sign in to go on.", "invented people", "김민준")
	if got := page.url.Path; got != "/sign-in" {
		t.Fatalf("got %s, want the way in", got)
	}
	href := page.Find("main .rows a").Eq(1).AttrOr("href", "")
	review := b.get(href).want(http.StatusOK, "Raise the daily budget")
	if got, want := review.url.Path, "/changes/"+id.String()+"/review"; got != want {
		t.Errorf("after signing in: got %s, want %s", got, want)
	}
	if got := review.text("footer form span"); got != "Signed in as 김민준" {
		t.Errorf("who: got %q", got)
	}
	out := b.submit(review, "footer form")
	if got := out.url.Path; got != "/sign-in" {
		t.Errorf("after signing out: got %s, want the way in", got)
	}
	if got := b.get("/history").url.Path; got != "/sign-in" {
		t.Errorf("the history, signed out: got %s, want the way in", got)
	}
}

func TestTheOnlyCookieIsTheSession(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.as("kim")
	for _, path := range []string{"/", "/history?lang=ja", "/outcomes", "/sign-in?lang=en"} {
		b.get(path)
	}
	at, err := url.Parse(r.url)
	r.must(err)
	if got := b.client.Jar.Cookies(at); len(got) != 1 || got[0].Name != "cutonce" {
		t.Errorf("cookies: got %v, want the session alone", got)
	}
}

func TestSignInLinksThatDoNotWork(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, query := range []string{"", "?person=kim", "?person=kim&code=code-sato", "?person=ghost&code=code-ghost"} {
		got := r.browser().get("/dev/sign-in"+query).want(http.StatusUnauthorized, "This sign-in link does not work.")
		if strings.Contains(got.body, "no such secret") {
			t.Errorf("%s: the page shows an internal text", query)
		}
	}
	b := r.browser()
	b.get("/dev/sign-in?person=bot&code=code-bot").want(http.StatusForbidden, "Only people can sign in here.")
	if got := b.get("/").url.Path; got != "/sign-in" {
		t.Errorf("after an agent's try: got %s, want the way in", got)
	}
}

func TestSignInLeadsNowhereElse(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.browser()
	b.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for next, want := range map[string]string{
		"":                              "/",
		"/history?status=applied":       "/history?status=applied",
		"https://evil.example/":         "/",
		"//evil.example/":               "/",
		`/\evil.example/`:               "/",
		"/%5Cevil.example":              "/%5Cevil.example",
		"javascript:alert(1)":           "/",
		"/\r\nSet-Cookie: a=b":          "/",
		"http:evil.example":             "/",
		"/history?next=//evil.example/": "/history?next=//evil.example/",
	} {
		got := b.get("/dev/sign-in?" + url.Values{"person": {"kim"}, "code": {"code-kim"}, "next": {next}}.Encode())
		if location := got.header.Get("Location"); got.status != http.StatusSeeOther || location != want {
			t.Errorf("next %q: got %d to %q, want 303 to %q", next, got.status, location, want)
		}
	}
}

func TestProductionHasNoDevelopmentSignIn(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(r *rig) { r.deps.Dev = nil })
	r.browser().get("/dev/sign-in?person=kim&code=code-kim").want(http.StatusNotFound)
	r.browser().get("/").want(http.StatusOK, "Signing in to the console is not set up on this server.").wantNone("main a")
}

func TestDevelopmentSignInFromElsewhere(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(r *rig) { r.deps.Dev = dev{closed: true} })
	r.browser().get("/dev/sign-in?person=kim&code=code-kim").want(http.StatusNotFound)
	r.browser().get("/sign-in").want(http.StatusOK).wantNone("main a")
}

func TestTheTypedTextOutlivesTheSession(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.pending(target.PlainJPY(0))
	page := r.browser().post("/changes/"+id.String()+"/decision", "decision", "reject", "reason", "a long\nreason")
	page.want(http.StatusUnauthorized, "Sign in to go on. Nothing has been recorded.", "It has not been recorded.")
	if got := page.wantOne("textarea[readonly]").Text(); got != "a long\nreason" {
		t.Errorf("the typed text: got %q, want it kept", got)
	}
	if href := page.Find("main .rows a").First().AttrOr("href", ""); !strings.Contains(href, url.QueryEscape("/changes/"+id.String())) {
		t.Errorf("the way in leads to %s, want back to the change", href)
	}
	if got := r.status(id).Status; got != commit.StatusPending {
		t.Errorf("status: got %s, want pending", got)
	}
}

// TestUnknownAndForeignReadAlike compares whole pages: nothing tells another tenant's change from none.
func TestUnknownAndForeignReadAlike(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	foreign, unknown := r.pending(target.PlainJPY(0)).String(), preview.NewID().String()
	rival, nobody := r.as("rival"), r.as("nobody")
	for _, b := range []*browser{rival, nobody} {
		for _, path := range []string{"", "/review", "/document"} {
			want := b.get("/changes/" + unknown + path).want(http.StatusNotFound)
			for _, id := range []string{foreign, "pv_nonsense", "..%2F..", strings.ToUpper(unknown)} {
				if got := b.get("/changes/" + id + path); got.status != want.status || got.body != want.body {
					t.Errorf("%s%s: it reads unlike an unknown one: %d", id, path, got.status)
				}
			}
		}
		for _, form := range []string{"/decision", "/apply", "/probe", "/resolution"} {
			fields := []string{"decision", "approve", "digest", strings.Repeat("0", 64), "outcome", "applied", "reason", "because", "evidence", "a ticket"}
			want := b.post("/changes/"+unknown+form, fields...).want(http.StatusNotFound)
			if got := b.post("/changes/"+foreign+form, fields...); got.status != want.status || got.body != want.body {
				t.Errorf("%s: a foreign one reads unlike an unknown one: %d", form, got.status)
			}
		}
		b.get("/").want(http.StatusOK, "Nothing waits for you.")
		b.get("/?show=all").want(http.StatusOK, "Nothing waits for a decision.")
		b.get("/history").want(http.StatusOK, "No change matches.")
	}
	nowhere := rival.get("/nowhere/at/all").want(http.StatusNotFound, "nothing that you may see", "Check the address")
	nowhere.wantOne("nav a[href='/history']")
	if strings.Contains(nowhere.text("main"), "what you entered") {
		t.Error("somebody who typed nothing is told to check it")
	}
	r.browser().get("/nowhere/at/all").want(http.StatusNotFound, "Check the address").wantNone("nav")
}

func TestDocumentIsTheBytesUnderTheDigest(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.pending(target.PlainJPY(0))
	kim := r.as("kim")
	href := kim.get("/changes/"+id.String()).Find("details a").AttrOr("href", "")
	got := kim.get(href)
	sum := sha256.Sum256([]byte(got.body))
	if want := r.status(id).Preview.Digest.String(); hex.EncodeToString(sum[:]) != want {
		t.Errorf("the file's SHA-256: got %x, want %s", sum, want)
	}
	if want := `attachment; filename="` + id.String() + `.json"`; got.header.Get("Content-Disposition") != want {
		t.Errorf("disposition: got %q, want %q", got.header.Get("Content-Disposition"), want)
	}
	if got.header.Get("Content-Type") != "application/json" || got.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("headers: got %v", got.header)
	}
}

func TestAssetsAreNamedByTheirContent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	b := r.browser()
	page := b.get("/sign-in")
	for selector, kind := range map[string]string{"link[rel=stylesheet]": "text/css", "link[rel=icon]": "image/svg+xml"} {
		href := page.wantOne(selector).AttrOr("href", "")
		got := b.get(href)
		if got.status != http.StatusOK || !strings.HasPrefix(got.header.Get("Content-Type"), kind) ||
			got.header.Get("Cache-Control") != "public, max-age=31536000, immutable" || got.header.Get("Content-Security-Policy") != wantCSP {
			t.Errorf("%s: got status %d, %v", href, got.status, got.header)
		}
		if strings.Contains(got.body, "url(") || strings.Contains(got.body, "@import") {
			t.Errorf("%s loads something else", href)
		}
		if stale := b.get(strings.Replace(href, ".", ".0", 1)); stale.status != http.StatusNotFound || strings.Contains(stale.header.Get("Cache-Control"), "immutable") {
			t.Errorf("another name: got status %d, %q, want 404", stale.status, stale.header.Get("Cache-Control"))
		}
	}
}

func TestNewRefusesWhatItCannotWorkWith(t *testing.T) {
	t.Parallel()
	if _, err := web.New(web.Deps{}); err == nil {
		t.Error("without anything: got no error")
	}
}
