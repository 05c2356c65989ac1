package pglocal

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// initialize makes the data directory under another name first: a crash midway leaves nothing that looks complete.
func (p *private) initialize(ctx context.Context) error {
	fresh, secret := p.data+".new", filepath.Join(p.base, "initdb.password")
	defer os.Remove(secret)
	if err := errors.Join(os.RemoveAll(fresh), os.Mkdir(fresh, 0o700), p.account.own(fresh)); err != nil {
		return fmt.Errorf("make room for a Postgres cluster: %w", err)
	}
	if err := errors.Join(os.WriteFile(secret, []byte(p.password+"\n"), 0o600), p.account.own(secret)); err != nil {
		return fmt.Errorf("hand the password to initdb: %w", err)
	}
	args := []string{"-D", fresh, "-U", superuser, "-A", "scram-sha-256", "--pwfile=" + secret,
		"-E", "UTF8", "--locale=" + locale(), "--data-checksums"}
	if p.cfg.Volatile {
		args = append(args, "--no-sync")
	}
	cmd := p.command("initdb", args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	s, err := spawn(cmd, p.account, p.lock)
	if err != nil {
		return fmt.Errorf("run initdb: %w", err)
	}
	select {
	case <-s.done:
	case <-ctx.Done():
		return errors.Join(ctx.Err(), s.kill(context.WithoutCancel(ctx)))
	}
	if s.err != nil {
		return fmt.Errorf("initdb failed (%w): %s", s.err, lastLines(said.Bytes()))
	}
	if err := os.Rename(fresh, p.data); err != nil {
		return fmt.Errorf("put the new cluster in place: %w", err)
	}
	return syncDir(p.base)
}

// locale sorts by code point everywhere, so that no query's order depends on the machine.
func locale() string {
	if runtime.GOOS == "linux" {
		return "C.UTF-8"
	}
	return "C"
}

// keptPassword makes a password once and keeps it for this user alone.
func keptPassword(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err == nil && len(bytes.TrimSpace(text)) > 0 {
		return string(bytes.TrimSpace(text)), nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("read the cluster's password: %w", err)
	}
	password := rand.Text()
	if err := os.WriteFile(path, []byte(password+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("keep the cluster's password: %w", err)
	}
	return password, nil
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return cmp.Or(dir.Sync(), dir.Close())
}
