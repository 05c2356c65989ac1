package main

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
)

// Points 25 and 26: what a page may do, and who may send a form.

// headers are what the console answers for a path to whoever is signed in here.
func (t *tab) headers(path string) http.Header {
	request, err := http.NewRequestWithContext(t.w.ctx, http.MethodGet, t.w.door.URL+path, nil)
	t.w.must(err)
	request.AddCookie(&http.Cookie{Name: sessionCookie, Value: t.cookie().Value})
	response, err := t.w.door.Client().Do(request)
	t.w.must(err)
	_ = response.Body.Close()
	return response.Header
}

// inlineRefused puts scripts into a page as an injection would, and wants the browser to refuse them aloud.
func inlineRefused(w *scene) {
	t := w.as("kim")
	t.open("/")
	t.watch.expect(`[Cc]ontent.?[Ss]ecurity.?[Pp]olicy|Trusted ?(Type|HTML|Script)`)
	eval[bool](t, `(() => {
		const s = document.createElement('script');
		try { s.text = 'window.injected = 1'; document.head.append(s); } catch {}
		return true;
	})()`)
	eval[bool](t, `(() => { try { const b = document.createElement('button'); b.setAttribute('onclick', 'window.injected = 2'); document.body.append(b); b.click(); } catch {} return true; })()`)
	refused := eval[string](t, `(() => { try { document.body.insertAdjacentHTML('beforeend', '<img src=x onerror="window.injected = 3">'); return 'taken'; } catch (e) { return e.name; } })()`)
	want(w, "markup from a string", refused, "TypeError")
	refused = eval[string](t, `(() => { try { document.write('<p>'); return 'taken'; } catch (e) { return e.name; } })()`)
	want(w, "a document written from a string", refused, "TypeError")
	refused = eval[string](t, `(() => { try { trustedTypes.createPolicy('attacker', {createHTML: s => s}); return 'taken'; } catch (e) { return e.name; } })()`)
	want(w, "a policy of the attacker's", refused, "TypeError")
	styled := eval[string](t, `(() => { const s = document.createElement('style'); s.textContent = 'body { outline: 7px solid }'; document.head.append(s); return getComputedStyle(document.body).outlineWidth; })()`)
	w.never("the outline after a style of the attacker's", styled, "7px")
	t.settle()
	t.holds("nothing was run", `window.injected === undefined`)
}

// neverFramed puts a page into another site's frame, where clicks can be stolen.
func neverFramed(w *scene) {
	c := w.pending(large)
	evil := w.site(`<!doctype html><html lang="en"><title>evil</title><link rel="icon" href="data:,"><iframe title="f" src="` + w.door.URL + c.review() + `"></iframe></html>`)
	t := w.as("kim")
	t.watch.expect(`frame-ancestors|ERR_BLOCKED_BY_RESPONSE|ERR_BLOCKED_BY_CSP|ContentSecurityPolicyIssue|CookieIssue`)
	t.open(evil)
	t.settle()
	frames, err := callOf(t, page.GetFrameTree, cdp.Empty{})
	w.must(err)
	for _, f := range frames.FrameTree.ChildFrames {
		w.never("the frame's address", f.Frame.URL, "/review")
	}
}

// site is another site, with one page.
func (w *scene) site(html string) string {
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = rw.Write([]byte(html))
	}))
	w.onEnd(s.Close)
	// Another site, and not only another port: a site is a name.
	return strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
}

// ownCookie wants the one cookie as strict as a browser can keep it, and out of scripts' reach.
func ownCookie(w *scene) {
	t := w.tab()
	t.throughTheDoor("kim", "/")
	c := t.cookie()
	if !c.HTTPOnly || !c.Secure || c.SameSite != network.CookieSameSiteLax || c.Path != "/" || !strings.HasPrefix(c.Name, "__Host-") {
		w.fail("the cookie is %+v", c)
	}
	t.watch.expect(`PerformanceIssue`) // the auditor's word on scripts that read cookies, as this check does
	want(w, "what scripts see of it", eval[string](t, `document.cookie`), "")
	got, err := callOf(t, network.GetCookies, network.GetCookiesParams{URLs: []string{w.door.URL}})
	w.must(err)
	want(w, "cookies", len(got.Cookies), 1)
	want(w, "keys in the browser's storage", eval[int](t, `localStorage.length + sessionStorage.length`), 0)
}

// throughTheDoor signs somebody in as people do: by the identity provider's page.
func (t *tab) throughTheDoor(who, next string) {
	t.w.provider.expect(t.w.tenant)
	t.open(next)
	t.shows("Who are you?")
	t.follow(func() { t.press("#" + who) })
	t.until("to be back at the console", `o => location.origin === o`, t.w.door.URL)
}

// otherSitesRefused has another site post the form of a decision with the approver's cookie in the browser, and link to its address.
func otherSitesRefused(w *scene) {
	c := w.pending(large)
	form := `<form method="post" action="` + w.door.URL + `/changes/` + c.id + `/decision"><input name="digest" value="` + c.digest + `">
		<button id="go" name="decision" value="approve">win</button></form><a id="link" href="` + w.door.URL + `/changes/` + c.id + `/decision?decision=approve&amp;digest=` + c.digest + `">read</a>`
	evil := w.site(`<!doctype html><html lang="en"><title>evil</title><link rel="icon" href="data:,">` + form + `</html>`)
	t := w.as("kim")
	t.watch.expect(`HTTP 403|status of 403|HTTP 401|status of 401|GenericIssue|CookieIssue`)
	t.open(evil)
	t.follow(func() { t.press("#go") })
	_, status := t.watch.last()
	if status != http.StatusForbidden && status != http.StatusUnauthorized {
		w.fail("another site's form: got HTTP %d, want a refusal", status)
	}
	want(w, "the change after another site's form", w.status(c), "pending")
	t.open(evil)
	t.follow(func() { t.press("#link") })
	t.until("the change itself", `p => location.pathname.startsWith(p)`, c.whole())
	want(w, "the change after a link to the deciding address", w.status(c), "pending")
}

// linksDecideNothing opens the deciding addresses as links of a chat or a mail, signed in.
func linksDecideNothing(w *scene) {
	c := w.pending(large)
	t := w.as("kim")
	for _, path := range []string{"/decision", "/probe", "/resolution", "/apply"} {
		query := url.Values{"decision": {"approve"}, "digest": {c.digest}, "outcome": {"applied"}, "reason": {"a link said so"}, "evidence": {"a link"}}
		t.watch.expect(`HTTP 40[45]|status of 40[45]`)
		t.open("/changes/" + c.id + path + "?" + query.Encode())
		want(w, "the change after opening "+path, w.status(c), "pending")
	}
	t.open(c.review())
	t.approve()
	w.until("the honest approval", func() bool { return w.status(c) == "approved" })
}
