package archtest

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// testName is a test as the guarantees name it: of store, or with its package before it. suite is a command that shows one.
var (
	testName = regexp.MustCompile("`(?:([a-z0-9/]+)[.])?(Test[A-Za-z0-9_]+)`")
	suite    = regexp.MustCompile("`make ([a-z/]+)`")
)

// A guarantee that names a test which does not exist is a claim that nothing shows.
func TestGuaranteesNameTestsThatExist(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile(filepath.Join(root, "docs", "guarantees.md"))
	if err != nil {
		t.Fatal(err)
	}
	code := testsByPackage(t)
	named := testName.FindAllStringSubmatch(string(doc), -1)
	if len(named) < 10 {
		t.Fatalf("got %d tests named, want the guarantees to name theirs", len(named))
	}
	for _, m := range named {
		if !strings.Contains(code[cmp.Or(m[1], "store")], "func "+m[2]+"(") {
			t.Errorf("docs/guarantees.md names %s, which does not exist", m[0])
		}
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range suite.FindAllStringSubmatch(string(doc), -1) {
		if !strings.Contains(string(makefile), "\n"+m[1]+":") {
			t.Errorf("docs/guarantees.md names %s, which the Makefile does not know", m[0])
		}
	}
}

// Every row of the two tables of guarantees names what shows it.
func TestEveryGuaranteeIsShownBySomething(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile(filepath.Join(root, "docs", "guarantees.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(doc)) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| ---") || strings.Contains(line, "| shown by |") {
			continue
		}
		rows++
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if shownBy := cells[len(cells)-1]; !testName.MatchString(shownBy) && !suite.MatchString(shownBy) {
			t.Errorf("nothing shows the line %q", strings.TrimSpace(cells[0]))
		}
	}
	if rows < 10 {
		t.Errorf("got %d rows, want the guarantees' tables", rows)
	}
}

// testsByPackage is the text of every package's tests, by its path.
func testsByPackage(t *testing.T) map[string]string {
	t.Helper()
	code := map[string]string{}
	walk(t, func(path string) {
		if !strings.HasSuffix(path, "_test.go") {
			return
		}
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		code[filepath.ToSlash(filepath.Dir(path))] += string(text)
	})
	return code
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
