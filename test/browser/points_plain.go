package main

// Point 24: pages that any browser, and any reader of screens, can use.

// withoutScripts approves one change and rejects another in a browser that runs no script at all.
func withoutScripts(w *scene) {
	yes, no, careful := w.pending(large), w.pending(large), w.pending(enormous)
	t := w.as("kim", unscripted, phone)
	t.open("/")
	t.follow(func() { t.press(`a[href$="` + yes.review() + `"]`) })
	t.approve()
	w.until("the approval", func() bool { return w.status(yes) == "approved" })
	t.open(no.review())
	t.write(`textarea[name=reason]`, "Not in this quarter, please.")
	t.reject()
	w.until("the rejection", func() bool { return w.status(no) == "rejected" })
	t.open(careful.review())
	t.write(`input[name=typed]`, careful.name)
	t.approve()
	w.until("the approval at high risk", func() bool { return w.status(careful) == "approved" })
}

// focusAtHeading wants the focus, after a refused form, on what is wrong, and the keyboard's first stop to be the way to the content.
func focusAtHeading(w *scene) {
	c := w.pending(large)
	t := w.as("kim")
	t.open(c.review())
	t.keys("\t")
	t.holds("the first stop leads to the content", `document.activeElement.matches('a[href="#main"]')`)
	t.keys("\r")
	t.until("the focus to be in the content", `document.activeElement?.id === 'main' || !!document.activeElement?.closest('main')`)
	t.watch.expect(`422|400`)
	t.reject()
	t.until("the focus to be on what is wrong", `!!document.activeElement?.closest('[role=alert]')`)
	w.says("what is wrong", t.text(`[role=alert]`), "missing or wrong")
	want(w, "the change afterwards", w.status(c), "pending")
}

// keyboardOnly approves one change and rejects another without a mouse.
func keyboardOnly(w *scene) {
	yes, no := w.pending(large), w.pending(large)
	t := w.as("kim")
	t.open("/")
	t.tabTo(`a[href*="` + yes.id + `"]`)
	t.follow(func() { t.keys("\r") })
	t.tabTo(`[data-open=approve]`)
	t.keys("\r")
	t.until("the form", `!!document.querySelector('dialog#decide[open]')`)
	t.tabTo(`button[value=approve]`)
	t.follow(func() { t.keys("\r") })
	w.until("the approval", func() bool { return w.status(yes) == "approved" })
	t.open(no.review())
	t.tabTo(`[data-open=reject]`)
	t.keys("\r")
	t.until("the form", `!!document.querySelector('dialog#decide[open]')`)
	t.tabTo(`textarea[name=reason]`)
	t.paste("Not in this quarter, please.")
	t.tabTo(`button[value=reject]`)
	t.follow(func() { t.keys(" ") })
	w.until("the rejection", func() bool { return w.status(no) == "rejected" })
	w.says("the page of what was rejected", t.page(), "Not in this quarter, please.")
}
