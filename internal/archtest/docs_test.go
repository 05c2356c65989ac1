package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var testName = regexp.MustCompile("`(Test[A-Za-z0-9_]+)`")

// A guarantee that names a test which does not exist is a claim that nothing shows.
func TestGuaranteesNameTestsThatExist(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile(filepath.Join(root, "docs", "guarantees.md"))
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	walk(t, func(path string) {
		if strings.HasPrefix(path, "store/") && strings.HasSuffix(path, "_test.go") {
			text, err := os.ReadFile(filepath.Join(root, path))
			if err != nil {
				t.Fatal(err)
			}
			code.Write(text)
		}
	})
	named := testName.FindAllStringSubmatch(string(doc), -1)
	if len(named) < 10 {
		t.Fatalf("got %d tests named, want the guarantees to name theirs", len(named))
	}
	for _, m := range named {
		if !strings.Contains(code.String(), "func "+m[1]+"(") {
			t.Errorf("docs/guarantees.md names %s, which does not exist", m[1])
		}
	}
}

var link = regexp.MustCompile(`\]\(([^)#]+)(#[^)]*)?\)`)

func TestLinksOfTheDocsLead(t *testing.T) {
	t.Parallel()
	walk(t, func(path string) {
		if !strings.HasSuffix(path, ".md") {
			return
		}
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") || strings.ContainsAny(m[1], " \"") {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, filepath.Dir(path), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", path, m[1])
			}
		}
	})
}
