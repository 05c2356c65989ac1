package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestAReleaseHasNoStops builds the program with and without the tag stops: the tag exchanges one file of this package, adds
// nothing anywhere else, and what it adds is in no other build.
func TestAReleaseHasNoStops(t *testing.T) {
	t.Parallel()
	release, stopping := files(t), files(t, "-tags", "stops")
	for _, f := range []struct {
		name     string
		got, not []string
	}{{"stops_off.go", release, stopping}, {"stops_on.go", stopping, release}} {
		i := slices.IndexFunc(f.got, func(path string) bool { return filepath.Base(path) == f.name })
		if i < 0 {
			t.Fatalf("%s is in neither build", f.name)
		}
		if slices.Contains(f.not, f.got[i]) {
			t.Errorf("%s is in both builds", f.name)
		}
	}
	same := func(paths []string) []string {
		return slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return strings.HasPrefix(filepath.Base(p), "stops_o") })
	}
	if got, want := same(stopping), same(release); !slices.Equal(got, want) {
		t.Errorf("the tag changes more than one file: got %d files, want %d", len(got), len(want))
	}
	tagged := filepath.Join(t.TempDir(), "tagged")
	if out, err := exec.Command("go", "build", "-tags", "stops", "-o", tagged, ".").CombinedOutput(); err != nil {
		t.Fatalf("building with the tag: %v\n%s", err, out)
	}
	for path, want := range map[string]bool{binary: false, tagged: true} {
		code, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := bytes.Contains(code, []byte("CRASH_STOPS_DIR")); got != want {
			t.Errorf("%s: holds stops: got %t, want %t", filepath.Base(path), got, want)
		}
	}
}

// files lists every Go file of ours that goes into the program.
func files(t *testing.T, flags ...string) []string {
	t.Helper()
	args := append([]string{"list", "-deps", "-f", `{{if and .Module (eq .Module.Path "github.com/cutonce/cutonce")}}` +
		`{{$d := .Dir}}{{range .GoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}{{end}}`}, flags...)
	out, err := exec.Command("go", append(args, ".")...).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return slices.Sorted(slices.Values(strings.Fields(string(out))))
}
