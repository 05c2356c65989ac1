package archtest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/preview"
)

const (
	beginStates = "<!-- generated: states -->\n"
	endStates   = "<!-- end of the states -->\n"
)

func TestArchitectureShowsTheStates(t *testing.T) {
	architecture.Lock()
	defer architecture.Unlock()
	path := filepath.Join(root, "ARCHITECTURE.md")
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := replaceBetween(t, string(old), beginStates, endStates, diagram())
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(old) != want {
		t.Error("ARCHITECTURE.md does not show the states as they are: go test -p 1 ./internal/archtest -update")
	}
}

func diagram() string {
	var b strings.Builder
	b.WriteString("A preview, until it is claimed:\n\n```mermaid\nstateDiagram-v2\n")
	for _, s := range preview.Initial() {
		fmt.Fprintf(&b, "  [*] --> %s\n", s)
	}
	for _, from := range preview.States() {
		edges(&b, from, preview.Transitions()[from])
	}
	b.WriteString("```\n\nAn execution, from the claim on:\n\n```mermaid\nstateDiagram-v2\n  [*] --> applying\n")
	for _, from := range commit.States() {
		edges(&b, from, commit.Transitions()[from])
	}
	b.WriteString("```\n")
	return b.String()
}

func edges[S ~string](b *strings.Builder, from S, next []S) {
	next = slices.Clone(next)
	slices.Sort(next)
	for _, to := range next {
		fmt.Fprintf(b, "  %s --> %s\n", from, to)
	}
	if len(next) == 0 {
		fmt.Fprintf(b, "  %s --> [*]\n", from)
	}
}
