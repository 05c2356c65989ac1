package main

// Points 10 to 15: who decides, and how.

// quorumTold follows a change that two people must approve.
func quorumTold(w *scene) {
	c := w.pending(vast)
	kim, tanaka := w.as("kim"), w.as("tanaka", inEnglish)
	kim.open(c.review())
	kim.shows("0 of 2", "ads-approvers")
	kim.approve()
	want(w, "after one of two", w.status(c), "pending")
	tanaka.open(c.review())
	tanaka.shows("1 of 2", "kim@agency.example", c.digest)
	tanaka.holds("the vote has its time", `[...document.querySelectorAll('.votes time')].length >= 1`)
	kim.open(c.review())
	kim.shows("1 of 2")
	want(w, "buttons to approve for who has voted", kim.count(`button[value=approve]`), 0)
	tanaka.approve()
	w.until("the approval", func() bool { return w.status(c) == "approved" })
	tanaka.open(c.whole())
	w.says("the whole story", eval[string](tanaka, `document.querySelector('main').textContent`), "kim@agency.example", "tanaka@agency.example")
}

// ownChangeExplained wants the requester, who is an approver as well, told why they cannot decide.
func ownChangeExplained(w *scene) {
	id, name := w.campaign()
	c := w.asks("boss", w.prepares("boss", id, name, large, "The autumn sale begins on Friday."))
	t := w.as("boss")
	t.open(c.review())
	t.shows("You cannot decide this", "You asked for this change")
	want(w, "buttons to approve", t.seen(`button[value=approve]`), 0)
	stranger := w.as("auditor")
	stranger.open(c.review())
	stranger.shows("You cannot decide this", "in none of these groups")
	want(w, "buttons for somebody of no group", stranger.seen(`button[name=decision]`), 0)
}

// rejectAsEasy rejects with as many presses as approving takes, and a reason that is too short is refused by the server.
func rejectAsEasy(w *scene) {
	c := w.pending(large)
	t := w.as("kim", phone)
	t.open(c.review())
	t.holds("both buttons are of one size", `(() => {
		const [a, b] = ['approve', 'reject'].map(v => document.querySelector('[data-open=' + v + ']').getBoundingClientRect());
		return Math.abs(a.height - b.height) < 1 && Math.abs(a.width - b.width) < 1 && Math.abs(a.top - b.top) < 1;
	})()`)
	t.ask("reject")
	// The page's own hint is no guard: the server refuses, whatever the page lets through.
	eval[bool](t, `(document.querySelectorAll('textarea').forEach(e => { e.required = false; e.minLength = 0; }), document.querySelectorAll('form').forEach(f => f.noValidate = true), true)`)
	t.watch.expect(`422|400`)
	t.write(`textarea[name=reason]`, "n")
	t.reject()
	w.says("the refusal", t.page(), "at least 2 characters")
	want(w, "what was typed", t.value(`textarea[name=reason]`), "n")
	want(w, "the change", w.status(c), "pending")
	t.write(`textarea[name=reason]`, "ot in this quarter")
	t.reject()
	w.until("the rejection", func() bool { return w.status(c) == "rejected" })
}

// typedConfirmation approves at high risk: only the exact name does, in any normal form, and pasted as well as typed.
func typedConfirmation(w *scene) {
	name := "Caf\u00e9 \u30d6\u30e9\u30f3\u30c9 7f3"                    // é and ブ as one character each
	decomposed := "Cafe\u0301 \u30d5\u3099\u30e9\u30f3\u30c8\u3099 7f3" // and as two, as some keyboards write them
	id := w.campaignNamed(name)
	c := w.asks("agent", w.prepares("agent", id, name, enormous, "The autumn sale begins on Friday."))
	t := w.as("kim")
	t.open(c.review())
	t.shows(name)
	t.ask("approve")
	t.shows("high risk")
	t.watch.expect(`422|400`)
	t.loosen()
	t.write(`input[name=typed]`, "Cafe \u30d6\u30e9\u30f3\u30c9 7f3")
	t.write(`textarea[name=reason]`, "Agreed with finance.")
	t.approve()
	want(w, "after a name that is nearly it", w.status(c), "pending")
	want(w, "the reason, kept", t.value(`textarea[name=reason]`), "Agreed with finance.")
	t.loosen()
	t.write(`input[name=typed]`, decomposed)
	t.approve()
	w.until("the approval", func() bool { return w.status(c) == "approved" })
}

// loosen takes the page's own hints away, which guard nothing.
func (t *tab) loosen() {
	eval[bool](t, `(document.querySelectorAll('input, textarea').forEach(e => { e.required = false; e.removeAttribute('pattern'); }), document.querySelectorAll('form').forEach(f => f.noValidate = true), true)`)
}

// freshLogin approves at high risk with a sign-in of three hours ago: refused in words, the way to a fresh one beside it, and after
// it the approval counts.
func freshLogin(w *scene) {
	c := w.pending(enormous)
	t := w.as("kim", longAgo)
	t.open(c.review())
	t.watch.expect(`401`)
	t.ask("approve")
	t.write(`input[name=typed]`, c.name)
	t.write(`textarea[name=reason]`, "Agreed with finance.")
	t.approve()
	t.shows("sign-in within the last 15 minutes", "Nothing has been recorded")
	want(w, "the reason, kept", t.value(`textarea[name=reason]`), "Agreed with finance.")
	want(w, "the change", w.status(c), "pending")
	w.provider.expect(w.tenant)
	t.follow(func() { t.press(`a[href*="fresh=1"]`) })
	t.follow(func() { t.press("#kim") })
	t.until("to be back at the change", `p => location.pathname === p`, c.review())
	t.ask("approve")
	t.write(`input[name=typed]`, c.name)
	t.approve()
	w.until("the approval", func() bool { return w.status(c) == "approved" })
}

// twoAtOnce has two approvers with the page open: the second is told who decided, and keeps what they had typed.
func twoAtOnce(w *scene) {
	c := w.pending(large)
	kim, tanaka := w.as("kim"), w.as("tanaka", inEnglish)
	late := w.as("tanaka", inEnglish, unscripted)
	late.open(c.review())
	late.write(`textarea[name=reason]`, "Fine with me.")
	kim.open(c.review())
	tanaka.open(c.review())
	tanaka.ask("reject")
	tanaka.write(`textarea[name=reason]`, "Too much for a test.")
	kim.approve()
	w.until("the approval", func() bool { return w.status(c) == "approved" })
	// The page learns of it by its stream, and says so beside what was typed.
	tanaka.until("the first decision to be shown", `document.body.innerText.includes('kim@agency.example') || document.body.innerText.includes('Approved')`)
	tanaka.holds("the typed text is kept", `[...document.querySelectorAll('textarea')].some(e => e.value === 'Too much for a test.')`)
	want(w, "the change", w.status(c), "approved")
	// A page that has learned nothing sends its form: it is refused in words, with the text in it.
	late.watch.expect(`HTTP 4[0-9][0-9]|status of 4`)
	late.approve()
	late.shows("kim@agency.example", "Nothing of yours has been recorded")
	late.holds("the typed text is kept", `[...document.querySelectorAll('textarea')].some(e => e.value === 'Fine with me.')`)
}
