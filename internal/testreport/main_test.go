package main

import (
	"strings"
	"testing"
)

func run(t *testing.T, lines ...string) (string, bool) {
	t.Helper()
	var out strings.Builder
	r := newReport(&out)
	if err := r.read(strings.NewReader(strings.Join(lines, "\n"))); err != nil {
		t.Fatal(err)
	}
	ok := r.finish()
	return out.String(), ok
}

func TestNothingIsLeftOutInSilence(t *testing.T) {
	t.Parallel()
	said, ok := run(t,
		`{"Action":"output","Package":"p","Test":"TestA","Output":"    pgtest.go:1: pgtest: using Postgres 15\n"}`,
		`{"Action":"pass","Package":"p","Test":"TestA"}`,
		`{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:7: no container engine answers\n"}`,
		`{"Action":"skip","Package":"p","Test":"TestB"}`,
		`{"Action":"pass","Package":"p","Elapsed":1.5}`,
		`{"Action":"skip","Package":"empty"}`,
	)
	if !ok {
		t.Error("got a failure, want a pass")
	}
	for _, want := range []string{
		"ok    p  1.5 s", "Postgres used: Postgres 15\n", "p TestB: no container engine answers\n",
		"1 packages passed, 0 failed; 1 tests passed, 1 not run",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("got %q, want %q in it", said, want)
		}
	}
	if strings.Contains(said, "empty") {
		t.Error("a package without tests is listed as skipped")
	}
}

func TestFailuresAreShownWhole(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string][]string{
		"a test": {
			`{"Action":"output","Package":"p","Test":"TestA","Output":"a_test.go:3: got 1, want 2\n"}`,
			`{"Action":"fail","Package":"p","Test":"TestA"}`, `{"Action":"fail","Package":"p"}`, `{"Action":"pass","Package":"q"}`,
		},
		"a build": {
			`{"Action":"build-output","ImportPath":"p","Output":"a.go:3: got 1, want 2\n"}`, `{"Action":"build-fail","ImportPath":"p"}`,
			`{"Action":"fail","Package":"p"}`, `{"Action":"pass","Package":"q"}`,
		},
		"no JSON": {`a_test.go:3: got 1, want 2`, `{"Action":"fail","Package":"p"}`},
	} {
		if said, ok := run(t, lines...); ok || !strings.Contains(said, "got 1, want 2") || !strings.Contains(said, "FAILED: p") {
			t.Errorf("%s: got %q, %v, want the failure shown", name, said, ok)
		}
	}
	if said, ok := run(t); ok {
		t.Errorf("no tests at all: got a pass: %q", said)
	}
}
