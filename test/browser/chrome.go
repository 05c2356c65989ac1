package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"
)

// errNoBrowser says that there is nothing to look with.
var errNoBrowser = errors.New("no browser: install chromium, or name one with CUTONCE_BROWSER")

// findBrowser is the browser that CUTONCE_BROWSER names, or one that is installed.
func findBrowser() (string, error) {
	if named := os.Getenv("CUTONCE_BROWSER"); named != "" {
		path, err := exec.LookPath(named)
		if err != nil {
			return "", fmt.Errorf("CUTONCE_BROWSER: %w", err)
		}
		return path, nil
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errNoBrowser
}

// chrome is one running browser, with a folder of its own.
type chrome struct {
	// ctx holds the browser; each tab is a child of it.
	ctx     context.Context
	version string
	cancels []func()
}

// startChrome starts the browser. It accepts the certificate with this public key and no other bad one.
func startChrome(ctx context.Context, publicKey []byte) (*chrome, error) {
	path, err := findBrowser()
	if err != nil {
		return nil, err
	}
	home, err := os.MkdirTemp("", "cutonce-browser-")
	if err != nil {
		return nil, err
	}
	b := &chrome{cancels: []func(){func() { _ = os.RemoveAll(home) }}}
	pin := sha256.Sum256(publicKey)
	ctx, cancel := chromedp.NewExecAllocator(ctx, switches(path, home, base64.StdEncoding.EncodeToString(pin[:]))...)
	b.cancels = append(b.cancels, cancel)
	b.ctx, cancel = chromedp.NewContext(ctx, chromedp.WithLogf(quiet), chromedp.WithErrorf(quiet))
	b.cancels = append(b.cancels, cancel)
	if err := chromedp.Do(b.ctx); err != nil { // the browser's life is this context's: no deadline here
		return b, fmt.Errorf("starting %s: %w", path, err)
	}
	told, err := chromedp.CallBrowser(b.ctx, browser.GetVersion, cdp.Empty{})
	b.version = told.Product
	return b, err
}

// quiet drops what the library says of itself: what a browser newer than the library tells is no news here.
func quiet(string, ...any) {}

func switches(path, home, pin string) []chromedp.ExecAllocatorOption {
	list := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.UserDataDir(filepath.Join(home, "profile")), chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
		chromedp.Headless, chromedp.DisableGPU,
		// The environment of a test may hold secrets, and the language of the machine is no part of a test.
		chromedp.NoInheritEnv, chromedp.Env("HOME="+home, "PATH="+os.Getenv("PATH"), "LANG=C.UTF-8", "TZ=UTC", "TMPDIR="+cmp.Or(os.Getenv("TMPDIR"), os.TempDir())),
		chromedp.Flag("ignore-certificate-errors-spki-list", pin), chromedp.Flag("force-color-profile", "srgb"), chromedp.Flag("lang", "en-US"),
		chromedp.Flag("disable-features", "Translate,MediaRouter,OptimizationHints"),
	}
	for _, name := range []string{
		"disable-quic", "disable-background-networking", "disable-component-update", "disable-sync", "disable-default-apps", "disable-extensions",
		"disable-dev-shm-usage", "disable-background-timer-throttling", "disable-backgrounding-occluded-windows", "disable-renderer-backgrounding",
		"disable-hang-monitor", "metrics-recording-only",
	} {
		list = append(list, chromedp.Flag(name, true))
	}
	if os.Geteuid() == 0 {
		list = append(list, chromedp.NoSandbox) // Chromium refuses its sandbox to root
	}
	return list
}

const closeFor = 15 * time.Second

func (b *chrome) close() {
	if b.ctx != nil {
		ctx, cancel := context.WithTimeout(b.ctx, closeFor)
		defer cancel()
		_ = chromedp.Cancel(ctx)
	}
	for i := len(b.cancels) - 1; i >= 0; i-- {
		b.cancels[i]()
	}
}
