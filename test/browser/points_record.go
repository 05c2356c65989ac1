package main

import (
	"strings"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// Point 20: the record of a change.

// wholeLife wants every step of a change in its order, with the requests that made them, and the chain's check.
func wholeLife(w *scene) {
	c := w.pending(large)
	w.decides("kim", c, "approve")
	w.applies(c, "applied")
	t := w.as("auditor", inEnglish)
	t.open(c.whole())
	text := t.text(`.timeline`)
	at := -1
	for _, step := range []string{"Prepared", "Approval requested", "Approved", "Claimed", "Applied"} {
		next := strings.Index(text, step)
		if next <= at {
			w.fail("%q is not after what comes before it in %q", step, shorten(text))
		}
		at = next
	}
	all := eval[string](t, `document.querySelector('main').textContent`)
	s, err := w.api("auditor").Status(w.ctx, c.id, 0)
	w.must(err)
	for _, e := range s.Change.Events {
		w.says("the page", all, e.Hash)
	}
	w.says("the page", all, c.digest, "request_id")
	w.says("the chain's check", t.text("#record.whole"), "each hash covers")
	w.until("the seal over it", func() bool {
		t.open(c.whole())
		return strings.Contains(t.text("#record.whole"), "its signature was checked")
	})
	want(w, "forms that could change the record", t.count(`main form[method=post]`), 0)
}

// appendsOnly keeps a page open while its change goes on: what was there stays word for word, and the new steps come after it.
func appendsOnly(w *scene) {
	c := w.pending(large)
	t := w.as("auditor", inEnglish)
	t.open(c.whole())
	t.connected()
	before := eval[[]string](t, `[...document.querySelectorAll('.timeline > li')].map(e => e.id)`)
	w.decides("kim", c, "approve")
	t.until("the next step", `n => document.querySelectorAll('.timeline > li').length > n`, len(before))
	after := eval[[]string](t, `[...document.querySelectorAll('.timeline > li')].map(e => e.id)`)
	for i, id := range before {
		want(w, "a step that was there before", after[i], id)
	}
}

// printed wants the record on paper: what is folded on the screen is open, and no button or menu is printed.
func printed(w *scene) {
	c := w.pending(large)
	w.decides("kim", c, "approve")
	w.applies(c, "applied")
	t := w.as("auditor", inEnglish)
	t.open(c.whole())
	pdf, err := chromedp.Run(t.ctx, chromedp.PrintToPDF(chromedp.PDFPaper(chromedp.PaperA4)))
	w.must(err)
	if len(pdf) < 5000 || !strings.HasPrefix(string(pdf), "%PDF") {
		w.fail("the print has %d bytes", len(pdf))
	}
	_, err = callOf(t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
	w.must(err)
	t.settle()
	want(w, "menus on paper", t.seen(`nav, footer button, .langs a, #news, .bar`), 0)
	want(w, "evidence that stays folded on paper", eval[int](t, `[...document.querySelectorAll('.timeline details > :not(summary)')].filter(e => e.getBoundingClientRect().height === 0).length`), 0)
}
