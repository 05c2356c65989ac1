package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// stricter is a folder with the example policies, whose automatic raises end earlier.
func stricter(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"budgets.yaml", "rollback.yaml"} {
		text, err := os.ReadFile(filepath.Join("../../examples/policies", name))
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.ReplaceAll(string(text), "percent(50)", "percent(40)")
		if err := os.WriteFile(filepath.Join(dir, name), []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A process whose policy another one has superseded gets no more calls, and one that comes back with old files does not loosen
// the rules, unless a person says so.
func TestASupersededPolicyStaysSuperseded(t *testing.T) {
	t.Parallel()
	const ready = `"msg":"ready","listen":"([0-9.:]+)"`
	old := production(t)
	first := begin(t, t.TempDir(), old, "serve")
	readyz := "http://" + first.saw(first.stderr, ready)[1] + "/readyz"
	status := func() (int, string) {
		reply, err := http.Get(readyz)
		if err != nil {
			t.Fatal(err)
		}
		defer reply.Body.Close()
		text, err := io.ReadAll(reply.Body)
		if err != nil {
			t.Fatal(err)
		}
		return reply.StatusCode, string(text)
	}
	if got, body := status(); got != http.StatusOK {
		t.Fatalf("before: got %d, want 200: %s", got, body)
	}
	second := begin(t, t.TempDir(), with(old, "CUTONCE_POLICY_DIR="+stricter(t)), "serve")
	second.saw(second.stderr, ready)
	if got, body := status(); got != http.StatusServiceUnavailable {
		t.Errorf("another policy is in force: got %d, want 503: %s", got, body)
	}
	first.signal(syscall.SIGKILL)
	first.wait()
	back := begin(t, t.TempDir(), old, "serve")
	if code := back.wait(); code == 0 || !strings.Contains(back.stderr.String(), "CUTONCE_POLICY_REINSTATE") {
		t.Errorf("an old replica came back: got exit code %d and %q, want a refusal that says what to do", code, back.stderr.String())
	}
	again := begin(t, t.TempDir(), with(old, "CUTONCE_POLICY_REINSTATE=true"), "serve")
	again.saw(again.stderr, ready)
}
