package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/failure-points.md")

const page = "../../docs/failure-points.md"

const aboutThePage = `# Failure points

Where a change can be interrupted, and the only outcome that is right there. ` + "`make test/crash`" + ` takes real processes to each of these points,
kills or freezes them there, and goes on in two ways: with the same replica started again, and with another one. N is what the platform
itself counted for the change. After each, every change is read back, every audit chain is verified and has one end, no target is held that
should be free, nothing is applying past its lease, and whatever a caller was told of exists.

Rows that kill nothing at their point have their process killed after the outcome. The points between two steps are stops that only a
build with the tag ` + "`stops`" + ` has. A clock that is an hour off is a build of the same program whose ` + "`time.Now`" + ` is shifted; serialization failures
and full disks are raised by a trigger with their SQLSTATE; all else is the real thing: SIGKILL, SIGSTOP, cut connections, a killed
Postgres, a standby that does not exist, a restored backup.

This page is rendered from the suite (` + "`go test ./test/crash -update`" + `).

| row | point | the only right outcome |
| --- | --- | --- |
`

func TestThePageSaysTheRows(t *testing.T) {
	t.Parallel()
	var want strings.Builder
	want.WriteString(aboutThePage)
	for _, r := range rows {
		fmt.Fprintf(&want, "| %s | %s | %s |\n", r.name, r.point, r.outcome)
	}
	if *update {
		if err := os.WriteFile(page, []byte(want.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.String(), string(got)); diff != "" {
		t.Errorf("%s differs from the suite (-want +got):\n%s", page, diff)
	}
}

func TestRowsCanBeChosen(t *testing.T) {
	t.Parallel()
	all, err := choose("")
	if err != nil || len(all) != len(rows) {
		t.Errorf("got %d rows, %v, want all %d", len(all), err, len(rows))
	}
	var names []string
	for _, r := range all {
		names = append(names, r.name)
	}
	if slices.Sort(names); len(slices.Compact(names)) != len(rows) {
		t.Errorf("got the names %v, want each once", names)
	}
	if some, err := choose("X4,C3"); err != nil || len(some) != 2 || some[0].name != "X4" || some[1].name != "C3" {
		t.Errorf("got %d rows, %v, want X4 and C3", len(some), err)
	}
	if _, err := choose("X4,Z9"); err == nil {
		t.Error("got no error for a row that there is not")
	}
}

// TestWhatEventsTell: the judge of the chains takes one end that fits the records, and nothing else.
func TestWhatEventsTell(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		state        string
		contradicted bool
		kinds        []string
		want         bool
	}{
		{"applied", false, []string{"applied"}, true},
		{"applied", false, []string{"resolved"}, true},
		{"applied", false, []string{"applied", "applied"}, false},
		{"applied", false, []string{"not_applied"}, false},
		{"applied", false, nil, false},
		{"applied", true, []string{"resolved", "contradicted"}, true},
		{"applied", true, []string{"applied"}, false},
		{"applied", false, []string{"not_applied", "contradicted"}, false},
		{"not_applied", false, []string{"not_applied"}, true},
		{"rejected", false, []string{"rejected"}, true},
		{"rejected", false, []string{"rejected", "expired"}, false},
		{"approved", false, nil, true},
		{"approved", false, []string{"applied"}, false},
		{"unknown", false, []string{"applied"}, false},
	} {
		if got := slices.Contains(tells(tc.state, tc.contradicted), endsOf(tc.kinds)); got != tc.want {
			t.Errorf("%s (contradicted %t) with %v: got %t, want %t", tc.state, tc.contradicted, tc.kinds, got, tc.want)
		}
	}
}

func TestTheVerdictCounts(t *testing.T) {
	t.Parallel()
	s := &suite{config: config{rows: rows[:2]}, ok: 4}
	if got, want := s.verdict(), "crash: 4/4 (2 rows × 2 recoveries), N<=1 held, 0 lost"; got != want || !s.passed() {
		t.Errorf("got %q, passed %t, want %q", got, s.passed(), want)
	}
	for _, bad := range []*suite{{ok: 3}, {ok: 4, lost: 1}, {ok: 4, over: 1}} {
		bad.config = s.config
		if bad.passed() {
			t.Errorf("got a pass for %q", bad.verdict())
		}
	}
}
