package main

// Points 21, 22 and 23, beside what the tours find: nobody is kept out.

// zoomed wants a page usable with letters twice as large, which browsers do by halving the window in its own pixels.
func zoomed(w *scene) {
	c := w.pending(large)
	t := w.as("kim", sized(640, 450))
	t.open(c.review())
	if got := eval[int](t, `document.documentElement.scrollWidth`); got > 640 {
		w.fail("the page is %d px wide at 200 %%", got)
	}
	t.approve()
	w.until("the approval", func() bool { return w.status(c) == "approved" })
}

// forcedColours wants borders where colours are taken away.
func forcedColours(w *scene) {
	c := w.pending(large)
	t := w.as("kim", forced)
	t.open(c.review())
	t.holds("colours are forced", `matchMedia('(forced-colors: active)').matches`)
	bordered := func(list ...string) {
		for _, s := range list {
			got := eval[string](t, `s => getComputedStyle(document.querySelector(s)).borderTopStyle`, s)
			want(w, "the border of "+s+" under forced colours", got, "solid")
		}
	}
	bordered(".diff del", ".diff ins", ".bar .button")
	t.open(c.whole())
	bordered(".badge")
}

// unmoved wants nothing that moves for who wants nothing to move.
func unmoved(w *scene) {
	c := w.pending(large)
	t := w.as("kim", unmoving)
	for _, path := range []string{"/", c.review(), c.whole()} {
		t.open(path)
		moving := eval[[]string](t, `[...document.querySelectorAll('body, body *')].filter(e => {
			const s = getComputedStyle(e);
			return s.animationName !== 'none' || s.transitionDuration.split(',').some(d => parseFloat(d) > 0) || s.scrollBehavior === 'smooth';
		}).map(e => e.outerHTML.slice(0, 100))`)
		if len(moving) > 0 {
			w.fail("this moves for people who asked for no motion: %s", shorten(moving[0]))
		}
	}
}
