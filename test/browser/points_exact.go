package main

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/chromedp/cdproto/network"

	"github.com/cutonce/cutonce/internal/target"
)

// Point 1.

// shownHashedSent follows one amount from the page through the digest to the platform.
func shownHashedSent(w *scene) {
	c := w.pending(large)
	t := w.as("kim")
	t.open(c.review())
	t.shows("200,000", c.digest, c.name)
	document := t.download("/changes/" + c.id + "/document")
	sum := sha256.Sum256(document)
	want(w, "the hash of the document that is offered", hex.EncodeToString(sum[:]), c.digest)
	w.says("the document", string(document), c.campaign, strconv.Itoa(large))
	t.approve()
	posted, _ := t.watch.last()
	form, err := url.ParseQuery(posted)
	w.must(err)
	want(w, "the digest in the form", form.Get("digest"), c.digest)
	w.until("the approval", func() bool { return w.status(c) == "approved" })
	w.applies(c, "applied")
	sent, err := w.f.Ads.Campaign(w.ctx, c.campaign)
	w.must(err)
	want(w, "the budget at the platform", sent.DailyBudget, strconv.Itoa(large))
	want(w, "effects", w.effects(c), 1)
}

// staleDigest decides on a page that shows another digest than the one that is stored.
func staleDigest(w *scene) {
	c, other := w.pending(large), w.pending(large)
	t := w.as("kim")
	t.open(c.review())
	// The page is as somebody has it whose change was replaced under them: the form holds another digest.
	eval[bool](t, `d => { document.querySelector('form input[name=digest]').value = d; return true; }`, other.digest)
	t.watch.expect(`409`)
	t.approve()
	t.shows("is not what is stored", "nothing has been recorded")
	want(w, "the change afterwards", w.status(c), "pending")
	want(w, "the other change afterwards", w.status(other), "pending")
}

// Points 2 to 6.

// impactTold wants count, difference and percent, what cannot be known as unknown and not as 0, the cap, and whether it can be undone.
func impactTold(w *scene) {
	c := w.pending(large)
	t := w.as("kim", inEnglish)
	t.open(c.review())
	t.shows("+100%", "+100,000 JPY", "put back to 100,000 JPY")
	w.says("what is left of the cap", t.page(), "campaign_day", "5,000,000 JPY")
	zero := w.asks("agent", w.prepares("agent", target.CampaignZeroBudget, "休眠顧客の掘り起こし", 3000, "Wake them up."))
	t.open(zero.review())
	t.shows("unknown", "+3,000 JPY")
	percent := eval[string](t, `[...document.querySelectorAll('.figures > div')].find(e => e.innerText.includes('percent'))?.innerText ?? ''`)
	w.says("the percentage from zero", percent, "unknown")
	w.never("the percentage from zero", percent, "0%")
}

// beforeAfter wants both values of each field in words for who cannot see colours, and the exact bytes one press away.
func beforeAfter(w *scene) {
	c := w.pending(large)
	t := w.as("kim", inEnglish)
	t.open(c.review())
	w.says("the field", eval[string](t, `document.querySelector('.diff').textContent`), "Daily budget", "Before:", "100,000 JPY", "After:", "200,000 JPY")
	want(w, "the raw bytes before they are asked for", t.seen("pre.raw"), 0)
	t.press(`details:has(pre.raw) > summary`)
	t.until("the raw bytes", `document.querySelector('pre.raw').checkVisibility()`)
	document := string(t.download("/changes/" + c.id + "/document"))
	want(w, "the raw bytes on the page", eval[string](t, `document.querySelector('pre.raw').textContent`), document)
	w.says("the digest beside them", t.page(), c.digest)
}

// riskiestFirst wants the row that imitates another first, though the platform names it second.
func riskiestFirst(w *scene) {
	c, version := w.odd()
	t := w.as("nguyen")
	t.open(c.review())
	if rows := t.count(`main > article .diff > div`); rows < 2 {
		w.fail("there are %d rows, want several", rows)
	}
	w.says("the first row", eval[string](t, `document.querySelector('main > article .diff > div').textContent.replace(/⟨U[+][0-9A-F]+⟩/g, '')`), version)
}

// riskyRowsSeen has a row that hides something: the change cannot be approved before the row was on the screen, with
// scripts by having been there, without them by a box to tick, and the server asks for it whatever the page does.
func riskyRowsSeen(w *scene) {
	c, _ := w.odd()
	t := w.as("nguyen", phone)
	t.open(c.review())
	t.until("the row to have been seen", `document.querySelector('input[name=seen]').checked`)
	t.approve()
	w.until("the approval", func() bool { return w.statusFor("mori-agent", c) == "approved" })

	other, _ := w.odd()
	plain := w.as("nguyen", unscripted)
	plain.open(other.review())
	want(w, "ticked without scripts", eval[bool](plain, `document.querySelector('input[name=seen]').checked`), false)
	plain.loosen()
	plain.watch.expect(`HTTP 4[0-9][0-9]|status of 4`)
	plain.approve()
	want(w, "the change whose row was not seen", w.statusFor("mori-agent", other), "pending")
	plain.press(`label:has(input[name=seen])`)
	plain.approve()
	w.until("the approval", func() bool { return w.statusFor("mori-agent", other) == "approved" })
}

// nothingCut wants every row of a change there, whole, however long its values are.
func nothingCut(w *scene) {
	name := "Sale of everything that was left over from the summer, in every shop, until the last piece has gone 5d1e"
	id := w.campaignNamed(name)
	c := w.asks("agent", w.prepares("agent", id, name, large, strings.Repeat("All of it has to be read. ", 18)))
	t := w.as("kim", phone)
	t.open(c.review())
	w.says("the page", t.page(), name, strings.TrimSpace(strings.Repeat("All of it has to be read. ", 18)))
	hidden := eval[[]string](t, `[...document.querySelectorAll('main *')].filter(e => e.checkVisibility() && (getComputedStyle(e).textOverflow === 'ellipsis' || getComputedStyle(e).webkitLineClamp !== 'none')).map(e => e.outerHTML.slice(0, 100))`)
	if len(hidden) > 0 {
		w.fail("this may be cut silently: %v", hidden)
	}
	long := strings.Repeat("x", 60)
	t.open("/")
	w.never("the queue", t.page(), long)
	t.holds("where the queue shows less than all it says so", `!document.body.innerText.includes('…') || /more on/i.test(document.body.innerText)`)
}

// ruleTold wants the rule that asks for people, its version, and the values that it saw.
func ruleTold(w *scene) {
	c := w.pending(large)
	t := w.as("kim", inEnglish)
	t.open(c.review())
	t.shows("large-raise")
	t.press(`details:has(dt) > summary:nth-of-type(1)`)
	s, err := w.api("agent").Status(w.ctx, c.id, 0)
	w.must(err)
	all := eval[string](t, `document.querySelector('main').textContent`)
	w.says("the page", all, "change.daily_budget", "+100%", s.Change.Ruling.PolicyVersion)
}

// download is what the console gives for a path to whoever is signed in here.
func (t *tab) download(path string) []byte {
	request, err := http.NewRequestWithContext(t.w.ctx, http.MethodGet, t.w.door.URL+path, nil)
	t.w.must(err)
	request.AddCookie(&http.Cookie{Name: sessionCookie, Value: t.cookie().Value})
	response, err := t.w.door.Client().Do(request)
	t.w.must(err)
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	t.w.must(err)
	want(t.w, "downloading "+path, response.StatusCode, http.StatusOK)
	return raw
}

// cookie is the session's.
func (t *tab) cookie() *network.Cookie {
	got, err := callOf(t, network.GetCookies, network.GetCookiesParams{URLs: []string{t.w.door.URL}})
	t.w.must(err)
	for _, c := range got.Cookies {
		if c.Name == sessionCookie {
			return c
		}
	}
	t.w.fail("there is no session's cookie in %s", t.name)
	return nil
}
