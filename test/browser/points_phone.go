package main

import "strings"

// The phone: everything at once, and two taps. Counted with the points 11 and 23.

// fitsOnePhone wants all that somebody decides by on one screen of 390×844, without scrolling, for a change of one field.
func fitsOnePhone(w *scene) {
	for _, lang := range []look{inEnglish, inJapanese} {
		c := w.pending(large)
		t := w.as("kim", phone, lang)
		t.open(c.review())
		t.settle()
		out := eval[[]string](t, `(() => {
			const bar = document.querySelector('.bar').getBoundingClientRect();
			const need = {who: '.asks', what: 'h1', impact: '.figures', change: '.diff', unusual: '[aria-labelledby=unusual]', quorum: '[aria-labelledby=quorum]', rule: '.rule', clock: '.clock [data-until]', buttons: '.bar'};
			return Object.entries(need).map(([name, s]) => {
				const e = document.querySelector(s);
				if (!e) return name + ' is not there: ' + s;
				const r = e.getBoundingClientRect();
				const end = name === 'buttons' ? innerHeight : bar.top;
				return r.height > 0 && r.top >= 0 && r.bottom <= end + .5 ? '' : name + ' is from ' + r.top.toFixed() + ' to ' + r.bottom.toFixed() + ' of ' + end.toFixed();
			}).filter(Boolean);
		})()`)
		if len(out) > 0 {
			w.fail("not on the first screen of a phone: %s", strings.Join(out, "; "))
		}
	}
}

// twoTaps approves from a link with two taps.
func twoTaps(w *scene) {
	c := w.pending(large)
	t := w.as("kim", phone)
	t.open(c.review()) // the link
	taps := 0
	for ; taps < 2 && w.status(c) == "pending"; taps++ {
		if t.seen(`button[value=approve]`) == 0 {
			t.press(`[data-open=approve]`)
			t.until("the form", `!!document.querySelector('button[value=approve]')?.checkVisibility()`)
			continue
		}
		t.follow(func() { t.press(`button[value=approve]`) })
	}
	want(w, "the change after two taps", w.status(c), "approved")
}

// appliedByHand has the requester, whose agent has gone, press Apply on the change's page: once, whatever they press.
func appliedByHand(w *scene) {
	c := w.pending(large)
	w.decides("kim", c, "approve")
	stranger := w.as("kim")
	stranger.open(c.whole())
	want(w, "buttons to apply for an approver", stranger.count(`form[action*="/apply"]`), 0)
	t := w.as("sato", inEnglish, phone)
	t.open(c.whole())
	t.follow(func() { t.press(`form[action*="/apply"] button`) })
	w.until("the effect", func() bool { return w.status(c) == "applied" })
	want(w, "effects", w.effects(c), 1)
	t.open(c.whole())
	want(w, "buttons to apply what is applied", t.count(`form[action*="/apply"]`), 0)
}
