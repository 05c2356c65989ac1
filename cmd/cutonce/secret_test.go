package main

import (
	"strings"
	"testing"
)

// TestAnotherSecretDoesNotServe: effects that were sent under one secret are not found under another.
func TestAnotherSecretDoesNotServe(t *testing.T) {
	t.Parallel()
	const ready = `"msg":"ready","listen":"([0-9.:]+)"`
	env := production(t)
	first := begin(t, t.TempDir(), env, "serve")
	first.saw(first.stderr, ready)
	const other = "CUTONCE_SECRET=another-secret-of-thirty-two-bytes-or-more"
	said := refused(t, t.TempDir(), with(env, other), "serve")
	for _, want := range []string{"CUTONCE_SECRET is not the one", "CUTONCE_SECRET_REPLACE"} {
		if !strings.Contains(said, want) {
			t.Errorf("got %q, want %q in it", said, want)
		}
	}
	replaced := begin(t, t.TempDir(), with(env, other, "CUTONCE_SECRET_REPLACE=true"), "serve")
	replaced.saw(replaced.stderr, ready) // nothing waits
	refused(t, t.TempDir(), env, "serve")
}
