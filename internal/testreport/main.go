// Command testreport reads the output of go test -json and prints what a person wants to know of it.
//
// It promises that a failure is shown with all that it said, and that nothing is left out in silence: every skipped test is
// listed with its reason, and the Postgres that was used is named. The exit code is not zero unless every package passed.
// Start at main.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

func main() {
	r := newReport(os.Stdout)
	if err := r.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(1)
	}
	if !r.finish() {
		os.Exit(1)
	}
}

// event is one line of go test -json (go doc test2json).
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64
}

// name is what the event is about: a test, or a package as a whole.
type name struct{ pkg, test string }

type report struct {
	out            io.Writer
	said           map[name][]string
	postgres       map[string]bool
	skipped        map[name]string
	passed, failed int
	tests          int
	broken         []string
}

func newReport(out io.Writer) *report {
	return &report{out: out, said: map[name][]string{}, postgres: map[string]bool{}, skipped: map[name]string{}}
}

func (r *report) read(in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			fmt.Fprintln(r.out, lines.Text()) // not go test's: shown as it is
			continue
		}
		r.take(e)
	}
	return lines.Err()
}

var postgresLine = regexp.MustCompile(`pgtest: using (.*)`)

func (r *report) take(e event) {
	of := name{cmp.Or(e.Package, e.ImportPath), e.Test}
	switch e.Action {
	case "output", "build-output":
		r.said[of] = append(r.said[of], e.Output)
		if m := postgresLine.FindStringSubmatch(e.Output); m != nil {
			r.postgres[strings.TrimSpace(m[1])] = true
		}
	case "fail", "build-fail":
		r.fail(of, e)
	case "skip":
		r.skip(of)
	case "pass":
		r.pass(of, e)
	}
}

// progress is what a test run says of itself, not a test of its failure.
var progress = regexp.MustCompile(`^=== (RUN|PAUSE|CONT|NAME) `)

func (r *report) fail(of name, e event) {
	for _, line := range r.said[of] {
		if !progress.MatchString(line) {
			fmt.Fprint(r.out, line)
		}
	}
	delete(r.said, of)
	if of.test == "" && e.Action == "fail" {
		r.failed++
		r.broken = append(r.broken, of.pkg)
		fmt.Fprintf(r.out, "FAIL  %s  %.1f s\n", of.pkg, e.Elapsed)
	}
}

func (r *report) pass(of name, e event) {
	if of.test != "" {
		r.tests++
		delete(r.said, of)
		return
	}
	r.passed++
	note := fmt.Sprintf("%.1f s", e.Elapsed)
	if strings.Contains(strings.Join(r.said[of], ""), "(cached)") {
		note = "cached"
	}
	fmt.Fprintf(r.out, "ok    %s  %s\n", of.pkg, note)
}

var place = regexp.MustCompile(`^\s*\S+\.go:\d+: `)

// skip keeps the reason: what a test said before it was skipped. A package without tests is no skipped test.
func (r *report) skip(of name) {
	if of.test == "" {
		return
	}
	var reason []string
	for _, line := range r.said[of] {
		if place.MatchString(line) {
			reason = append(reason, strings.TrimSpace(place.ReplaceAllString(line, "")))
		}
	}
	r.skipped[of] = cmp.Or(strings.Join(reason, " "), "no reason was given")
}

// finish prints the summary and reports whether everything passed.
func (r *report) finish() bool {
	fmt.Fprintln(r.out)
	used := slices.Sorted(maps.Keys(r.postgres))
	if len(used) == 0 {
		used = []string{"none"}
	}
	fmt.Fprintf(r.out, "Postgres used: %s\n", strings.Join(used, "; "))
	if len(r.skipped) > 0 {
		fmt.Fprintln(r.out, "Not run:")
	}
	for _, of := range slices.SortedFunc(maps.Keys(r.skipped), func(a, b name) int {
		return cmp.Or(cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.test, b.test))
	}) {
		fmt.Fprintf(r.out, "  %s %s: %s\n", of.pkg, of.test, r.skipped[of])
	}
	fmt.Fprintf(r.out, "%d packages passed, %d failed; %d tests passed, %d not run\n", r.passed, r.failed, r.tests, len(r.skipped))
	for _, pkg := range r.broken {
		fmt.Fprintf(r.out, "FAILED: %s\n", pkg)
	}
	return r.failed == 0 && r.passed > 0
}
