package pglocal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// oldestMajor is the oldest Postgres that the product is tested on.
const oldestMajor = 15

var errNoBinaries = errors.New("no Postgres binaries")

// Binaries is an installation of the server: a folder with initdb and postgres.
type Binaries struct {
	Dir     string
	Version string // such as 15.18
	Major   int
}

// Find returns the local binaries that Open would use for a new cluster, without npm or a container engine.
func Find(ctx context.Context, cfg Config) (Binaries, error) {
	bins, err := find(ctx, cfg.withDefaults())
	if errors.Is(err, errNoBinaries) {
		return Binaries{}, noPostgres()
	}
	return bins, err
}

// find prefers the major version that made the data, because no other can read it.
func find(ctx context.Context, cfg Config) (Binaries, error) {
	made := madeBy(filepath.Join(cfg.Dir, cfg.Name, "data"))
	dirs, explicit := candidates(cfg)
	var best Binaries
	for _, dir := range dirs {
		bins, err := inspect(ctx, dir)
		if err != nil && explicit {
			return Binaries{}, fmt.Errorf("PGBIN names %s, which holds no usable Postgres: %w", dir, err)
		}
		if explicit && cfg.Major != 0 && bins.Major != cfg.Major {
			return Binaries{}, fmt.Errorf("PGBIN names Postgres %d (%s), but Postgres %d is asked for", bins.Major, dir, cfg.Major)
		}
		if err != nil || bins.Major < oldestMajor || cfg.Major != 0 && bins.Major != cfg.Major {
			continue
		}
		if made == 0 || bins.Major == made {
			return bins, nil
		}
		best = cmp.Or(best, bins)
	}
	if best.Dir == "" {
		return Binaries{}, errNoBinaries
	}
	return best, nil
}

func candidates(cfg Config) (dirs []string, explicit bool) {
	if dir := cmp.Or(cfg.BinDir, os.Getenv("PGBIN")); dir != "" {
		return []string{dir}, true
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			dirs = append(dirs, filepath.Dir(real))
		}
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",                          // Debian, Ubuntu
		"/usr/pgsql-*/bin",                                   // Fedora, Red Hat
		"/opt/homebrew/opt/postgresql@*/bin",                 // Homebrew on arm64
		"/usr/local/opt/postgresql@*/bin",                    // Homebrew on x86-64
		"/Applications/Postgres.app/Contents/Versions/*/bin", // Postgres.app
	} {
		found, _ := filepath.Glob(pattern)
		slices.SortFunc(found, func(a, b string) int { return cmp.Compare(numberIn(b), numberIn(a)) })
		dirs = append(dirs, found...)
	}
	return dirs, false
}

var digits = regexp.MustCompile(`\d+`)

// numberIn is the last number of a path, the major version in all of the layouts above.
func numberIn(path string) int {
	all := digits.FindAllString(path, -1)
	if len(all) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(all[len(all)-1])
	return n
}

var versionLine = regexp.MustCompile(`\(PostgreSQL\) ((\d+)[.\w]*)`)

func inspect(ctx context.Context, dir string) (Binaries, error) {
	if _, err := os.Stat(filepath.Join(dir, "initdb")); err != nil {
		return Binaries{}, err
	}
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return Binaries{}, fmt.Errorf("ask postgres for its version: %w", err)
	}
	found := versionLine.FindSubmatch(out)
	if found == nil {
		return Binaries{}, fmt.Errorf("postgres gave no version: %q", out)
	}
	major, err := strconv.Atoi(string(found[2]))
	if err != nil {
		return Binaries{}, fmt.Errorf("read the version of postgres: %w", err)
	}
	return Binaries{Dir: dir, Version: string(found[1]), Major: major}, nil
}

// madeBy is the major version that made a data directory, 0 if there is none yet.
func madeBy(data string) int {
	text, err := os.ReadFile(filepath.Join(data, "PG_VERSION"))
	if err != nil {
		return 0
	}
	return numberIn(string(text))
}
