package instance_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cutonce/cutonce/internal/instance"
)

func open(t *testing.T, path string) *instance.Dir {
	t.Helper()
	d, err := instance.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func TestOneHolderAtATime(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state")
	first := open(t, path)
	var held *instance.HeldError
	if _, err := instance.Open(path); !errors.As(err, &held) || held.PID != os.Getpid() || held.URL != "" {
		t.Fatalf("before an address is known: got %v, want this process named", err)
	}
	if err := first.Announce("http://127.0.0.1:8780"); err != nil {
		t.Fatal(err)
	}
	_, err := instance.Open(path)
	if !errors.As(err, &held) || held.URL != "http://127.0.0.1:8780" || !strings.Contains(err.Error(), "--state-dir") {
		t.Errorf("got %v, want the address named, and what to do", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, path)
}

func TestKept(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	d := open(t, path)
	first, err := d.Kept("secret", rand.Reader)
	if err != nil || len(first) != 64 {
		t.Fatalf("got %d characters, %v, want 64", len(first), err)
	}
	again, err := d.Kept("secret", bytes.NewReader(nil))
	if err != nil || again != first {
		t.Errorf("got another secret, %v, want the kept one", err)
	}
	if other, err := d.Kept("other", rand.Reader); err != nil || other == first {
		t.Errorf("got the same secret under another name, %v", err)
	}
	info, err := os.Stat(d.File("secret"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v, want a file for its owner alone", info.Mode(), err)
	}
	if err := os.WriteFile(d.File("secret"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Kept("secret", rand.Reader); err == nil {
		t.Error("a broken file: got nil, want an error: a new secret would not fit the old data")
	}
	if _, err := d.Kept("third", bytes.NewReader(nil)); err == nil {
		t.Error("no randomness: got nil, want an error")
	}
	if _, err := os.Stat(d.File("third")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no randomness: got %v, want nothing kept", err)
	}
}
