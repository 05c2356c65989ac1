package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/cutonce/cutonce/test/fleet"
)

// tab is one window of a browser profile of its own: nobody else's cookies are in it.
type tab struct {
	w     *scene
	ctx   context.Context
	name  string
	watch *watch
	// touch says that its hands are fingers, inert that it runs no scripts.
	touch, inert bool

	cancel func()
}

// look is how a tab differs from a plain one: a wide window, light, on a machine with a mouse, with scripts.
type look struct {
	visitor func(*visitor)
	set     func(*tab) error
}

func media(features ...string) look {
	return look{set: func(t *tab) error {
		var list []*emulation.MediaFeature
		for i := 0; i+1 < len(features); i += 2 {
			list = append(list, &emulation.MediaFeature{Name: features[i], Value: features[i+1]})
		}
		_, err := chromedp.Call(t.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: list})
		return err
	}}
}

// The looks.
var (
	dark       = media("prefers-color-scheme", "dark")
	forced     = media("forced-colors", "active")
	unmoving   = media("prefers-reduced-motion", "reduce")
	phone      = look{set: func(t *tab) error { return t.resize(390, 844, true) }}
	unscripted = look{set: func(t *tab) error {
		t.inert = true
		_, err := chromedp.Call(t.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	}}
	inEnglish  = look{visitor: func(v *visitor) { v.locale = "en" }}
	inJapanese = look{visitor: func(v *visitor) { v.locale = "ja" }}
	longAgo    = look{visitor: func(v *visitor) { v.ago = 3 * time.Hour }}
)

// sized is a window of this size on a machine with a mouse.
func sized(width, height int64) look {
	return look{set: func(t *tab) error { return t.resize(width, height, false) }}
}

// zone is where the person is.
func zone(name string) look {
	return look{set: func(t *tab) error {
		_, err := chromedp.Call(t.ctx, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: name})
		return err
	}}
}

// language is what the browser asks for.
func language(locale string) look {
	return look{set: func(t *tab) error {
		_, err := chromedp.Call(t.ctx, network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{
			Headers: network.Headers{"Accept-Language": locale},
		})
		return err
	}}
}

// tab opens one. Nobody is signed in.
func (w *scene) tab(looks ...look) *tab {
	t := &tab{w: w, name: fmt.Sprintf("tab %d", len(w.tabs)+1), watch: newWatch()}
	ctx, cancel := chromedp.NewContext(w.chrome.ctx, chromedp.WithNewBrowserContext(), chromedp.WithListener(t.watch.hear))
	t.ctx, t.cancel = ctx, cancel
	w.tabs = append(w.tabs, t)
	w.must(chromedp.Do(t.ctx))
	_, err := chromedp.Call(t.ctx, audits.Enable, cdp.Empty{})
	w.must(err)
	// Several windows are looked at at once, and each must think that it is the one in front.
	_, err = chromedp.Call(t.ctx, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	w.must(err)
	w.must(t.resize(1280, 900, false))
	for _, l := range looks {
		if l.set != nil {
			w.must(l.set(t))
		}
	}
	return t
}

func (t *tab) close() {
	ctx, cancel := context.WithTimeout(t.ctx, closeFor)
	defer cancel()
	_ = chromedp.Cancel(ctx)
	t.cancel()
}

func (t *tab) resize(width, height int64, mobile bool) error {
	scale := 1.0
	if mobile {
		scale = 2
	}
	t.touch = mobile
	_, err := chromedp.Call(t.ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: width, Height: height, DeviceScaleFactor: scale, Mobile: mobile,
	})
	if err != nil {
		return err
	}
	_, err = chromedp.Call(t.ctx, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{Enabled: mobile})
	return err
}

func (t *tab) setCookie(c network.SetCookieParams) {
	_, err := chromedp.Call(t.ctx, network.SetCookie, c)
	t.w.must(err)
}

// open goes to a path of the console's, or to a whole address, and waits until the page is there.
func (t *tab) open(path string) {
	if strings.HasPrefix(path, "/") {
		path = t.w.door.URL + path
	}
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.Navigate(path)); err != nil {
		t.w.fail("opening %s: %v", path, err)
	}
	t.until("the page "+path, `document.readyState === 'complete'`)
}

// path is where the tab is.
func (t *tab) path() string { return eval[string](t, `location.pathname + location.search`) }

// eval is the value of an expression in the page. It is for looking only: nothing is done to a page by it.
func eval[T any](t *tab, expression string, args ...any) T {
	value, err := tryEval[T](t, expression, args...)
	if err != nil {
		t.w.fail("%s: %v", shorten(expression), err)
	}
	return value
}

func tryEval[T any](t *tab, expression string, args ...any) (value T, err error) {
	if len(args) > 0 {
		if expression, err = called(expression, args); err != nil {
			return value, err
		}
	}
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAsValue))
}

// called is the call of a function with these arguments.
func called(function string, args []any) (string, error) {
	var list []string
	for _, arg := range args {
		raw, err := json.Marshal(arg)
		if err != nil {
			return "", err
		}
		list = append(list, string(raw))
	}
	return "(" + function + ")(" + strings.Join(list, ",") + ")", nil
}

// until polls until the expression is true in the page, which may change under it.
func (t *tab) until(what, expression string, args ...any) {
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	var last error
	err := fleet.Until(ctx, what, func() bool {
		is, err := tryEval[bool](t, expression, args...)
		last = err
		return err == nil && is
	})
	if err != nil {
		t.w.fail("%v", errors.Join(err, last))
	}
}

// holds fails unless the expression is true now.
func (t *tab) holds(what, expression string, args ...any) {
	if !eval[bool](t, expression, args...) {
		t.w.fail("it is not so that %s", what)
	}
}

// follow does something that leads to another page, and waits until that is there.
func (t *tab) follow(do func()) {
	eval[bool](t, `window.stillHere = true`)
	do()
	t.until("another page", `!window.stillHere && document.readyState === 'complete'`)
}

// settle lets what the page has begun come to an end: two frames are drawn.
func (t *tab) settle() {
	if t.inert {
		return
	}
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	_, _ = chromedp.Run(ctx, chromedp.Evaluate[bool](
		`new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`, chromedp.EvalAwaitPromise))
}

// text is what an element says, as it is drawn; a missing element fails.
func (t *tab) text(selector string) string {
	got := eval[*string](t, `s => document.querySelector(s)?.innerText ?? null`, selector)
	if got == nil {
		t.w.fail("there is no %s at %s", selector, t.path())
		return ""
	}
	return *got
}

// count is how many elements there are.
func (t *tab) count(selector string) int {
	return eval[int](t, `s => document.querySelectorAll(s).length`, selector)
}

// seen is how many elements there are that are drawn.
func (t *tab) seen(selector string) int {
	return eval[int](t, `s => [...document.querySelectorAll(s)].filter(e => e.checkVisibility({visibilityProperty: true, contentVisibilityAuto: true})).length`, selector)
}

// page is all that the page says.
func (t *tab) page() string { return t.text("body") }

// shows waits until the page says all of it.
func (t *tab) shows(parts ...string) {
	for _, part := range parts {
		t.until("the page to say "+part, `p => document.body.innerText.includes(p)`, part)
	}
}

// lastWords are where a tab is and what it shows, for a failure's message.
func (t *tab) lastWords() string {
	ctx, cancel := context.WithTimeout(t.ctx, 5*time.Second)
	defer cancel()
	said, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.pathname + ' “' + document.title + '”: ' + (document.querySelector('main') ?? document.body).innerText`))
	if err != nil {
		return ""
	}
	return t.name + " is at " + shorten(said)
}

// callOf runs a command of the protocol in the tab.
func callOf[P, R any](t *tab, command cdp.Command[P, R], params P) (R, error) {
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	return chromedp.Call(ctx, command, params)
}
