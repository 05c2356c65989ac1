package main

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/cutonce/cutonce/verify"
)

// A guard that has moved is said here, without the long suite.
func TestEveryGuardIsWhereItsMutantLooks(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, m := range list() {
		if names[m.name] {
			t.Errorf("two mutants are called %s", m.name)
		}
		names[m.name] = true
		if err := m.write(root, t.TempDir()); err != nil {
			t.Error(err)
		}
		if !slices.ContainsFunc(verify.Checks(), func(c verify.Check) bool { return c.ID == m.check }) {
			t.Errorf("the mutant %s wants the check %q to fail, which does not exist", m.name, m.check)
		}
	}
}
