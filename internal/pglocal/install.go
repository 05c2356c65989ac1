package pglocal

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
)

// ErrNoPostgres says that no source had a Postgres; its wrapping text says how to get one.
var ErrNoPostgres = errors.New("no Postgres found")

func noPostgres() error { return fmt.Errorf("%w: %s", ErrNoPostgres, installHint()) }

func installHint() string {
	release, _ := os.ReadFile("/etc/os-release")
	return "install it with `" + installCommand(runtime.GOOS, string(release)) + "`, or set CUTONCE_DATABASE_URL to an empty database of yours"
}

// installCommand is the one command that a system's own package manager takes.
func installCommand(goos, osRelease string) string {
	if goos == "darwin" {
		return "brew install postgresql@17"
	}
	family := systemFamily(osRelease)
	switch {
	case strings.Contains(family, "alpine"):
		return "apk add postgresql17"
	case strings.Contains(family, "arch"):
		return "pacman -S postgresql"
	case strings.Contains(family, "suse"):
		return "zypper install postgresql-server"
	case strings.Contains(family, "fedora"), strings.Contains(family, "rhel"):
		return "dnf install postgresql-server"
	default:
		return "apt-get install -y postgresql"
	}
}

// systemFamily is the ID and ID_LIKE lines of os-release(5).
func systemFamily(osRelease string) string {
	var family []string
	for line := range strings.Lines(osRelease) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && (name == "ID" || name == "ID_LIKE") {
			family = append(family, value)
		}
	}
	return strings.Join(family, " ")
}
