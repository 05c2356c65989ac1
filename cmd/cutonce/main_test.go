package main

import (
	"strings"
	"testing"
)

// Whatever is wrong with the words of a command, its exit code is 2, and it says where to look.
func TestWrongWordsAreWrongUsage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ words, want string }{
		{"servve", "did you mean serve?"}, {"audit kye", "did you mean key?"}, {"connector tset", "did you mean test?"},
		{"connector test", "which connector?"}, {"nothing-like-it", "nothing-like-it"}, {"serve --prot 1", "--prot"}, {"version 2", "2"},
	} {
		code, text := ranAs(t, nil, strings.Fields(c.words)...)
		if code != exitUsage || !strings.Contains(text, c.want) || !strings.Contains(text, "--help\n") {
			t.Errorf("%s: got %d, %s, want %d and %q", c.words, code, text, exitUsage, c.want)
		}
	}
	for _, env := range []string{"CUTONCE_NONSENSE=1", "CUTONCE_SECRET=short"} {
		if code, text := ranAs(t, []string{env}, "serve"); code != exitUsage || !strings.Contains(text, "refused") {
			t.Errorf("serve with %s: got %d, %s, want it refused", env, code, text)
		}
	}
	if code, text := ranAs(t, nil, "--version"); code != 0 || !strings.HasPrefix(text, "cutonce "+version) {
		t.Errorf("--version: got %d, %s", code, text)
	}
}
