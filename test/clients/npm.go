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
	"runtime"
	"strconv"
	"strings"
)

// nodeVersion is fetched where the machine's Node is older than the clients need.
const (
	nodeVersion            = "22.23.5"
	leastMajor, leastMinor = 22, 19
)

//go:embed package.json package-lock.json *.mjs
var program embed.FS

// fetch brings Node and the clients, and returns Node's path and the folder that holds the program beside its packages. It
// is outside the source tree: packages of npm may hold Go files, which are none of ours.
func fetch(ctx context.Context, cache string) (node, dir string, err error) {
	if _, err := exec.LookPath("npm"); err != nil {
		return "", "", errors.New("npm is not installed, and the clients come from it: install Node")
	}
	cache, err = filepath.Abs(cache)
	if err != nil {
		return "", "", err
	}
	if node, err = recentNode(ctx, cache); err != nil {
		return "", "", err
	}
	dir = filepath.Join(cache, "clients")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", "", err
	}
	if err := unpack(dir); err != nil {
		return "", "", err
	}
	return node, dir, install(ctx, dir)
}

// recentNode is the machine's Node, or one that npm carries.
func recentNode(ctx context.Context, cache string) (string, error) {
	if path, err := exec.LookPath("node"); err == nil && recent(ctx, path) {
		return path, nil
	}
	platform := map[string]string{
		"linux/amd64": "linux-x64", "linux/arm64": "linux-arm64", "darwin/amd64": "darwin-x64", "darwin/arm64": "darwin-arm64",
	}[runtime.GOOS+"/"+runtime.GOARCH]
	if platform == "" {
		return "", fmt.Errorf("the clients need Node %d.%d or newer: install it", leastMajor, leastMinor)
	}
	home := filepath.Join(cache, "node-"+nodeVersion)
	path := filepath.Join(home, "node_modules", "node-"+platform, "bin", "node")
	if recent(ctx, path) {
		return path, nil
	}
	if err := os.MkdirAll(home, 0o755); err != nil {
		return "", err
	}
	fmt.Printf("fetching Node %s with npm: the clients need %d.%d or newer\n", nodeVersion, leastMajor, leastMinor)
	if err := npm(ctx, home, "install", "--no-save", "--no-package-lock", "node-"+platform+"@"+nodeVersion); err != nil {
		return "", err
	}
	if !recent(ctx, path) {
		return "", fmt.Errorf("%s does not run", path)
	}
	return path, nil
}

func recent(ctx context.Context, path string) bool {
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return false
	}
	parts := strings.Split(strings.TrimPrefix(strings.TrimSpace(string(out)), "v"), ".")
	if len(parts) != 3 {
		return false
	}
	major, err1 := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	return errors.Join(err1, err2) == nil && (major > leastMajor || major == leastMajor && minor >= leastMinor)
}

func unpack(dir string) error {
	entries, err := program.ReadDir(".")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		text, err := program.ReadFile(entry.Name())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, entry.Name()), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// install brings exactly what the lock file names, unless that is there. The mark is written last.
func install(ctx context.Context, dir string) error {
	lock, err := program.ReadFile("package-lock.json")
	if err != nil {
		return err
	}
	sum := sha256.Sum256(lock)
	want, mark := hex.EncodeToString(sum[:]), filepath.Join(dir, "installed")
	if got, err := os.ReadFile(mark); err == nil && string(got) == want {
		return nil
	}
	fmt.Println("fetching the clients with npm")
	// Not "ci": it refuses a lock file that leaves out an optional package which the registry does not have.
	if err := npm(ctx, dir, "install", "--no-save"); err != nil {
		return err
	}
	return os.WriteFile(mark, []byte(want), 0o644)
}

// npm runs npm for dir, whatever lies in the folders above it. No package's scripts are run.
func npm(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "npm", append(args, "--prefix", dir, "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm %s: %w\n%s", args[0], err, beginning(out))
	}
	return nil
}

// beginning is where npm says what is wrong; its help follows.
func beginning(out []byte) []byte {
	const most = 1000
	return bytes.TrimSpace(out[:min(most, len(out))])
}
