package config_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cutonce/cutonce/internal/config"
)

func load(t *testing.T, environ ...string) config.Settings {
	t.Helper()
	s, err := config.Load(environ)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func problems(t *testing.T, err error) config.Problems {
	t.Helper()
	var p config.Problems
	if !errors.As(err, &p) {
		t.Fatalf("got %v, want Problems", err)
	}
	return p
}

func TestLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "token")
	if err := os.WriteFile(file, []byte("from a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := load(t, "PATH=/bin", "DATABASE_URL=not ours", "CUTONCE_ADS_TOKEN_FILE="+file, "CUTONCE_CLOCK_SEND=3s",
		"CUTONCE_ISSUER2_TENANTS= a, b ,", "CUTONCE_MIGRATE=false", "CUTONCE_LOG_LEVEL=warn", "CUTONCE_LISTEN=")
	if s.DatabaseURL != "" || s.Ads.Token != "from a file" || s.Clock.Send != 3*time.Second || s.Migrate || s.LogLevel.String() != "WARN" {
		t.Errorf("got %+v", s)
	}
	if diff := cmp.Diff([]string{"a", "b"}, s.Issuer2.Tenants); diff != "" {
		t.Error(diff)
	}
	if s.Listen != "127.0.0.1:8780" || s.Clock.Lease != 30*time.Second || s.DatabasePool != 16 {
		t.Errorf("got %+v, want the defaults where nothing is said", s)
	}
}

func TestEveryDefaultIsValid(t *testing.T) {
	t.Parallel()
	if err := load(t).Check(); err != nil {
		t.Error(err)
	}
}

func TestUnknownVariablesAreNamed(t *testing.T) {
	t.Parallel()
	_, err := config.Load([]string{"CUTONCE_SECRT=s3cr3t", "CUTONCE_X=1", "CUTONCE_CLOCK_SWEEP=often"})
	got := problems(t, err)
	want := config.Problems{
		"CUTONCE_CLOCK_SWEEP: not a duration such as 30s, 10m or 24h",
		"CUTONCE_SECRT: there is no such setting; did you mean CUTONCE_SECRET?",
		"CUTONCE_X: there is no such setting",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(err.Error(), "s3cr3t") {
		t.Error("a value was repeated")
	}
}

// What surrounds the service sets variables too: Kubernetes, for a Service of our name, and the compose file.
func TestVariablesOfOthersAreNoSettings(t *testing.T) {
	t.Parallel()
	load(t, "CUTONCE_SERVICE_HOST=10.0.0.1", "CUTONCE_SERVICE_PORT=80", "CUTONCE_SERVICE_PORT_HTTP=80", "CUTONCE_PORT=tcp://10.0.0.1:80",
		"CUTONCE_PORT_80_TCP=tcp://10.0.0.1:80", "CUTONCE_PORT_80_TCP_ADDR=10.0.0.1", "CUTONCE_POSTGRES_PASSWORD=x", "CUTONCE_TEST_CONTAINERS=0",
		"CUTONCE_URL=https://cutonce.example", "CUTONCE_TOKEN=x", "CUTONCE_TOKEN_FILE=/x")
	if _, err := config.Load([]string{"CUTONCE_PORTS=1"}); err == nil {
		t.Error("got nil, want CUTONCE_PORTS refused")
	}
}

func TestFilesAreReadOrRefused(t *testing.T) {
	t.Parallel()
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, environ := range map[string][]string{
		"missing": {"CUTONCE_SECRET_FILE=/does/not/exist"},
		"empty":   {"CUTONCE_SECRET_FILE=" + empty},
		"twice":   {"CUTONCE_SECRET=x", "CUTONCE_SECRET_FILE=" + empty},
	} {
		_, err := config.Load(environ)
		if got := problems(t, err); !strings.Contains(got[0], "CUTONCE_SECRET_FILE") {
			t.Errorf("%s: got %q, want the variable named", name, got)
		}
	}
}

func TestCheckServeListsEverything(t *testing.T) {
	t.Parallel()
	s := load(t, "CUTONCE_SECRET=short", "CUTONCE_CLOCK_LEASE=10s", "CUTONCE_METRICS_LISTEN=8781", "CUTONCE_DEPLOYS_URL=https://d.example", "CUTONCE_ISSUER2_URL=https://i.example", "CUTONCE_ALLOW_UNSAFE_DATABASE=yes")
	got := problems(t, s.CheckServe())
	for _, want := range []string{
		"CUTONCE_DATABASE_URL", "CUTONCE_POLICY_DIR", "CUTONCE_PUBLIC_URL", "CUTONCE_DEPLOYS_TOKEN", "CUTONCE_DEPLOYS_SYSTEM",
		"CUTONCE_ISSUER_URL", "CUTONCE_ISSUER2_HUMAN_CLIENTS", "CUTONCE_SECRET", "CUTONCE_CLOCK_LEASE", "CUTONCE_METRICS_LISTEN", "CUTONCE_ALLOW_UNSAFE_DATABASE",
	} {
		if !slices.ContainsFunc(got, func(line string) bool { return strings.HasPrefix(line, want) }) {
			t.Errorf("%s is not named in:\n%s", want, got.Error())
		}
	}
	if len(got) != 11 {
		t.Errorf("got %d problems, want 11:\n%s", len(got), got.Error())
	}
}

func TestServeNeedsAPlatform(t *testing.T) {
	t.Parallel()
	got := problems(t, load(t).CheckServe())
	if !slices.ContainsFunc(got, func(line string) bool { return strings.HasPrefix(line, "CUTONCE_ADS_URL or CUTONCE_DEPLOYS_URL") }) {
		t.Errorf("got %s, want the platforms named", got.Error())
	}
}

func TestPublicURL(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]bool{
		"https://cutonce.example": true, "https://cutonce.example/": true, "https://cutonce.example:8443": true,
		"http://127.0.0.1:8780": true, "http://localhost": true, "http://[::1]:80": true,
		"http://cutonce.example": false, "https://cutonce.example/path": false, "https://u:p@cutonce.example": false,
		"https://cutonce.example?x": false, "cutonce.example": false, "http://127.0.0.1.example": false, "ftp://x": false,
	} {
		if got := load(t, "CUTONCE_PUBLIC_URL="+url).Check() == nil; got != want {
			t.Errorf("%s: got accepted %v, want %v", url, got, want)
		}
	}
}

func TestProfilesAreForThisMachine(t *testing.T) {
	t.Parallel()
	for listen, want := range map[string]bool{"127.0.0.1:8781": true, "localhost:8781": true, "0.0.0.0:8781": false, ":8781": false, "off": false} {
		err := load(t, "CUTONCE_METRICS_PROFILE=true", "CUTONCE_METRICS_LISTEN="+listen).Check()
		if got := err == nil; got != want {
			t.Errorf("%s: got %v, want accepted: %v", listen, err, want)
		}
	}
}

func TestClocks(t *testing.T) {
	t.Parallel()
	for set, want := range map[string]bool{
		"CUTONCE_CLOCK_LEASE=16s": false, "CUTONCE_CLOCK_LEASE=17s": true, "CUTONCE_CLOCK_SWEEP=10s": true, "CUTONCE_CLOCK_SWEEP=11s": false,
		"CUTONCE_CLOCK_APPLY_WAIT=50s": true, "CUTONCE_CLOCK_APPLY_WAIT=51s": false, "CUTONCE_CLOCK_APPLY_WINDOW=25h": false,
		"CUTONCE_CLOCK_PREVIEW_TTL=0s": false, "CUTONCE_CLOCK_APPLY_WAIT=0s": true,
	} {
		if got := load(t, set).Check() == nil; got != want {
			t.Errorf("%s: got accepted %v, want %v", set, got, want)
		}
	}
}

func TestRetentionIsOffOrLongerThanEveryClockAndKey(t *testing.T) {
	t.Parallel()
	if got := load(t).Retention; got != 0 {
		t.Errorf("got %v by default, want nothing removed", got)
	}
	for set, want := range map[string]bool{
		"CUTONCE_RETENTION=720h": true, "CUTONCE_RETENTION=719h59m59s": false, "CUTONCE_RETENTION=0s": true, "CUTONCE_RETENTION=1s": false,
		"CUTONCE_RETENTION=8760h": true, "CUTONCE_RETENTION=8760h CUTONCE_ADS_KEY_RETENTION=8760h": false,
		"CUTONCE_RETENTION=8760h CUTONCE_CLOCK_APPROVAL=9000h": false,
	} {
		if got := load(t, strings.Fields(set)...).Check() == nil; got != want {
			t.Errorf("%s: got accepted %v, want %v", set, got, want)
		}
	}
}

// Whatever way settings are printed, no secret is in them.
func TestNoSecretIsPrinted(t *testing.T) {
	t.Parallel()
	s := load(t, "CUTONCE_DATABASE_URL=postgres://u:hush@h/db", "CUTONCE_SECRET=hush", "CUTONCE_ADS_TOKEN=hush",
		"CUTONCE_ADS_URL=https://u:hush@ads.example")
	text, err := json.Marshal(s.Secret)
	if err != nil {
		t.Fatal(err)
	}
	shown := []string{s.LogValue().String(), fmt.Sprintf("%v %+v %#v %s", s.Secret, s.Ads.Token, s.DatabaseURL, s.Secret), string(text)}
	for _, row := range config.Table() {
		shown = append(shown, s.Get(row.Name))
	}
	for _, text := range shown {
		if strings.Contains(text, "hush") {
			t.Errorf("a secret is in %s", text)
		}
	}
	if got := s.Get("CUTONCE_SECRET"); got != "set" {
		t.Errorf("got %q, want set", got)
	}
}

func TestEverySettingIsExplained(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, row := range config.Table() {
		if row.Doc == "" || !strings.HasPrefix(row.Name, config.Prefix) || seen[row.Name] {
			t.Errorf("got %+v, want a name of its own and an explanation", row)
		}
		seen[row.Name] = true
	}
	if len(seen) < 40 {
		t.Errorf("got %d settings, want all", len(seen))
	}
}
