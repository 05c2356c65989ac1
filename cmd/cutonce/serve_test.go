package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/internal/pgtest"
	"github.com/cutonce/cutonce/store"
)

const (
	testSecret   = "a-deployment-secret-of-32-bytes-or-more"
	testAdsToken = "the-credential-at-the-ad-platform"
)

// production is an environment in which serve starts; its issuer and its platform need not answer for that.
func production(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	token := filepath.Join(dir, "ads-token")
	if err := os.WriteFile(token, []byte(testAdsToken+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	rules, err := filepath.Abs("../../examples/policies")
	if err != nil {
		t.Fatal(err)
	}
	return []string{
		"CUTONCE_DATABASE_URL=" + pgtest.URL(t), "CUTONCE_ALLOW_UNSAFE_DATABASE=development",
		"CUTONCE_LISTEN=127.0.0.1:0", "CUTONCE_METRICS_LISTEN=off", "CUTONCE_PUBLIC_URL=https://cutonce.example",
		"CUTONCE_ISSUER_URL=http://127.0.0.1:1/issuer", "CUTONCE_ISSUER_JWKS_URL=http://127.0.0.1:1/jwks", "CUTONCE_ISSUER_TENANT=t", "CUTONCE_ISSUER_HUMAN_CLIENTS=console",
		"CUTONCE_SIGNIN_CLIENT_ID=console",
		"CUTONCE_SECRET=" + testSecret, "CUTONCE_POLICY_DIR=" + rules,
		"CUTONCE_ADS_URL=http://127.0.0.1:1", "CUTONCE_ADS_TOKEN_FILE=" + token, "CUTONCE_ADS_SYSTEM=ads.example/test",
	}
}

// with sets variables over others; an empty value takes one away.
func with(env []string, set ...string) []string {
	var out []string
	for _, one := range append(env, set...) {
		name, _, _ := strings.Cut(one, "=")
		kept := out[:0:0]
		for _, earlier := range out {
			if !strings.HasPrefix(earlier, name+"=") {
				kept = append(kept, earlier)
			}
		}
		out = append(kept, one)
	}
	return out
}

func TestServe(t *testing.T) {
	t.Parallel()
	env := production(t)
	p := begin(t, t.TempDir(), env, "serve")
	address := "http://" + p.saw(p.stderr, `"msg":"ready","listen":"([0-9.:]+)"`)[1]
	get := func(path string) (int, string) {
		reply, err := http.Get(address + path)
		if err != nil {
			t.Fatal(err)
		}
		defer reply.Body.Close()
		text, err := io.ReadAll(reply.Body)
		if err != nil {
			t.Fatal(err)
		}
		return reply.StatusCode, string(text)
	}
	for path, want := range map[string]int{
		"/healthz": 200, "/readyz": 200, "/openapi.yaml": 200, "/sign-in": 200, "/.well-known/oauth-protected-resource/mcp": 200,
		"/v1/previews": 401, "/mcp": 401,
		// The development issuer and its sign-in do not exist here.
		"/dev/sign-in?person=kim&code=x": 404, "/dev/issuer/jwks.json": 404, "/metrics": 404,
	} {
		if got, body := get(path); got != want {
			t.Errorf("%s: got %d, want %d: %s", path, got, want, body)
		}
	}
	if _, body := get("/.well-known/oauth-protected-resource/mcp"); !strings.Contains(body, `"https://cutonce.example/mcp"`) ||
		!strings.Contains(body, "http://127.0.0.1:1/issuer") {
		t.Errorf("got the resource's metadata %s", body)
	}
	p.signal(syscall.SIGTERM)
	if code := p.wait(); code != 0 {
		t.Errorf("SIGTERM: got exit code %d, want 0", code)
	}
	checkRedaction(t, env, p.stdout.String()+p.stderr.String())
}

// checkRedaction looks at all that a service has said: its settings, but no secret of them.
func checkRedaction(t *testing.T, env []string, said string) {
	t.Helper()
	for _, want := range []string{`"SECRET":"set"`, `"ADS_TOKEN":"set"`, `"DATABASE_URL":"set"`, `"PUBLIC_URL":"https://cutonce.example"`, `"CLOCK_LEASE":"30s"`} {
		if !strings.Contains(said, want) {
			t.Errorf("the start does not say %s", want)
		}
	}
	database, err := url.Parse(strings.TrimPrefix(env[0], "CUTONCE_DATABASE_URL="))
	if err != nil {
		t.Fatal(err)
	}
	never := []string{testSecret, testAdsToken, env[0][len("CUTONCE_DATABASE_URL="):]}
	if password, ok := database.User.Password(); ok && len(password) > 8 {
		never = append(never, password)
	}
	for _, secret := range never {
		if strings.Contains(said, secret) {
			t.Error("a secret was printed")
		}
	}
}

// misspelt is a policy that would watch over nothing.
func misspelt(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../examples/policies/budgets.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	wrong := strings.ReplaceAll(string(text), "[budget_change]", "[budget_chnage]")
	if err := os.WriteFile(filepath.Join(dir, "wrong.yaml"), []byte(wrong), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestServeRefuses(t *testing.T) {
	t.Parallel()
	good := production(t)
	for name, c := range map[string]struct {
		set  []string
		want []string
	}{
		"an unknown variable":        {[]string{"CUTONCE_LISTENN=x"}, []string{"CUTONCE_LISTENN", "did you mean CUTONCE_LISTEN?"}},
		"a development setting":      {[]string{"CUTONCE_DEV_ISSUER=1"}, []string{"CUTONCE_DEV_ISSUER: there is no such setting"}},
		"a short secret":             {[]string{"CUTONCE_SECRET=short"}, []string{"CUTONCE_SECRET", "32 bytes", "got 5"}},
		"no secret":                  {[]string{"CUTONCE_SECRET="}, []string{"CUTONCE_SECRET", "openssl rand"}},
		"no policy":                  {[]string{"CUTONCE_POLICY_DIR="}, []string{"CUTONCE_POLICY_DIR"}},
		"a folder without policy":    {[]string{"CUTONCE_POLICY_DIR=" + t.TempDir()}, []string{"policy"}},
		"a public address over http": {[]string{"CUTONCE_PUBLIC_URL=http://cutonce.example"}, []string{"CUTONCE_PUBLIC_URL", "https"}},
		"no way in for people":       {[]string{"CUTONCE_SIGNIN_CLIENT_ID="}, []string{"CUTONCE_SIGNIN_CLIENT_ID", "https://cutonce.example/sign-in/done"}},
		"a foreign way in":           {[]string{"CUTONCE_SIGNIN_ISSUER=https://other.example"}, []string{"CUTONCE_SIGNIN_ISSUER"}},
		"an issuer over http":        {[]string{"CUTONCE_ISSUER_URL=http://issuer.example"}, []string{"issuer.example"}},
		"a lease too short to send":  {[]string{"CUTONCE_CLOCK_LEASE=15s"}, []string{"CUTONCE_CLOCK_LEASE"}},
		"two problems at once":       {[]string{"CUTONCE_SECRET=", "CUTONCE_ADS_URL="}, []string{"CUTONCE_SECRET", "CUTONCE_ADS_URL"}},
		"three operators":            {[]string{"CUTONCE_ADS_RESOLVE_BY=3"}, []string{"CUTONCE_ADS_RESOLVE_BY", "1 or 2"}},
		"half a platform":            {[]string{"CUTONCE_DEPLOYS_URL=https://d.example"}, []string{"CUTONCE_DEPLOYS_TOKEN", "CUTONCE_DEPLOYS_SYSTEM"}},
		"a misspelt action":          {[]string{"CUTONCE_POLICY_DIR=" + misspelt(t)}, []string{"budget_chnage"}},
		"a secret twice":             {[]string{"CUTONCE_SECRET_FILE=/dev/null"}, []string{"CUTONCE_SECRET_FILE"}},
		"a duration in words":        {[]string{"CUTONCE_CLOCK_SEND=soon"}, []string{"CUTONCE_CLOCK_SEND", "30s"}},
		"no database": {
			[]string{"CUTONCE_DATABASE_URL=", "DATABASE_URL=postgres://u:p@127.0.0.1/x"}, []string{"CUTONCE_DATABASE_URL"},
		},
		"a database that does not answer": {[]string{"CUTONCE_DATABASE_URL=postgres://u:pass-word-9@127.0.0.1:1/x"}, []string{"127.0.0.1"}},
		"a schema that is behind":         {[]string{"CUTONCE_MIGRATE=false", "CUTONCE_DATABASE_URL=" + pgtest.URL(t)}, []string{"cutonce migrate"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said := refused(t, t.TempDir(), with(good, c.set...), "serve")
			for _, want := range c.want {
				if !strings.Contains(said, want) {
					t.Errorf("got %q, want %q in it", said, want)
				}
			}
			for _, secret := range []string{testSecret, testAdsToken, "pass-word-9"} {
				if strings.Contains(said, secret) {
					t.Error("a secret was printed")
				}
			}
		})
	}
}

func TestServeRefusesADatabaseThatForgets(t *testing.T) {
	t.Parallel()
	env := production(t)
	url := strings.TrimPrefix(env[0], "CUTONCE_DATABASE_URL=")
	execute(t, url, `do $$ begin execute format('alter database %I set synchronous_commit = off', current_database()); end $$`)
	said := refused(t, t.TempDir(), with(env, "CUTONCE_ALLOW_UNSAFE_DATABASE="), "serve")
	if !strings.Contains(said, "synchronous_commit=off") || !strings.Contains(said, "CUTONCE_ALLOW_UNSAFE_DATABASE=development") {
		t.Errorf("got %q, want the setting and the way around it named", said)
	}
}

func TestForeignTablesAreRefused(t *testing.T) {
	t.Parallel()
	env := production(t)
	execute(t, strings.TrimPrefix(env[0], "CUTONCE_DATABASE_URL="), `create table customers (id int)`)
	for _, args := range [][]string{
		{"serve"}, {"migrate"},
		{"dev", "--listen", "127.0.0.1:0", "--metrics-listen", "off", "--ads-listen", "127.0.0.1:0", "--deploys-listen", "127.0.0.1:0"},
	} {
		set := env
		if args[0] == "dev" {
			set = env[:1]
		}
		if said := refused(t, t.TempDir(), set, args...); !strings.Contains(said, "customers") {
			t.Errorf("%s: got %q, want the foreign table named", args[0], said)
		}
	}
	conn := connect(t, strings.TrimPrefix(env[0], "CUTONCE_DATABASE_URL="))
	var tables int
	if err := conn.QueryRow(t.Context(), `select count(*) from pg_tables where schemaname = 'public'`).Scan(&tables); err != nil || tables != 1 {
		t.Errorf("got %d tables, %v, want the foreign one alone", tables, err)
	}
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	env := production(t)
	for range 2 { // the second time there is nothing to do
		p := begin(t, t.TempDir(), env[:1], "migrate")
		if code := p.wait(); code != 0 {
			t.Fatalf("got exit code %d, want 0", code)
		}
	}
	if pending, err := store.Pending(t.Context(), strings.TrimPrefix(env[0], "CUTONCE_DATABASE_URL=")); err != nil || pending {
		t.Errorf("got pending %v, %v, want an up-to-date schema", pending, err)
	}
	p := begin(t, t.TempDir(), with(env, "CUTONCE_MIGRATE=false"), "serve")
	p.saw(p.stderr, `"msg":"ready"`)
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	p := begin(t, t.TempDir(), production(t), "serve")
	address := p.saw(p.stderr, `"msg":"ready","listen":"([0-9.:]+)"`)[1]
	// A connection that has only begun its request keeps the drain waiting. Connections are accepted in their order, so once a
	// later one is answered, this one is known to the server.
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprint(conn, "GET / HTTP/1.1\r\n"); err != nil {
		t.Fatal(err)
	}
	reply, err := http.Get("http://" + address + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	reply.Body.Close()
	p.signal(syscall.SIGTERM)
	p.saw(p.stderr, "draining")
	p.signal(syscall.SIGTERM)
	if code := p.wait(); code != interrupted {
		t.Errorf("got exit code %d, want %d: the end by the second signal", code, interrupted)
	}
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(t.Context()) })
	return conn
}

func execute(t *testing.T, url, sql string) {
	t.Helper()
	if _, err := connect(t, url).Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}
