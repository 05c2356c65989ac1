package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// testFor bounds the short form of the suite on a machine that does much else.
const testFor = 9 * time.Minute

// TestTheConsoleInABrowser makes the short checks of every point in one browser. The command makes the long ones as well.
func TestTheConsoleInABrowser(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), testFor)
	t.Cleanup(cancel)
	s := openStage(ctx, t)
	for _, p := range points() {
		if p.instead != "" {
			continue
		}
		t.Run(name(p), func(t *testing.T) {
			for _, check := range p.checks {
				if problem := s.play(ctx, check); problem != "" {
					t.Errorf("%s: %s", p.what, problem)
				}
			}
		})
	}
}

// TestTheGuardsHear provokes, one by one, what must fail a check: a guard that hears nothing would let everything pass.
func TestTheGuardsHear(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), testFor)
	t.Cleanup(cancel)
	c, err := startChrome(ctx, []byte("no certificate"))
	if c != nil {
		t.Cleanup(c.close)
	}
	if errors.Is(err, errNoBrowser) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	site := httptest.NewServer(http.HandlerFunc(badPages))
	t.Cleanup(site.Close)
	s := &stage{chrome: c, whole: ctx}
	for path, heard := range map[string]string{
		"/warns": "careful", "/throws": "uncaught", "/rejects": "uncaught", "/lacks": "HTTP 404", "/injects": "Content Security Policy",
		"/writes": "TrustedHTML", "/cut": "failed",
	} {
		problem := s.play(ctx, func(w *scene) {
			tab := w.tab()
			tab.open(site.URL + path)
			tab.until("what is wrong", `document.title === 'done'`)
		})
		if !strings.Contains(problem, heard) {
			t.Errorf("%s: got %q, want %q in it", path, problem, heard)
		}
	}
	if problem := s.play(ctx, func(w *scene) { w.tab().open(site.URL + "/fine") }); problem != "" {
		t.Errorf("/fine: got %q, want no problem", problem)
	}
}

// badPages are pages with one thing wrong each.
func badPages(w http.ResponseWriter, r *http.Request) {
	scripts := map[string]string{
		"/fine": ``, "/warns": `console.warn('careful')`, "/throws": `setTimeout(() => { throw new Error('thrown') })`, "/rejects": `Promise.reject(new Error('rejected'))`,
		"/lacks": `fetch('/gone')`, "/injects": `const s = document.createElement('style'); s.textContent = 'b{}'; document.head.append(s)`,
		"/writes": `try { document.body.innerHTML = '<b>'; } catch {}`, "/cut": `fetch('/dies').catch(() => {})`,
	}
	script, known := scripts[strings.TrimSuffix(r.URL.Path, ".js")]
	switch {
	case r.URL.Path == "/dies":
		panic(http.ErrAbortHandler)
	case !known:
		http.NotFound(w, r)
	case strings.HasSuffix(r.URL.Path, ".js"):
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = w.Write([]byte(script + "\nsetTimeout(() => document.title = 'done', 300)"))
	default:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; connect-src 'self'; img-src data:; require-trusted-types-for 'script'")
		_, _ = w.Write([]byte(`<!doctype html><html lang="en"><head><title>.</title><link rel="icon" href="data:,"></head><body><script src="` + r.URL.Path + `.js"></script></body></html>`))
	}
}

// openStage builds the program and starts everything, or says why it cannot.
func openStage(ctx context.Context, t *testing.T) *stage {
	t.Helper()
	if _, err := findBrowser(); errors.Is(err, errNoBrowser) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	axe, err := fetchAxe(ctx, filepath.Join("..", "..", ".cache"))
	if errors.Is(err, errNoNPM) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "cutonce")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, "../../cmd/cutonce").CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	s, err := open(ctx, binary)
	if s != nil {
		t.Cleanup(s.close)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.axe = axe
	return s
}

// name is a subtest's: the point's number and the beginning of what it says.
func name(p point) string {
	beginning, _, _ := strings.Cut(p.what, ",")
	return fmt.Sprintf("%02d %s", p.number, beginning)
}

// TestThePointsAreTheList wants every number of the checklist once, in order, with something that shows it.
func TestThePointsAreTheList(t *testing.T) {
	t.Parallel()
	var numbers []int
	for _, p := range points() {
		numbers = append(numbers, p.number)
		if shown := len(p.checks)+len(p.long) > 0; shown == (p.instead != "") {
			t.Errorf("point %d: it is shown by checks or by something else, and not by both or neither", p.number)
		}
	}
	var want []int
	for n := range 30 {
		want = append(want, n+1)
	}
	if !slices.Equal(numbers, want) {
		t.Errorf("got the points %v, want 1 to 30", numbers)
	}
	if _, err := choose("31"); err == nil {
		t.Error("a point that does not exist: got nil, want an error")
	}
}
