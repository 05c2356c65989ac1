package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/cutonce/cutonce/test/fleet"
)

// scene is one check under way: a tenant of its own, and the tabs that were opened in it.
type scene struct {
	*stage
	ctx    context.Context
	tenant string
	// door is the replica whose pages are looked at.
	door *door

	tabs    []*tab
	closes  []func()
	failure string
	held    bool
}

// checkFor bounds one check, patience one condition. Both are for a machine that does much else.
const (
	checkFor = 6 * time.Minute
	patience = 45 * time.Second
)

// play runs one check and says what is wrong, "" if nothing is.
func (s *stage) play(ctx context.Context, check func(*scene)) string {
	ctx, cancel := context.WithTimeout(ctx, checkFor)
	defer cancel()
	w := &scene{stage: s, ctx: ctx, door: s.usual, tenant: fmt.Sprintf("tenant-%d", s.scenes.Add(1))}
	done := make(chan struct{})
	go func() { // a goroutine of its own, because a failure ends it (see fail)
		defer close(done)
		defer w.end()
		check(w)
		w.consolesAreEmpty()
		w.held = true
	}()
	<-done
	if w.held {
		return ""
	}
	return cmp.Or(w.failure, "the check ended by itself")
}

func (w *scene) end() {
	for i := len(w.closes) - 1; i >= 0; i-- {
		w.closes[i]()
	}
	for _, t := range w.tabs {
		t.close()
	}
}

func (w *scene) onEnd(do func()) { w.closes = append(w.closes, do) }

// fail ends the check.
func (w *scene) fail(format string, args ...any) {
	w.failure = fmt.Sprintf("%s: %s", caller(), fmt.Sprintf(format, args...))
	for _, t := range w.tabs[max(0, len(w.tabs)-2):] {
		if last := t.lastWords(); last != "" {
			w.failure += "\n      " + last
		}
	}
	w.remember()
	runtime.Goexit()
}

// remember takes a picture of every tab of a check that fails.
func (w *scene) remember() {
	if w.failures == "" || os.MkdirAll(w.failures, 0o755) != nil {
		return
	}
	for i, t := range w.tabs {
		ctx, cancel := context.WithTimeout(t.ctx, 5*time.Second)
		raw, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
		cancel()
		if err == nil {
			_ = os.WriteFile(filepath.Join(w.failures, fmt.Sprintf("%s-%d.png", w.tenant, i+1)), raw, 0o644)
		}
	}
}

// caller is the line of the check that is being made: the innermost in a file of points.
func caller() string {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		f, more := frames.Next()
		name := f.File[strings.LastIndex(f.File, "/")+1:]
		if strings.HasPrefix(name, "points_") || strings.HasPrefix(name, "screenshots") {
			return fmt.Sprintf("%s:%d", name, f.Line)
		}
		if !more {
			return "?"
		}
	}
}

func (w *scene) must(err error) {
	if err != nil {
		w.fail("%v", err)
	}
}

// want fails unless got is what is wanted.
func want[T comparable](w *scene, what string, got, wanted T) {
	if got != wanted {
		w.fail("%s: got %v, want %v", what, got, wanted)
	}
}

// says fails unless text holds all of parts.
func (w *scene) says(what, text string, parts ...string) {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			w.fail("%s: want %q in what it says, which is %q", what, part, shorten(text))
		}
	}
}

// never fails if text holds any of parts.
func (w *scene) never(what, text string, parts ...string) {
	for _, part := range parts {
		if strings.Contains(text, part) {
			w.fail("%s: want no %q in what it says, which is %q", what, part, shorten(text))
		}
	}
}

func shorten(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > 600 {
		return string(runes[:600]) + "…"
	}
	return text
}

// until polls until it is so.
func (w *scene) until(what string, is func() bool) {
	ctx, cancel := context.WithTimeout(w.ctx, patience)
	defer cancel()
	if err := fleet.Until(ctx, what, is); err != nil {
		w.fail("%v", err)
	}
}

// api is somebody's hand at the JSON API of the scene's replica.
func (w *scene) api(who string) fleet.Caller {
	p, err := personOf(who)
	w.must(err)
	return fleet.Caller{URL: w.door.process.URL, Token: w.provider.accessToken(p, w.tenant)}
}

// sessionCookie is the console's, as it is called behind https.
const sessionCookie = "__Host-cutonce"

// session signs somebody in without a browser and returns the cookie.
func (w *scene) session(v visitor) string {
	client := w.door.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	cookie := ""
	get := func(address string) *url.URL {
		request, err := http.NewRequestWithContext(w.ctx, http.MethodGet, address, nil)
		w.must(err)
		if cookie != "" {
			request.AddCookie(&http.Cookie{Name: sessionCookie, Value: cookie})
		}
		response, err := client.Do(request)
		w.must(err)
		_, _ = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		for _, c := range response.Cookies() {
			if c.Name == sessionCookie {
				cookie = c.Value
			}
		}
		to, err := response.Location()
		if err != nil {
			w.fail("signing %s in: %s answers %s", v.id, address, response.Status)
		}
		return to
	}
	at := get(w.door.URL + "/sign-in/start")
	get(w.provider.back(v, at.Query()))
	return cookie
}

// as is a tab in which somebody is signed in, in their own language unless another is asked for.
func (w *scene) as(who string, looks ...look) *tab {
	p, err := personOf(who)
	w.must(err)
	v := visitor{person: p, tenant: w.tenant}
	for _, l := range looks {
		if l.visitor != nil {
			l.visitor(&v)
		}
	}
	t := w.tab(append(looks, language(v.locale))...)
	t.setCookie(network.SetCookieParams{
		Name: sessionCookie, Value: w.session(v), URL: w.door.URL, Path: "/", Secure: yes, HTTPOnly: yes, SameSite: network.CookieSameSiteLax,
	})
	return t
}

// consolesAreEmpty fails if any tab has something to say that was not expected.
func (w *scene) consolesAreEmpty() {
	for _, t := range w.tabs {
		t.settle()
		if said := t.watch.unexpected(); len(said) > 0 {
			w.fail("the console at %s is not empty:\n        %s", t.name, strings.Join(said, "\n        "))
		}
	}
}

func pointer[T any](v T) *T { return &v }

var yes = pointer(true)
