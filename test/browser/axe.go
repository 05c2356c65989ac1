package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/chromedp/chromedp"
)

//go:embed package.json package-lock.json
var packages embed.FS

// errNoNPM says that axe-core cannot be had.
var errNoNPM = errors.New("npm is not installed, and axe-core comes from it: install Node")

// fetchAxe brings exactly the axe-core that the lock file names, unless it is there, and returns its text. It is somebody else's work
// under another licence, so it is fetched and never kept in the tree.
func fetchAxe(ctx context.Context, cache string) (string, error) {
	dir, err := filepath.Abs(filepath.Join(cache, "browser"))
	if err != nil {
		return "", err
	}
	lock, err := packages.ReadFile("package-lock.json")
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(lock)
	want, mark := hex.EncodeToString(sum[:]), filepath.Join(dir, "installed")
	if got, err := os.ReadFile(mark); err != nil || string(got) != want {
		if err := installAxe(ctx, dir); err != nil {
			return "", err
		}
		if err := os.WriteFile(mark, []byte(want), 0o644); err != nil {
			return "", err
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "node_modules", "axe-core", "axe.min.js"))
	return string(text), err
}

func installAxe(ctx context.Context, dir string) error {
	if _, err := exec.LookPath("npm"); err != nil {
		return errNoNPM
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.CopyFS(dir, packages); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	cmd := exec.CommandContext(ctx, "npm", "ci", "--prefix", dir, "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci: %w\n%s", err, bytes.TrimSpace(out[:min(1000, len(out))]))
	}
	return nil
}

// finding is a rule of axe-core that a page breaks.
type finding struct {
	ID, Help string
	Nodes    []string
}

// askAxe runs the rules of WCAG 2.2 AA and axe's own best practices. The pages' policy lets no script of ours in, so it runs as the
// developer tools run what is typed into them.
const askAxe = `axe.run(document, {resultTypes: ['violations'], runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']})
	.then(r => r.violations.map(v => ({ID: v.id, Help: v.help, Nodes: v.nodes.map(n => n.target.join(' ') + ' ' + n.html.slice(0, 160) + ' ' + n.any.concat(n.all).map(c => c.message).join('; '))})))`

// accessible looks at the page as it stands for what keeps people out, and counts it.
func (t *tab) accessible() []finding {
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	if !eval[bool](t, `typeof axe === 'object'`) {
		t.w.must(chromedp.Do(ctx, chromedp.Evaluate[chromedp.Void](t.w.axe)))
	}
	found, err := chromedp.Run(ctx, chromedp.Evaluate[[]finding](askAxe, chromedp.EvalAwaitPromise, chromedp.EvalAsValue))
	if err != nil {
		t.w.fail("asking axe: %v", err)
	}
	t.w.stage.mu.Lock()
	defer t.w.stage.mu.Unlock()
	t.w.violations += len(found)
	return found
}
