package main

import (
	"context"
	"time"
	"unicode"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// spot is where an element is and what would be hit there.
type spot struct {
	X, Y     float64
	Hit      bool
	Over     string
	Disabled bool
}

// findSpot brings an element into view as a person would, and finds its middle. Where another element is still on top of it the page
// covers what is to be pressed, and that fails.
const findSpot = `s => {
	const e = document.querySelector(s);
	if (!e?.getClientRects()[0]) return null;
	const look = () => {
		const r = e.getClientRects()[0], x = r.left + r.width / 2, y = r.top + r.height / 2, top = document.elementFromPoint(x, y);
		return {X: x, Y: y, Hit: !!top && (e.contains(top) || top.closest('label')?.control === e), Over: top?.outerHTML.slice(0, 120) ?? '', Disabled: !!e.disabled};
	};
	const at = look();
	if (at.Hit) return at;
	e.scrollIntoView({block: 'center', inline: 'nearest', behavior: 'instant'});
	return look();
}`

// spotOf waits until the element is there and can be hit.
func (t *tab) spotOf(selector string) spot {
	var last *spot
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	for ctx.Err() == nil {
		at, err := tryEval[*spot](t, findSpot, selector)
		// A page that has just come may still scroll to what is wrong with it: only what stands still is pressed.
		if err == nil && at != nil && at.Hit && !at.Disabled && last != nil && *at == *last {
			return *at
		}
		last = at
		select {
		case <-ctx.Done():
		case <-time.After(30 * time.Millisecond):
		}
	}
	switch {
	case last == nil:
		t.w.fail("there is no %s to press at %s", selector, t.path())
	case last.Disabled:
		t.w.fail("%s is disabled", selector)
	}
	t.w.fail("%s is covered by %s", selector, last.Over)
	return spot{}
}

// approve and reject press the button that does so, on the page or in the dialog that the page asks with, and wait for what comes.
func (t *tab) approve() { t.decide("approve") }
func (t *tab) reject()  { t.decide("reject") }

func (t *tab) decide(value string) {
	t.ask(value)
	t.follow(func() { t.press(`button[value=` + value + `]`) })
}

// ask brings the form of a decision up: with scripts it is a dialog that a button opens, without them it is part of the page.
func (t *tab) ask(value string) {
	if t.seen(`button[value=`+value+`]`) > 0 {
		return
	}
	t.press(`[data-open=` + value + `]`)
	t.until("the form of the decision", `s => !!document.querySelector(s)?.checkVisibility()`, `button[value=`+value+`]`)
}

// press presses an element with the mouse, or with a finger on a phone.
func (t *tab) press(selector string) {
	at := t.spotOf(selector)
	if t.touch {
		t.w.must(chromedp.Do(t.ctx, chromedp.TapXY(at.X, at.Y)))
		return
	}
	t.w.must(chromedp.Do(t.ctx, chromedp.MouseClickXY(at.X, at.Y)))
}

// hover puts the pointer on an element and returns where it is.
func (t *tab) hover(selector string) spot {
	at := t.spotOf(selector)
	t.w.must(chromedp.Do(t.ctx, chromedp.MouseEvent(chromedp.MouseMoved, at.X, at.Y)))
	return at
}

// keys strikes keys, one after the other, wherever the focus is. The letter comes with the key's going down, as on a real keyboard: a
// page that takes the key for itself keeps its letter out of the field.
func (t *tab) keys(keys string) {
	for _, r := range keys {
		k, known := kb.Keys[r]
		if !known {
			t.w.fail("there is no key for %q", r)
		}
		down := input.DispatchKeyEventParams{
			Type: input.DispatchKeyEventTypeKeyDown, Key: k.Key, Code: k.Code, WindowsVirtualKeyCode: int64(unicode.ToUpper(rune(k.Windows))),
			Text: k.Text, UnmodifiedText: k.Unmodified,
		}
		if !k.Print {
			down.Type, down.Text, down.UnmodifiedText = input.DispatchKeyEventTypeRawKeyDown, "", ""
		}
		if k.Shift {
			down.Modifiers = int64(chromedp.ModifierShift)
		}
		up := down
		up.Type, up.Text, up.UnmodifiedText = input.DispatchKeyEventTypeKeyUp, "", ""
		for _, event := range []input.DispatchKeyEventParams{down, up} {
			_, err := callOf(t, input.DispatchKeyEvent, event)
			t.w.must(err)
		}
	}
}

// write types into a field, after whatever is in it.
func (t *tab) write(selector, text string) {
	t.press(selector)
	t.until(selector+" to have the focus", `s => document.querySelector(s) === document.activeElement`, selector)
	t.paste(text)
}

// paste puts a text where the focus is, as the clipboard does.
func (t *tab) paste(text string) {
	_, err := callOf(t, input.InsertText, input.InsertTextParams{Text: text})
	t.w.must(err)
}

// value is what a field holds.
func (t *tab) value(selector string) string {
	return eval[string](t, `s => document.querySelector(s).value`, selector)
}

// compose writes with an input method: the text stands there, underlined, and is not yet final.
func (t *tab) compose(text string) {
	_, err := callOf(t, input.ImeSetComposition, input.ImeSetCompositionParams{
		Text: text, SelectionStart: int64(len([]rune(text))), SelectionEnd: int64(len([]rune(text))),
	})
	t.w.must(err)
}

// processed is a key that the input method takes for itself while it composes: browsers tell a page of it as key code 229.
func (t *tab) processed(key string) {
	for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeRawKeyDown, input.DispatchKeyEventTypeKeyUp} {
		_, err := callOf(t, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: kind, Key: key, WindowsVirtualKeyCode: 229})
		t.w.must(err)
	}
}

// tabTo presses Tab until an element has the focus, as somebody without a mouse does, and returns how often. Every stop must be seen:
// nothing that has the focus may be covered.
func (t *tab) tabTo(selector string) int {
	for n := range 120 {
		if eval[bool](t, `s => !!document.activeElement?.matches(s)`, selector) {
			return n
		}
		t.keys(kb.Tab)
		t.focusIsSeen()
	}
	t.w.fail("%s is not reached with the Tab key", selector)
	return 0
}

// focusIsSeen fails where what has the focus is covered, out of the window, or not marked.
func (t *tab) focusIsSeen() {
	var at struct{ Here, Wrong string }
	for range 40 { // a browser may scroll to what has the focus a moment later
		if at = eval[struct{ Here, Wrong string }](t, whatHasFocus); at.Wrong == "" {
			return
		}
		t.settle()
	}
	t.w.fail("%s", at.Wrong)
}
