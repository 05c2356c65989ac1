package main

import (
	"strconv"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// Points 8, 9 and 19: what the page knows, and until when.

// freshTold wants how long ago the target was read, going on by itself, and a target that has moved in place of the button.
func freshTold(w *scene) {
	c, moved := w.pending(large), w.moved()
	t := w.as("kim", inEnglish)
	t.open(c.review())
	first := t.text(`[data-since]`)
	t.until("the time since the look to go on", `was => document.querySelector('[data-since]').innerText !== was`, first)
	t.open(moved.review())
	t.shows("123,456 JPY", "100,000 JPY", "prepared again")
	want(w, "buttons to approve what has moved", t.seen(`[data-open=approve], button[value=approve]`), 0)
	t.ask("reject")
	t.write(`textarea[name=reason]`, "It has moved.")
	t.reject()
	w.until("the rejection", func() bool { return w.status(moved) == "rejected" })
}

// expiresWhileOpen has a page open when time runs out: it counts down, and its buttons go dead, without a reload and with the typed text
// kept. What is sent all the same is refused.
func expiresWhileOpen(w *scene) {
	w.door = w.hasty
	c := w.pending(large)
	t := w.as("kim", inEnglish)
	t.open(c.review())
	eval[bool](t, `window.stillHere = true`)
	before := t.text(`[data-until]`)
	t.until("the countdown to go on", `was => document.querySelector('[data-until]').innerText !== was`, before)
	t.ask("approve")
	t.write(`textarea[name=reason]`, "Just in time?")
	t.until("the buttons to go dead", `document.querySelector('button[value=approve]')?.disabled`)
	t.holds("the page was not loaded again", `window.stillHere === true`)
	want(w, "what was typed", t.value(`textarea[name=reason]`), "Just in time?")
	w.until("the end", func() bool { return w.status(c) == "expired" })
	t.watch.expect(`HTTP 4[0-9][0-9]|status of 4`)
	eval[bool](t, `(document.querySelector('button[value=approve]').disabled = false, document.querySelectorAll('form[data-sent]').forEach(f => delete f.dataset.sent), true)`)
	t.follow(func() { t.press(`button[value=approve]`) })
	t.shows("time ran out")
	want(w, "the change", w.status(c), "expired")
}

// clockOfTheServer wants a countdown that goes by the server's clock: the browser's own is told to be an hour ahead.
func clockOfTheServer(w *scene) {
	w.door = w.hasty
	c := w.pending(large)
	t := w.as("kim", inEnglish)
	t.clockAhead(time.Hour)
	t.open(c.review())
	t.holds("the browser's clock is wrong", `Math.abs(Date.now() - performance.timeOrigin) > 3000000`)
	left := t.text(`[data-until]`)
	w.never("what is left", left, "time is up")
	t.until("a countdown of seconds", `/0:[0-5][0-9]/.test(document.querySelector('[data-until]').innerText)`)
}

// notBefore wants a page that shows nothing as approved before the server has said so, and sends a form once, however often it is pressed.
func notBefore(w *scene) {
	c := w.pending(vast)
	t := w.as("kim", inEnglish)
	t.open(c.review())
	t.ask("approve")
	arrived, release := w.door.hold("POST", c.whole()+"/decision")
	w.onEnd(release)
	// While the answer is awaited the browser lets nobody look into the page: the page itself notes what it comes to show.
	eval[bool](t, `(() => {
		window.stillHere = true;
		sessionStorage.shown = '';
		new MutationObserver(() => { sessionStorage.shown += document.body.innerText; }).observe(document.body, {subtree: true, childList: true, characterData: true, attributes: true});
		return true;
	})()`)
	at := t.spotOf(`button[value=approve]`)
	for range 2 {
		w.must(chromedp.Do(t.ctx, chromedp.MouseClickXY(at.X, at.Y)))
	}
	select {
	case <-arrived:
	case <-time.After(patience):
		w.fail("the decision does not arrive")
	}
	want(w, "the change meanwhile", w.status(c), "pending")
	release()
	t.until("what the server has said", `!window.stillHere && document.readyState === 'complete'`)
	w.never("the page while the decision was under way", eval[string](t, `sessionStorage.shown`), "1 of 2", "kim@agency.example approve")
	t.shows("1 of 2")
	s, err := w.api("agent").Status(w.ctx, c.id, 0)
	w.must(err)
	votes := 0
	for _, e := range s.Change.Events {
		if e.Kind == "vote" {
			votes++
		}
	}
	want(w, "votes of one who pressed twice", strconv.Itoa(votes), "1")
}

// clockAhead sets the browser's clock wrong for every page from now on.
func (t *tab) clockAhead(by time.Duration) {
	_, err := callOf(t, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: `{
		const Right = Date, ahead = ` + strconv.FormatInt(by.Milliseconds(), 10) + `;
		globalThis.Date = class extends Right {
			constructor(...of) { if (of.length) super(...of); else super(Right.now() + ahead); }
			static now() { return Right.now() + ahead; }
		};
	}`})
	t.w.must(err)
}
