package pglocal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
)

const (
	npmScope = "@embedded-postgres/"
	npmMajor = 17 // where any major version will do
)

// npmVersions are the packages' versions by the major version of Postgres.
var npmVersions = map[int]string{
	15: "15.18.0-beta.17", 16: "16.14.0-beta.17", 17: "17.10.0-beta.17", 18: "18.4.0-beta.17",
}

// fromNPM takes the binaries that npm carries, downloaded once into the cache folder.
func fromNPM(ctx context.Context, cfg Config) (Binaries, error) {
	npm, err := exec.LookPath("npm")
	platform := npmPlatform(runtime.GOOS, runtime.GOARCH)
	if err != nil || platform == "" {
		return Binaries{}, errNoBinaries
	}
	version, known := npmVersions[cmp.Or(cfg.Major, npmMajor)]
	if !known {
		return Binaries{}, errNoBinaries
	}
	home, err := npmHome(cfg, version)
	if err != nil {
		return Binaries{}, err
	}
	dir := filepath.Join(home, "node_modules", npmScope+platform, "native", "bin")
	if bins, err := inspect(ctx, dir); err == nil {
		return bins, nil
	}
	cfg.Log.InfoContext(ctx, "fetching Postgres with npm", "package", npmScope+platform+"@"+version)
	cmd := exec.CommandContext(ctx, npm, "install", "--prefix", home, "--no-save", "--no-package-lock", "--no-audit", "--no-fund",
		"--loglevel=error", npmScope+platform+"@"+version)
	if out, err := cmd.CombinedOutput(); err != nil {
		return Binaries{}, fmt.Errorf("fetch Postgres with npm (%w): %s; or %s", err, lastLines(out), installHint())
	}
	if err := openToAll(home); err != nil {
		return Binaries{}, fmt.Errorf("make the fetched Postgres readable: %w", err)
	}
	return inspect(ctx, dir)
}

// npmHome is in the cache folder, unless root keeps that where the server's account cannot read it.
func npmHome(cfg Config, version string) (string, error) {
	cache, err := filepath.Abs(cfg.Cache)
	if err != nil {
		return "", err
	}
	who, err := chooseAccount(filepath.Join(cfg.Dir, cfg.Name, "data"))
	if err != nil {
		return "", err
	}
	if err := makeDir(cache, 0o755); err != nil {
		return "", err
	}
	if who.canReach(cache) != nil {
		cache = filepath.Join(cfg.Dir, "cache")
	}
	home := filepath.Join(cache, "embedded-postgres-"+version)
	return home, errors.Join(makeDir(cache, 0o755), makeDir(home, 0o755))
}

func npmPlatform(goos, goarch string) string {
	return map[string]string{
		"linux/amd64": "linux-x64", "linux/arm64": "linux-arm64",
		"darwin/amd64": "darwin-x64", "darwin/arm64": "darwin-arm64",
	}[goos+"/"+goarch]
}

// openToAll lets every account read the tree and run its programs; npm obeys a umask that may forbid it.
func openToAll(root string) error {
	return filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.Type()&os.ModeSymlink != 0 {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		mode := info.Mode().Perm() | 0o444
		if entry.IsDir() || mode&0o100 != 0 {
			mode |= 0o111
		}
		return os.Chmod(path, mode)
	})
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
