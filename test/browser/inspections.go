package main

import (
	"fmt"
	"regexp"
	"strings"
)

// What the tours look at on each screen. Each returns what is wrong.

// axeFinds is what axe-core finds.
func axeFinds(t *tab, s screen) (list []string) {
	for _, f := range t.accessible() {
		list = append(list, fmt.Sprintf("axe: %s: %s\n          %s", f.ID, f.Help, strings.Join(f.Nodes[:min(3, len(f.Nodes))], "\n          ")))
	}
	return list
}

// tooSmall are controls under 44 px, but for links within a sentence.
func tooSmall(t *tab, _ screen) []string {
	return eval[[]string](t, `[...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, textarea, summary')].filter(e => {
		if (!e.checkVisibility({visibilityProperty: true}) || e.closest('.skip') || e.closest('[inert]')) return false;
		const r = (e.type === 'radio' || e.type === 'checkbox' ? e.closest('label') ?? e : e).getBoundingClientRect();
		const inSentence = e.tagName === 'A' && getComputedStyle(e).display === 'inline';
		return !inSentence && (r.height < 43.5 || r.width < 43.5);
	}).map(e => { const r = e.getBoundingClientRect(); return 'too small for a finger: ' + r.width.toFixed() + '×' + r.height.toFixed() + ' ' + e.outerHTML.slice(0, 140); })`)
}

// tooWide is what does not fit into a window of 320 px, and text that its own box cuts off.
func tooWide(t *tab, _ screen) (list []string) {
	for _, width := range []int64{320, 390} {
		t.w.must(t.resize(width, 844, true))
		if got := eval[int](t, `document.documentElement.scrollWidth`); got > int(width) {
			wide := eval[[]string](t, `[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 120)).slice(-3)`)
			list = append(list, fmt.Sprintf("%d px wide in a window of %d px: %s", got, width, strings.Join(wide, " | ")))
		}
		list = append(list, eval[[]string](t, `w => [...document.querySelectorAll('body *')].filter(e => {
			if (!e.checkVisibility() || e.closest('.hidden, .skip') || !['hidden', 'clip'].includes(getComputedStyle(e).overflowX)) return false;
			return e.scrollWidth > e.clientWidth + 1;
		}).map(e => 'cut off at ' + w + ' px: ' + e.outerHTML.slice(0, 120))`, width)...)
	}
	return list
}

// coveredAtTheEnd scrolls to the end and looks what lies under whatever sticks to the window's edge.
func coveredAtTheEnd(t *tab, s screen) []string {
	if s.opens != "" {
		return nil // a dialog covers the page, and means to
	}
	eval[bool](t, `(scrollTo({top: document.documentElement.scrollHeight, behavior: 'instant'}), true)`)
	t.settle()
	defer eval[bool](t, `(scrollTo({top: 0, behavior: 'instant'}), true)`)
	return eval[[]string](t, `[...document.querySelectorAll('footer :is(a, button, p), main :is(p, a, button, dd, li, td, code)')].filter(e => {
		if (!e.checkVisibility({visibilityProperty: true}) || !e.innerText.trim()) return false;
		const r = e.getClientRects()[0];
		if (!r || r.top < innerHeight * .5 || r.bottom > innerHeight) return false;
		const top = document.elementFromPoint(Math.min(r.left + 4, innerWidth - 1), r.bottom - 3);
		for (let o = top; o; o = o.parentElement) if (!o.contains(e) && ['sticky', 'fixed'].includes(getComputedStyle(o).position)) return true;
		return false;
	}).map(e => 'covered at the end of the page: ' + e.outerHTML.slice(0, 120))`)
}

// marksLack are badges that say by colour alone, or wrap, and rows whose before and after only a colour tells.
func marksLack(t *tab, _ screen) []string {
	return append(eval[[]string](t, `[...document.querySelectorAll('.badge')].filter(b => b.checkVisibility()).flatMap(b => {
		const mark = b.querySelector('[aria-hidden=true]');
		const words = b.innerText.trim(), sign = mark && (mark.textContent.trim() || getComputedStyle(mark, '::before').content.replace(/["']|none|normal/g, ''));
		return [!words && 'without a word: ', !sign && 'without a mark: ', (b.getClientRects().length !== 1 || b.clientHeight > 44) && 'it wraps: '].filter(Boolean).map(p => p + b.outerHTML);
	})`), eval[[]string](t, `[...document.querySelectorAll('.diff del, .diff ins')].filter(e => !e.querySelector('.hidden')?.textContent.trim()
		|| !getComputedStyle(e).textDecorationLine.match(/line-through|underline/)).map(b => 'before or after by colour alone: ' + b.outerHTML.slice(0, 150))`)...)
}

// movesOrBlinks is what moves by itself.
func movesOrBlinks(t *tab, _ screen) []string {
	return eval[[]string](t, `document.getAnimations().filter(a => a.playState === 'running').map(a => 'it moves: ' + a.effect?.target?.outerHTML.slice(0, 100))`)
}

// namesLack are a missing language, heading or main part.
func namesLack(t *tab, _ screen) []string {
	return eval[[]string](t, `[
		!document.documentElement.lang && 'no language', !document.title.trim() && 'no title',
		document.querySelectorAll('h1').length !== 1 && document.querySelectorAll('h1').length + ' headings of the first rank',
		document.querySelectorAll('main').length !== 1 && 'not one main part',
		!document.querySelector('a[href="#main"]') && 'no way to skip to the content',
		new Set([...document.querySelectorAll('[id]')].map(e => e.id)).size !== document.querySelectorAll('[id]').length && 'an ID is there twice',
	].filter(Boolean)`)
}

// inlineOrForeign is anything inline, and anything that was asked of another host.
func inlineOrForeign(t *tab, _ screen) []string {
	return append(
		eval[[]string](t, `[...document.querySelectorAll('script:not([src]), style, [style]')].concat([...document.querySelectorAll('*')].filter(e => [...e.attributes].some(a => a.name.startsWith('on')))).map(e => 'inline: ' + e.outerHTML.slice(0, 120))`),
		eval[[]string](t, `performance.getEntriesByType('resource').map(e => e.name).filter(n => new URL(n).origin !== location.origin).map(n => 'asked of others: ' + n)`)...)
}

// headersLack is what the answer's headers do not say.
func headersLack(t *tab, s screen) (list []string) {
	h := t.headers(s.path)
	csp := h.Get("Content-Security-Policy")
	for _, must := range []string{"default-src 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'", "base-uri 'none'", "form-action 'self'"} {
		if !strings.Contains(csp, must) {
			list = append(list, "the policy lacks "+must)
		}
	}
	for _, loose := range []string{"unsafe", "*", "http:", "https:", "data:", "blob:"} {
		if strings.Contains(csp, loose) {
			list = append(list, "the policy has "+loose)
		}
	}
	for name, value := range map[string]string{
		"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin", "Cache-Control": "no-store",
	} {
		if got := h.Get(name); got != value {
			list = append(list, fmt.Sprintf("%s: got %q, want %q", name, got, value))
		}
	}
	return list
}

// timesLack are times without their zone, or without a form for machines.
func timesLack(t *tab, _ screen) (list []string) {
	for _, text := range eval[[]string](t, `[...document.querySelectorAll('time')].filter(e => e.checkVisibility()).map(e => e.innerText)`) {
		if !zoned.MatchString(text) {
			list = append(list, fmt.Sprintf("a time without a zone: %q", text))
		}
	}
	return append(list, eval[[]string](t, `[...document.querySelectorAll('time:not([datetime])')].map(e => 'a time that no machine can read: ' + e.outerHTML)`)...)
}

// Relative times need no zone.
var zoned = regexp.MustCompile(`UTC|JST|GMT|Asia/Tokyo|^[^0-9]*$`)

// focusLost goes through a screen with the Tab key: what has the focus is always to be seen whole, and marked.
func focusLost(t *tab, _ screen) (list []string) {
	first := ""
	for n := range 150 {
		t.keys("\t")
		var at struct{ Here, Wrong string }
		for range 40 { // a browser may scroll to what has the focus a moment later
			if at = eval[struct{ Here, Wrong string }](t, whatHasFocus); at.Wrong == "" {
				break
			}
			t.settle()
		}
		if at.Wrong != "" {
			list = append(list, at.Wrong)
		}
		if at.Here == "" || at.Here == first || len(list) > 3 {
			return list
		}
		if n == 0 {
			first = at.Here
		}
	}
	return append(list, "more than 150 stops")
}

// whatHasFocus is where the focus is, and what is wrong with how it is seen.
const whatHasFocus = `(() => {
	const e = document.activeElement;
	if (!e || e === document.body) return {Here: '', Wrong: ''};
	const here = e.outerHTML.slice(0, 120), s = getComputedStyle(e), r = e.getClientRects()[0];
	const index = [...document.querySelectorAll('*')].indexOf(e) + ' ' + here;
	if (!r) return {Here: index, Wrong: 'the focus is on what is not drawn: ' + here};
	if (s.outlineStyle === 'none' || parseFloat(s.outlineWidth) < 2) return {Here: index, Wrong: 'the focus is not marked: ' + here};
	if (r.bottom < 0 || r.top > innerHeight) return {Here: index, Wrong: 'the focus is out of the window: ' + here};
	const x = Math.min(Math.max(r.left + r.width / 2, 1), innerWidth - 1), y = Math.min(Math.max(r.top + Math.min(r.height / 2, 20), 1), innerHeight - 1);
	const top = document.elementFromPoint(x, y);
	return {Here: index, Wrong: top && (e.contains(top) || top.contains(e)) ? '' : 'the focus is covered: ' + here + ' by ' + top?.outerHTML.slice(0, 80)};
})()`

var (
	// keyLike are keys of the catalogues, and what templates leave behind.
	keyLike = regexp.MustCompile(`\b(web|status|event|fault|field|adbudget|rollback|next)\.[a-z_]+(\.[a-z_]+)*\b|\{\{|%!|<no value>`)
	kana    = regexp.MustCompile(`[\p{Hiragana}\p{Katakana}]`)
	english = regexp.MustCompile(`[A-Za-z]{3,} [A-Za-z]{2,} [A-Za-z]{2,}`)
)

// notWholeIn is text of the other language, a key or a placeholder on a page.
func notWholeIn(lang string) func(*tab, screen) []string {
	return func(t *tab, _ screen) (list []string) {
		if got := eval[string](t, `document.documentElement.lang`); got != lang {
			list = append(list, fmt.Sprintf("its language is %q, want %q", got, lang))
		}
		text := eval[string](t, ownWords)
		if found := keyLike.FindString(text); found != "" {
			list = append(list, "it shows "+found)
		}
		other := english
		if lang == "en" {
			other = kana
		}
		if found := other.FindString(text); found != "" {
			list = append(list, "it has words of another language: "+found)
		}
		return list
	}
}

// ownWords is what a page says of its own: without names, values, codes, and what others have written.
const ownWords = `(() => {
	const copy = document.body.cloneNode(true);
	copy.querySelectorAll('bdi, code, pre, blockquote, time, .diff dd, .asks, .langs, textarea, .brand, option, [lang]').forEach(e => e.remove());
	return [...copy.querySelectorAll('*')].map(e => [...e.childNodes].filter(n => n.nodeType === 3).map(n => n.data).join(' ').trim()
		+ ' ' + (e.getAttribute('aria-label') ?? '') + ' ' + (e.getAttribute('title') ?? '') + ' ' + (e.getAttribute('placeholder') ?? '')).join('\n');
})()`
