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

var update = flag.Bool("update", false, "write the table of docs/security.md")

const (
	page  = "../../docs/security.md"
	begin = "<!-- The table is rendered from the suite: go test ./test/security -update -->\n"
	end   = "<!-- The table ends. -->\n"
)

func TestThePageSaysTheAttacks(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begun := strings.Cut(string(raw), begin)
	_, after, ended := strings.Cut(rest, end)
	if !begun || !ended {
		t.Fatalf("%s has no place for the table", page)
	}
	var want strings.Builder
	want.WriteString(before + begin + "\n| attack | what is tried | why nothing comes of it |\n| --- | --- | --- |\n")
	for _, a := range attacks() {
		fmt.Fprintf(&want, "| %s | %s | %s |\n", a.name, a.what, a.defence)
	}
	want.WriteString("\n" + end + after)
	if *update {
		if err := os.WriteFile(page, []byte(want.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		raw = []byte(want.String())
	}
	if diff := cmp.Diff(want.String(), string(raw)); diff != "" {
		t.Errorf("%s differs from the suite (-want +got):\n%s", page, diff)
	}
}

func TestAttacksCanBeChosen(t *testing.T) {
	t.Parallel()
	all, err := choose("")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, a := range all {
		names = append(names, a.name)
		if a.what == "" || a.defence == "" || a.run == nil {
			t.Errorf("%s is not described or does nothing", a.name)
		}
	}
	if slices.Sort(names); len(slices.Compact(names)) != len(all) {
		t.Errorf("got the names %v, want each once", names)
	}
	if some, err := choose("S4,T1"); err != nil || len(some) != 2 || some[0].name != "S4" || some[1].name != "T1" {
		t.Errorf("got %d attacks, %v, want S4 and T1", len(some), err)
	}
	if _, err := choose("T1,Z9"); err == nil {
		t.Error("got no error for an attack that there is not")
	}
}

func TestTheVerdictCounts(t *testing.T) {
	t.Parallel()
	if got, want := verdict(39, 40), "attacks: 39/40 refused"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
