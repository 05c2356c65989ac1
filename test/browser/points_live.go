package main

import (
	"net/http"

	"github.com/chromedp/cdproto/network"

	"github.com/cutonce/cutonce/test/fleet"
)

// Points 16 and 17: pages that stay true, and hands that are not disturbed.

// connected waits until a page's stream is open.
func (t *tab) connected() {
	w := t.w
	w.until("the stream to be open", func() bool { now, _ := w.door.streaming(); return now > 0 })
	t.until("the page to know it", `document.getElementById('link').className === 'on'`)
}

// rowOf is a change's row in the queue.
func rowOf(c change) string { return `#row-` + c.id }

// nothingJumps lets changes arrive while somebody points at a row, has the focus on another, and then looks at the new ones.
func nothingJumps(w *scene) {
	var list []change
	for range 3 {
		list = append(list, w.pending(large))
	}
	t := w.as("kim", inEnglish)
	t.open("/")
	t.connected()
	want(w, "rows", t.count(`#rows > li`), 3)
	at := t.hover(rowOf(list[1]))
	eval[bool](t, `s => (document.querySelector(s).focus({preventScroll: true}), true)`, rowOf(list[2])+` h2 a`)
	top := eval[float64](t, `s => document.querySelector(s).getBoundingClientRect().top`, rowOf(list[1]))
	fresh := w.pending(large)
	t.until("the news", `!document.getElementById('news').hidden && document.getElementById('news').innerText.includes('1')`)
	want(w, "rows before they are asked for", t.count(`#rows > li`), 3)
	want(w, "where the row under the pointer is", eval[float64](t, `s => document.querySelector(s).getBoundingClientRect().top`, rowOf(list[1])), top)
	t.holds("the pointer is still on that row", `(x, y, s) => !!document.elementFromPoint(x, y)?.closest(s)`, at.X, at.Y, rowOf(list[1]))
	t.holds("the focus is where it was", `s => document.activeElement === document.querySelector(s)`, rowOf(list[2])+` h2 a`)
	// What is decided elsewhere stays on its place as well, and says so.
	w.decides("tanaka", list[0], "approve")
	t.until("the row to be marked as over", `s => document.querySelector(s).classList.contains('gone')`, rowOf(list[0]))
	want(w, "rows after one was decided", t.count(`#rows > li`), 3)
	t.press(`#news`)
	t.until("the new row", `s => !!document.querySelector(s)`, rowOf(fresh))
}

// typingUndisturbed lets a change move while somebody writes a reason: text, focus and caret stay, and the page tells what is new.
func typingUndisturbed(w *scene) {
	c := w.pending(vast)
	t := w.as("kim", inEnglish)
	t.open(c.review())
	t.connected()
	t.ask("approve")
	t.write(`textarea[name=reason]`, "Half of what I want to")
	eval[bool](t, `(e => (e.setSelectionRange(4, 4), true))(document.querySelector('textarea[name=reason]'))`)
	w.decides("tanaka", c, "approve")
	t.until("the vote on the page", `document.querySelector('main').textContent.includes('tanaka@agency.example')`)
	want(w, "what was typed", t.value(`textarea[name=reason]`), "Half of what I want to")
	t.holds("the focus and the caret are where they were", `(e => document.activeElement === e && e.selectionStart === 4)(document.querySelector('textarea[name=reason]'))`)
	t.holds("the form is still open", `document.querySelector('dialog#decide').open`)
	t.follow(func() { t.press(`button[value=approve]`) })
	w.until("the approval", func() bool { return w.status(c) == "approved" })
}

// nothingLost drops the stream, lets changes come meanwhile, and wants every one of them told once the stream is back.
func nothingLost(w *scene) {
	first := w.pending(large)
	t := w.as("kim", inEnglish)
	t.open("/")
	t.connected()
	t.watch.expect(`/live|ERR_HTTP2|ERR_CONNECTION|ERR_FAILED|ERR_INCOMPLETE`)
	w.door.refuse(true)
	w.door.cut()
	t.until("the page to say that it is not connected", `document.getElementById('link').className !== 'on' && document.getElementById('link').innerText.trim() !== ''`)
	missed := w.pending(large)
	w.door.refuse(false)
	t.until("what was missed", `!document.getElementById('news').hidden`)
	t.press(`#news`)
	t.until("the row that was missed", `s => !!document.querySelector(s)`, rowOf(missed))
	t.holds("and the one before", `s => !!document.querySelector(s)`, rowOf(first))
}

// resumed loses the stream for a moment only: it comes back by itself, and what happened in between is told.
func resumed(w *scene) {
	t := w.as("kim", inEnglish)
	w.pending(large)
	t.open("/")
	t.connected()
	t.watch.expect(`/live|ERR_HTTP2|ERR_CONNECTION|ERR_FAILED|ERR_INCOMPLETE`)
	_, before := w.door.streaming()
	w.door.cut()
	missed := w.pending(large)
	w.until("the stream to be back", func() bool { now, ever := w.door.streaming(); return now > 0 && ever > before })
	t.until("the news", `!document.getElementById('news').hidden`)
	t.press(`#news`)
	t.until("the row", `s => !!document.querySelector(s)`, rowOf(missed))
}

// polled refuses streams for good: the page says that it asks by itself, and does.
func polled(w *scene) {
	w.door.refuse(true)
	w.onEnd(func() { w.door.refuse(false) })
	w.pending(large)
	t := w.as("kim", inEnglish)
	t.watch.expect(`/live|HTTP 503|status of 503`)
	t.open("/")
	t.until("the page to say so", `document.getElementById('link').className === 'poll' && document.getElementById('link').innerText.trim() !== ''`)
	come := w.pending(large)
	t.until("the news without a stream", `!document.getElementById('news').hidden`)
	t.press(`#news`)
	t.until("the row", `s => !!document.querySelector(s)`, rowOf(come))
}

// statesWritten wants words where there is nothing, nowhere, and nobody who may.
func statesWritten(w *scene) {
	t := w.as("kim", inEnglish)
	for path, words := range map[string]string{"/": "waits", "/outcomes": "no unknown outcome", "/history": "No change matches"} {
		t.open(path)
		t.shows(words)
	}
	t.watch.expect(`HTTP 404|status of 404`)
	t.open("/changes/pv_06h2n000000000000000000000/review")
	t.shows("Not found")
	c := w.pending(large)
	reader := w.as("auditor", inEnglish)
	reader.open(c.review())
	reader.shows("You cannot decide this")
	want(w, "buttons for who only reads", reader.seen(`[data-open], button[name=decision]`), 0)
	// Somebody whose session has ended is told so, and what was typed is shown again.
	t.open(c.review())
	t.ask("reject")
	t.write(`textarea[name=reason]`, "A reason that took a while.")
	_, err := callOf(t, network.DeleteCookies, network.DeleteCookiesParams{Name: sessionCookie, URL: w.door.URL})
	w.must(err)
	t.watch.expect(`HTTP 401|status of 401`)
	t.follow(func() { t.press(`button[value=reject]`) })
	t.shows("Sign in")
	t.holds("what was typed is there", `[...document.querySelectorAll('textarea')].some(e => e.value === 'A reason that took a while.')`)
	want(w, "the change", w.status(c), "pending")
}

// thousand has a thousand changes wait, on a service of their own: the first page comes soon, and everything on it works.
func thousand(w *scene) {
	d, err := w.stage.crowded(w.ctx)
	w.must(err)
	w.door = d
	w.tenant = "crowd"
	const many = 1000
	id, name := w.campaign()
	agent := w.api("agent")
	for n := range many {
		r, err := agent.Do(w.ctx, http.MethodPost, "/v1/actions/budget_change/previews", map[string]any{
			"campaign_id": id, "new_daily_budget_jpy": large + n, "expect_campaign_name": name, "reason": "One of a thousand.",
		})
		w.must(err)
		if r.PreviewID == "" {
			w.fail("preparing the %dth: %s", n, r.Message)
		}
		r, err = agent.Request(w.ctx, r.PreviewID)
		w.must(err)
		want(w, "asking ("+r.Message+")", r.Status, "pending")
	}
	t := w.as("kim", inEnglish, phone)
	t.open("/")
	took := eval[float64](t, `performance.getEntriesByType('navigation')[0].responseEnd - performance.getEntriesByType('navigation')[0].requestStart`)
	if took > 3000 {
		w.fail("the first page takes %.0f ms", took)
	}
	if rows := t.count(`#rows > li`); rows < 10 || rows > 100 {
		w.fail("there are %d rows on the first page", rows)
	}
	t.connected()
	one := w.asks("agent", w.prepares("agent", id, name, fleet.Budget*2+many, "The thousand and first."))
	t.open(one.review())
	t.approve()
	w.until("the approval", func() bool { return w.status(one) == "approved" })
	t.open("/")
	t.follow(func() { t.press(`main a.button[href*="after"], main a.button[href*="cursor"]`) })
	if rows := t.count(`#rows > li`); rows < 10 {
		w.fail("there are %d rows on the second page", rows)
	}
}
