package pglocal

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

func TestInstallCommand(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ goos, release, want string }{
		"Debian":  {"linux", "PRETTY_NAME=\"Debian\"\nID=debian\n", "apt-get install -y postgresql"},
		"Ubuntu":  {"linux", "ID=ubuntu\nID_LIKE=debian\n", "apt-get install -y postgresql"},
		"Fedora":  {"linux", "ID=fedora\n", "dnf install postgresql-server"},
		"Rocky":   {"linux", "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n", "dnf install postgresql-server"},
		"Alpine":  {"linux", "ID=alpine\n", "apk add postgresql17"},
		"macOS":   {"darwin", "", "brew install postgresql@17"},
		"unknown": {"linux", "", "apt-get install -y postgresql"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := installCommand(tc.goos, tc.release); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestNothingToBeHadIsOneErrorWithTheCommand(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("PGBIN", "")
	if dirs, _ := candidates(Config{}); len(dirs) > 0 {
		t.Setenv("PGBIN", t.TempDir())
		_, err := Open(context.Background(), Config{Dir: t.TempDir()})
		if err == nil || !strings.Contains(err.Error(), "PGBIN names") {
			t.Errorf("got %v, want an error about PGBIN", err)
		}
	}
	err := noPostgres()
	if !errors.Is(err, ErrNoPostgres) || !strings.Contains(err.Error(), "install") || !strings.Contains(err.Error(), "CUTONCE_DATABASE_URL") {
		t.Errorf("got %q, want the install command and the variable", err)
	}
}

// Tests ask for one major version; another one in its place would make what they print a lie.
func TestOnlyTheMajorVersionThatIsAskedFor(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"initdb": "", "postgres": "#!/bin/sh\necho 'postgres (PostgreSQL) 16.3'\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PGBIN", dir)
	for _, major := range []int{0, 16} {
		bins, err := Find(t.Context(), Config{Dir: t.TempDir(), Major: major})
		if err != nil || bins.Version != "16.3" {
			t.Errorf("asked for %d: got %+v, %v, want 16.3", major, bins, err)
		}
	}
	if bins, err := Find(t.Context(), Config{Dir: t.TempDir(), Major: 17}); err == nil {
		t.Errorf("asked for 17: got %+v, want an error", bins)
	}
}

// The compose file and the URL that Open builds must agree where the environment is silent.
func TestComposeFileAgreesWithTheURL(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "docker-compose.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]struct {
			Image       string
			Environment map[string]string
			Ports       []string
			Healthcheck struct{ Test []string }
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	service, ok := file.Services[composeService]
	if !ok {
		t.Fatalf("no service %q", composeService)
	}
	for got, want := range map[string]string{
		service.Environment["POSTGRES_USER"]:     superuser,
		service.Environment["POSTGRES_DB"]:       database,
		service.Environment["POSTGRES_PASSWORD"]: "${CUTONCE_POSTGRES_PASSWORD:-" + composePassword + "}",
		strings.Join(service.Ports, ","):         "127.0.0.1:${CUTONCE_POSTGRES_PORT:-" + composePort + "}:5432",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if len(service.Healthcheck.Test) == 0 {
		t.Error("no health check, so that `up --wait` proves nothing")
	}
	if _, tag, _ := strings.Cut(strings.TrimSuffix(service.Image, "}"), ":-postgres:"); !strings.Contains(tag, ".") {
		t.Errorf("got image %q, want a pinned minor version", service.Image)
	}
}
