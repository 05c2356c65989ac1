package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cutonce/cutonce/audit"
	"github.com/cutonce/cutonce/internal/pgtest"
)

// ranAs runs a command to its end and returns its exit code and what it printed.
func ranAs(t *testing.T, env []string, args ...string) (int, string) {
	t.Helper()
	p := begin(t, t.TempDir(), env, args...)
	code := p.wait()
	return code, p.stdout.String() + p.stderr.String()
}

// TestAuditAndRestoreOnTheCommandLine seals a running service's trail, verifies it elsewhere with the public key, and then puts the
// service on another database: its witness freezes it, once.
func TestAuditAndRestoreOnTheCommandLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	witness, file := filepath.Join(dir, "witness"), filepath.Join(dir, "trail.ndjson")
	env := with(production(t), "CUTONCE_SEAL_WITNESS="+witness, "CUTONCE_CLOCK_SEAL=50ms")
	serve := func(env []string) *process {
		t.Helper()
		p := begin(t, t.TempDir(), env, "serve")
		p.saw(p.stderr, `"msg":"ready"`)
		return p
	}
	stop := func(p *process) {
		t.Helper()
		p.signal(syscall.SIGTERM)
		if code := p.wait(); code != 0 {
			t.Errorf("SIGTERM: got exit code %d, want 0", code)
		}
	}
	key := func() string {
		t.Helper()
		code, text := ranAs(t, env, "audit", "key")
		if code != 0 || !strings.Contains(text, "made from the deployment's secret") {
			t.Fatalf("audit key: got %d, %s", code, text)
		}
		return strings.Fields(text)[0]
	}()
	first := serve(env)
	until(t, "everything is sealed and witnessed", func() bool {
		code, text := ranAs(t, env, "audit", "verify", "--database", "--key", key)
		_, err := os.Stat(witness)
		return code == 0 && strings.Contains(text, "\n0 events not sealed yet") && err == nil
	})
	stop(first)
	if code, text := ranAs(t, env, "audit", "export", "--out", file); code != 0 {
		t.Fatalf("audit export: got %d, %s", code, text)
	}
	// Elsewhere: no setting, no database.
	if code, text := ranAs(t, nil, "audit", "verify", file, "--key", key, "--witness", witness); code != 0 || !strings.Contains(text, "OK: nothing was tampered with") {
		t.Errorf("audit verify: got %d, %s", code, text)
	}
	trail, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		trail []byte
		code  int
		want  string
	}{
		"edited":        {bytes.Replace(trail, []byte("policy_activated"), []byte("policy_reinstated"), 1), 1, "BROKEN controls of the deployment, event "},
		"cut off":       {trail[:bytes.LastIndexByte(trail[:len(trail)-1], '\n')+1], 1, "BROKEN the export ends early"},
		"not an export": {[]byte("{}\n"), 2, "no export"},
	} {
		path := filepath.Join(t.TempDir(), "trail")
		if err := os.WriteFile(path, tc.trail, 0o600); err != nil {
			t.Fatal(err)
		}
		if code, text := ranAs(t, nil, "audit", "verify", path, "--key", key); code != tc.code || !strings.Contains(text, tc.want) {
			t.Errorf("%s: got %d, %s; want %d, %q", name, code, text, tc.code, tc.want)
		}
	}
	for _, wrong := range [][]string{{"audit", "verify", file}, {"audit", "verify", "--key", key}, {"audit", "verify", file, "--key", "x"}, {"audit", "verify", "none", "--key", key}} {
		if code, text := ranAs(t, nil, wrong...); code != 2 {
			t.Errorf("%v: got %d, %s; want 2", wrong, code, text)
		}
	}
	lost := with(env, "CUTONCE_DATABASE_URL="+pgtest.URL(t))
	second := serve(lost)
	second.saw(second.stderr, "the database does not know the last seal that was witnessed")
	status := func(want string) {
		t.Helper()
		if code, text := ranAs(t, lost, "restore", "status"); code != 0 || !strings.Contains(text, want) {
			t.Errorf("restore status: got %d, %s; want %q", code, text, want)
		}
	}
	status("RESTORING: every apply is frozen")
	stop(second)
	if code, text := ranAs(t, lost, "restore", "finish"); code != 2 {
		t.Errorf("finishing in nobody's name: got %d, %s; want 2", code, text)
	}
	if code, text := ranAs(t, lost, "restore", "finish", "--by", "kim", "--reason", "a new database, knowingly"); code != 0 {
		t.Errorf("restore finish: got %d, %s", code, text)
	}
	stop(serve(lost))
	status("no restore is under way")
	if code, text := ranAs(t, lost, "restore", "declare", "--to", "2026-01-02T15:04:05Z", "--by", "kim", "--reason", "disk lost"); code != 0 {
		t.Errorf("restore declare: got %d, %s", code, text)
	}
	status("declared")
	if code, text := ranAs(t, lost, "audit", "verify", "--database", "--key", key); code != 0 || !strings.Contains(text, "2 restores from a backup were declared") {
		t.Errorf("audit verify of the other database: got %d, %s", code, text)
	}
	if err := os.WriteFile(witness, []byte("half a wit"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, text := ranAs(t, lost, "serve"); code == 0 || !strings.Contains(text, "CUTONCE_SEAL_WITNESS: this is no witness") ||
		!strings.Contains(text, "cutonce restore declare") {
		t.Errorf("a start with an unreadable witness: got %d, %s; want it refused, and told how to go on", code, text)
	}
}

func TestASealKeyOfItsOwn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key.pem")
	const pem = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF\n-----END PRIVATE KEY-----\n"
	if err := os.WriteFile(path, []byte(pem), 0o600); err != nil {
		t.Fatal(err)
	}
	code, text := ranAs(t, []string{"CUTONCE_SEAL_KEY_FILE=" + path}, "audit", "key")
	if code != 0 || !strings.Contains(text, "read from CUTONCE_SEAL_KEY_FILE") || strings.Contains(text, "n4Ni+HpISp") {
		t.Errorf("got %d, %s", code, text)
	}
	if code, text := ranAs(t, nil, "audit", "key"); code != exitUsage || !strings.Contains(text, "CUTONCE_SEAL_KEY_FILE or CUTONCE_SECRET") {
		t.Errorf("without any key: got %d, %s", code, text)
	}
	if code, text := ranAs(t, []string{"CUTONCE_SECRET=short"}, "audit", "key"); code != exitUsage || !strings.Contains(text, "too short") {
		t.Errorf("a short secret: got %d, %s", code, text)
	}
	// What is kept of standard output is a key, whatever a client's variables say.
	p := begin(t, t.TempDir(), []string{"CUTONCE_SEAL_KEY_FILE=" + path, "CUTONCE_URL=http://127.0.0.1:1", "CUTONCE_TOKEN=x"}, "audit", "key")
	if code := p.wait(); code != 0 {
		t.Errorf("with a client's variables: got exit code %d, %s", code, p.stderr)
	}
	if _, err := audit.ReadPublic(p.stdout.String()); err != nil {
		t.Errorf("standard output: got %q, want a key: %v", p.stdout, err)
	}
	if err := os.WriteFile(path, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, text := ranAs(t, []string{"CUTONCE_SEAL_KEY_FILE=" + path}, "audit", "key"); code != exitUsage || !strings.Contains(text, "not a PEM file") {
		t.Errorf("with nonsense: got %d, %s", code, text)
	}
}
