package main

import "github.com/chromedp/chromedp/kb"

// Point 18: keys.

// keysWork goes through the queue and decides with keys alone, and wants them to do nothing where somebody writes.
func keysWork(w *scene) {
	list := []change{w.pending(large), w.pending(large), w.pending(large)}
	t := w.as("kim", inEnglish)
	t.open("/")
	focused := func() string {
		return eval[string](t, `document.activeElement.closest('li')?.id ?? ''`)
	}
	t.keys("j")
	first := focused()
	t.keys("j")
	second := focused()
	if first == "" || second == "" || first == second {
		w.fail("j leads from %q to %q", first, second)
	}
	t.keys("k")
	want(w, "the row after j, j, k", focused(), first)
	t.keys("?")
	t.until("the help", `!!document.querySelector('dialog#keys[open]')`)
	t.keys(kb.Escape)
	t.until("the help to be gone", `!document.querySelector('dialog#keys[open]')`)
	t.follow(func() { t.keys(kb.Enter) })
	t.until("the review", `/\/review$/.test(location.pathname)`)
	// a opens the form and decides nothing; its letter is not typed into the form.
	t.keys("a")
	t.until("the form", `document.querySelector('dialog#decide').open`)
	t.settle()
	want(w, "the reason after the key", t.value(`textarea[name=reason]`), "")
	for _, c := range list {
		want(w, "a change after the key a", w.status(c), "pending")
	}
	t.keys(kb.Escape)
	t.until("the form to be gone", `!document.querySelector('dialog#decide').open`)
	t.keys("r")
	t.until("the form", `document.querySelector('dialog#decide').open`)
	t.settle()
	t.holds("the reason has the focus, and is empty", `document.activeElement.name === 'reason' && document.activeElement.value === ''`)
	// In a field the letters are letters.
	t.keys("jar?")
	want(w, "letters in a field", t.value(`textarea[name=reason]`), "jar?")
	t.until("one dialog alone", `document.querySelectorAll('dialog[open]').length === 1`)
}

// composing writes Japanese with an input method: the keys that it takes for itself do nothing else, and Enter ends the word and sends no form.
func composing(w *scene) {
	c := w.pending(large)
	t := w.as("tanaka")
	t.open(c.review())
	// On the page, outside of fields: what the input method takes is no key of ours.
	for _, key := range []string{"a", "r", "?"} {
		t.processed(key)
	}
	t.settle()
	want(w, "dialogs after keys of the input method", t.count(`dialog[open]`), 0)
	t.keys("r")
	t.until("the form", `document.querySelector('dialog#decide').open`)
	for _, part := range []string{"よ", "よさ", "予算"} {
		t.compose(part)
		t.processed("a")
	}
	t.processed(kb.Enter)
	t.paste("予算")
	t.settle()
	want(w, "what was written", t.value(`textarea[name=reason]`), "予算")
	t.paste("が多すぎます。")
	want(w, "the change while somebody writes", w.status(c), "pending")
	t.follow(func() { t.press(`button[value=reject]`) })
	w.until("the rejection", func() bool { return w.status(c) == "rejected" })
	w.says("the page", t.page(), "予算が多すぎます。")
}

// switchedOff wants the keys off when somebody has said so, and still off on the next page.
func switchedOff(w *scene) {
	c := w.pending(large)
	t := w.as("kim", inEnglish)
	t.open(c.review())
	t.press(`#keys-open`)
	t.until("the help", `!!document.querySelector('dialog#keys[open]')`)
	t.press(`label:has(#keys-on)`)
	t.keys(kb.Escape)
	t.open(c.review())
	t.keys("a")
	t.keys("?")
	t.settle()
	want(w, "dialogs after keys that are off", t.count(`dialog[open]`), 0)
}
