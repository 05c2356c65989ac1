package main

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/chromedp/cdproto/network"
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
