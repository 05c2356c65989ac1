package main

import "github.com/cutonce/cutonce/internal/target"

// Points 7 and 27 to 30: what is written on pages.

// plainWords has an agent give markup, links and a script as its reason: all of it is shown as text, and nothing of it lives.
func plainWords(w *scene) {
	id, name := w.campaign()
	said := `<a href="https://evil.example">approve here</a> <img src=x onerror=alert(1)> [click](https://evil.example) https://evil.example/x
second line **bold** <script>window.injected = 1</script>`
	c := w.asksSaying("agent", w.prepares("agent", id, name, large, said), said)
	t := w.as("kim")
	for _, path := range []string{"/", c.review(), c.whole()} {
		t.open(path)
		t.shows(`<a href="https://evil.example">approve here</a>`, "<img src=x onerror=alert(1)>")
		if path != "/" { // the list shows the beginning, and says that there is more
			t.shows("[click](https://evil.example)", "<script>window.injected = 1</script>")
		}
		want(w, "links to evil.example on "+path, t.count(`a[href*="evil.example"]`), 0)
		want(w, "pictures on "+path, t.count(`main img`), 0)
		t.holds("nothing was run", `window.injected === undefined`)
		t.holds("it is marked as unverified", `/[Nn]obody has checked|unverified|not checked/.test(document.body.innerText)`)
	}
	t.open(c.review())
	t.holds("the lines stay lines", `[...document.querySelectorAll('blockquote')].some(e => e.getBoundingClientRect().height > 40)`)
}

// hiddenMadeVisible has names with characters that turn, hide and imitate: each is shown in its place.
func hiddenMadeVisible(w *scene) {
	for _, one := range []struct{ name, shown string }{
		{"Sale \u202e001 9a1c", "Sale ⟨U+202E⟩001 9a1c"},
		{"Sale\u200b 4be2", "Sale⟨U+200B⟩ 4be2"},
		{"Sale\u2066x\u2069 77d0", "Sale⟨U+2066⟩x⟨U+2069⟩ 77d0"},
		{"Sale \u00ad51fe", "Sale ⟨U+00AD⟩51fe"},
	} {
		id := w.campaignNamed(one.name)
		// An input with such characters is refused; the platform's own names may have them.
		c := w.asks("agent", w.prepares("agent", id, "", large, "A name with turns."))
		t := w.as("kim")
		for _, path := range []string{"/", c.review(), c.whole()} {
			t.open(path)
			t.shows(one.shown)
			raw := eval[bool](t, `/[\u202a-\u202e\u2066-\u2069\u200b\u00ad]/.test(document.body.innerText) || [...document.querySelectorAll('textarea, input')].some(e => /[\u202a-\u202e\u2066-\u2069\u200b]/.test(e.value))`)
			if raw {
				w.fail("a hidden character reaches %s raw", path)
			}
		}
	}
}

// mixedMarked has a name with a Cyrillic а among Latin letters: the page marks that very character, and says what it is.
func mixedMarked(w *scene) {
	name := "P\u0430yroll 3c9d" // Cyrillic а
	id := w.campaignNamed(name)
	c := w.asks("agent", w.prepares("agent", id, name, large, "The autumn sale begins on Friday."))
	t := w.as("kim")
	for _, path := range []string{"/", c.review(), c.whole(), "/history"} {
		t.open(path)
		plain := eval[[]string](t, `(() => {
			const texts = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT), bad = [];
			for (let n; n = texts.nextNode();) if (n.data.includes('\u0430') && !n.parentElement.closest('mark, pre, blockquote, code')) bad.push(n.data.trim().slice(0, 80));
			return bad;
		})()`)
		if len(plain) > 0 {
			w.fail("a Cyrillic letter is not marked on %s: %q", path, plain)
		}
		t.holds("the mark is of that letter alone, is to be seen, and not by its colour alone", `[...document.querySelectorAll('main mark')].some(e => e.textContent.includes('\u0430')) && [...document.querySelectorAll('main mark')].every(e =>
			!e.textContent.includes('yroll') && (!e.checkVisibility() || e.getBoundingClientRect().width > 0)
			&& (getComputedStyle(e).textDecorationLine !== 'none' || getComputedStyle(e).borderTopStyle !== 'none' || getComputedStyle(e).outlineStyle !== 'none'))`)
		w.says("what is said of it", t.page(), "U+0430")
	}
}

// choosesLanguage wants the language by the browser's wish, and by a link on every page, and that it stays.
func choosesLanguage(w *scene) {
	c := w.pending(large)
	t := w.as("kim", inEnglish)
	t.open(c.review())
	t.follow(func() { t.press(`.langs a[hreflang=ja]`) })
	want(w, "the language chosen", eval[string](t, `document.documentElement.lang`), "ja")
	t.follow(func() { t.press(`nav a[href*="history"]`) })
	want(w, "the language of the next page", eval[string](t, `document.documentElement.lang`), "ja")
	t.open(c.review() + "?lang=ja")
	t.approve()
	want(w, "the language after a decision", eval[string](t, `document.documentElement.lang`), "ja")
	stranger := w.tab(language("ja"))
	stranger.open("/sign-in")
	want(w, "the language of who is not signed in", eval[string](stranger, `document.documentElement.lang`), "ja")
}

// amounts wants won, yen and dollars by their own decimals and always with the code, in figures of one width, and times with a zone.
func amounts(w *scene) {
	for _, one := range []struct {
		id, field string
		budget    any
		shown     []string
	}{
		{target.CampaignKoreanZeroBudget, "new_daily_budget_krw", 50000, []string{"50,000 KRW", "0 KRW"}},
		{target.CampaignDollarsPaused, "new_daily_budget_usd", 90.5, []string{"90.50 USD", "45.00 USD"}},
		{target.CampaignZeroBudget, "new_daily_budget_jpy", 3000, []string{"3,000 JPY", "0 JPY"}},
	} {
		found, err := w.f.Ads.Campaign(w.ctx, one.id)
		w.must(err)
		r, err := w.api("agent").Do(w.ctx, "POST", "/v1/actions/budget_change/previews", map[string]any{
			"campaign_id": one.id, one.field: one.budget, "expect_campaign_name": found.Name, "reason": "A test of amounts.",
		})
		w.must(err)
		c := w.asks("agent", change{id: r.PreviewID})
		t := w.as("kim")
		t.open(c.review())
		t.shows(one.shown...)
		w.never("the page", t.page(), "¥", "￥", "₩", "$")
		want(w, "figures of one width", eval[string](t, `getComputedStyle(document.querySelector('.figures, .diff')).fontVariantNumeric`), "tabular-nums")
	}
}
