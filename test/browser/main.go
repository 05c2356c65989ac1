// Command browser looks at the console as people do: with a real browser, and at every point of a list that was written before the
// console was.
//
// It promises, for each point of points.go, a real Chromium at real `cutonce serve` processes behind TLS, with a real Postgres, real
// simulated platforms and an identity provider where people sign in; pages that are looked at, clicked, typed into and spoken to by
// key and finger, never through a call of the page's own functions; axe-core on every screen; and a console that stayed empty, in
// every single check: no error, no warning, no violation of the content security policy, no request that failed, unless the check
// says beforehand which one it provokes. It prints one line for each point and exits with 1 unless all of them hold.
//
// It does not promise that the pages are beautiful: the same program takes pictures of each screen (-screenshots), for people to look
// at. Points that no browser can show are named with what shows them instead.
//
// Start at points.go, then scene.go and tab.go. stage.go is what runs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// whole bounds everything, the fetching of axe-core included.
const whole = 15 * time.Minute

func main() {
	var o options
	flag.StringVar(&o.binary, "binary", "bin/cutonce", "the program to test")
	flag.StringVar(&o.cache, "cache", ".cache", "folder for what is fetched")
	flag.StringVar(&o.points, "points", "", "the points to look at, separated by commas; all of them if empty")
	flag.StringVar(&o.pictures, "screenshots", "", "take pictures of every screen into this folder, and check nothing")
	flag.StringVar(&o.failures, "failures", "", "take a picture of what is seen when a check fails into this folder")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, whole)
	defer cancel()
	if err := run(ctx, o); err != nil {
		fmt.Fprintf(os.Stderr, "browser: %v\n", errors.Join(err, context.Cause(ctx)))
		os.Exit(1)
	}
}

type options struct{ binary, cache, points, pictures, failures string }

func run(ctx context.Context, o options) error {
	chosen, err := choose(o.points)
	if err != nil {
		return err
	}
	if o.binary, err = filepath.Abs(o.binary); err != nil {
		return err
	}
	s, err := open(ctx, o.binary)
	if s != nil {
		defer s.close()
	}
	if err != nil {
		return err
	}
	s.failures = o.failures
	if o.pictures != "" {
		return s.photograph(ctx, o.pictures)
	}
	if s.axe, err = fetchAxe(ctx, o.cache); err != nil {
		return err
	}
	held := 0
	for _, p := range chosen {
		if s.show(ctx, p, os.Stdout) {
			held++
		}
	}
	fmt.Println(verdict(held, len(chosen), s.violations))
	if others := elsewhere(); o.points == "" && others != "" {
		fmt.Print(others)
	}
	if held != len(chosen) || s.violations > 0 {
		return fmt.Errorf("%d of %d points do not hold", len(chosen)-held, len(chosen))
	}
	return nil
}

// verdict is the last word.
func verdict(held, all, violations int) string {
	return fmt.Sprintf("browser: %d/%d points, axe %d violations", held, all, violations)
}
