package main

import "net/http"

// Point 14: many at once.

// manyAtOnce approves changes of one kind together: they are chosen, summed, and each is answered for itself. One of high risk is not
// among them, and one that somebody else decided meanwhile is told apart.
func manyAtOnce(w *scene) {
	one, two, other, left := w.pending(large), w.pending(large+50_000), w.pending(large), w.pending(large)
	careful := w.pending(enormous)
	t := w.as("kim", inEnglish, phone)
	t.open("/")
	t.follow(func() { t.press(`a[href*="/bulk"]`) })
	box := func(c change) string { return `label:has(input[name=item][value="` + c.id + `"])` }
	want(w, "boxes for what is of high risk", t.count(box(careful)), 0)
	for _, c := range []change{one, two, other} {
		t.press(box(c))
	}
	t.follow(func() { t.press(`main form button.primary, main form button:not([name])`) })
	t.shows("+350,000 JPY") // 100,000 and 150,000 and 100,000
	for _, c := range []change{one, two, other} {
		w.says("what is decided", t.page(), c.name, c.digest)
	}
	w.never("what is decided", t.page(), left.name, careful.name)
	w.rejects("tanaka", other)
	t.follow(func() { t.press(`form.bulk button[value=approve]`) })
	for _, c := range []change{one, two} {
		want(w, "one of those decided together", w.status(c), "approved")
	}
	want(w, "the one that somebody else rejected", w.status(other), "rejected")
	for _, c := range []change{left, careful} {
		want(w, "one that was not chosen", w.status(c), "pending")
	}
	refused := eval[string](t, `id => document.querySelector('a[href*="' + id + '"]').closest('li').innerText`, other.id)
	w.says("what became of it", refused, "Not recorded", "settled before you")
	done := eval[string](t, `id => document.querySelector('a[href*="' + id + '"]').closest('li').innerText`, one.id)
	w.says("what became of another", done, "Approved")
}

// rejects has somebody reject at the API.
func (w *scene) rejects(who string, c change) {
	w.decides(who, c, "reject")
	r, err := w.api(who).Status(w.ctx, c.id, 0)
	w.must(err)
	want(w, "the status after a rejection", r.Status, "rejected")
	want(w, "its answer", r.HTTP, http.StatusOK)
}
