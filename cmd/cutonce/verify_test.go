package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/internal/devissuer"
	"github.com/cutonce/cutonce/internal/pgtest"
	"github.com/cutonce/cutonce/internal/wire"
	"github.com/cutonce/cutonce/store"
	"github.com/cutonce/cutonce/verify"
)

// verified is what verify --json says.
type verified struct {
	Code    int             `json:"exit_code"`
	Pass    int             `json:"pass"`
	Fail    int             `json:"fail"`
	NA      int             `json:"na"`
	Seconds float64         `json:"seconds"`
	Results []verify.Result `json:"results"`
	Clocks  []verify.Clock  `json:"clocks"`
}

func (v verified) status(id string) verify.Status {
	for _, r := range v.Results {
		if r.ID == id {
			return r.Status
		}
	}
	return "missing"
}

func databaseOf(env []string) string { return strings.TrimPrefix(env[0], "CUTONCE_DATABASE_URL=") }

// schemas lists what the database holds beside the server's own, with the number of tables in it.
func schemas(t *testing.T, address string) map[string]int {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, `select nspname, (select count(*) from pg_class c where c.relnamespace = n.oid and relkind = 'r')
		from pg_namespace n where nspname not like 'pg\_%' and nspname <> 'information_schema'`)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	var name string
	var tables int
	if _, err := pgx.ForEachRow(rows, []any{&name, &tables}, func() error { found[name] = tables; return nil }); err != nil {
		t.Fatal(err)
	}
	return found
}

// Scenario 12 of the comparison with others: the guarantees, on the user's own configuration, in a scratch schema.
func TestVerifyOnTheUsersOwnConfiguration(t *testing.T) {
	t.Parallel()
	env := production(t)
	dir := t.TempDir()
	p := begin(t, dir, env, "verify", "--json", "--junit", "report.xml")
	code := p.wait()
	var v verified
	if err := json.Unmarshal([]byte(p.stdout.String()), &v); err != nil {
		t.Fatalf("the report is no JSON: %v\n%s", err, p.stderr)
	}
	if code != 0 || v.Code != 0 || v.Fail != 0 || v.Pass+v.NA != len(v.Results) {
		t.Errorf("got exit code %d, %d PASS, %d FAIL, %d N-A of %d, want 0 and no FAIL: %s", code, v.Pass, v.Fail, v.NA, len(v.Results), p.stdout)
	}
	for id, want := range map[string]verify.Status{
		"claim-guard": verify.Pass, "unknown": verify.Pass, "safe-sender": verify.Pass, "policy": verify.Pass,
		"identity": verify.Pass, "tenants": verify.Pass, "quorum": verify.Pass, "approver-removed": verify.Pass, "caps": verify.Pass,
		// The test's server is not durable and says so; its issuer does not answer. Neither was shown, so neither passes.
		"durability": verify.NotApplicable, "tokens": verify.NotApplicable,
	} {
		if got := v.status(id); got != want {
			t.Errorf("%s: got %s, want %s", id, got, want)
		}
	}
	for _, r := range v.Results {
		if r.Status == verify.Pass && (r.Control == "" || r.Refusal == "") || r.Status != verify.Pass && r.Reason == "" {
			t.Errorf("%s says too little: %+v", r.ID, r)
		}
	}
	if got := v.Clocks; len(got) == 0 || got[0].Configured != "10m0s" {
		t.Errorf("got the clocks %v, want the configured ones beside those used", got)
	}
	if got := schemas(t, databaseOf(env)); len(got) != 1 || got["public"] != 0 {
		t.Errorf("got the schemas %v afterwards, want the empty database as it was", got)
	}
	checkJUnit(t, filepath.Join(dir, "report.xml"), v)
	if strings.Contains(p.stdout.String()+p.stderr.String(), testSecret) {
		t.Error("a secret was printed")
	}
}

func checkJUnit(t *testing.T, path string, v verified) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var suite struct {
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Skipped  int        `xml:"skipped,attr"`
		Cases    []struct{} `xml:"testcase"`
	}
	if err := xml.Unmarshal(raw, &suite); err != nil {
		t.Fatal(err)
	}
	if suite.Tests != len(v.Results) || len(suite.Cases) != suite.Tests || suite.Failures != 0 || suite.Skipped != v.NA {
		t.Errorf("got %+v, want %d tests and %d skipped", suite, len(v.Results), v.NA)
	}
}

// A weak secret is a failure, and the exit code says so.
func TestVerifyFails(t *testing.T) {
	t.Parallel()
	p := begin(t, t.TempDir(), with(production(t), "CUTONCE_SECRET="+strings.Repeat("ab", 32)), "verify", "--only", "secret,policy")
	if code := p.wait(); code != 1 {
		t.Errorf("got exit code %d, want 1", code)
	}
	for _, want := range []string{"FAIL  secret", "2 different bytes only", "PASS  policy", "verify: 1 PASS, 1 FAIL, 0 N-A of 2 checks"} {
		if !strings.Contains(p.stdout.String(), want) {
			t.Errorf("the report does not say %q: %s", want, p.stdout)
		}
	}
}

// The real tables are there, and are left alone.
func TestVerifyLeavesTheRealTablesAlone(t *testing.T) {
	t.Parallel()
	env := production(t)
	if err := store.Migrate(t.Context(), databaseOf(env)); err != nil {
		t.Fatal(err)
	}
	before := schemas(t, databaseOf(env))
	p := begin(t, t.TempDir(), env, "verify", "--only", "claim-guard,audit-event")
	if code := p.wait(); code != 0 {
		t.Errorf("got exit code %d, want 0", code)
	}
	if got := schemas(t, databaseOf(env)); fmt.Sprint(got) != fmt.Sprint(before) {
		t.Errorf("got the schemas %v, want %v as before", got, before)
	}
	conn, err := pgx.Connect(t.Context(), databaseOf(env))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var previews, policies int
	if err := conn.QueryRow(t.Context(), `select (select count(*) from previews), (select count(*) from policies)`).Scan(&previews, &policies); err != nil {
		t.Fatal(err)
	}
	if previews != 0 || policies != 0 {
		t.Errorf("got %d previews and %d policies in the real tables, want none", previews, policies)
	}
}

func TestVerifyRefusesToStart(t *testing.T) {
	t.Parallel()
	good := production(t)
	for name, c := range map[string]struct {
		set  []string
		args []string
		code int
		want string
	}{
		"a bad configuration":            {[]string{"CUTONCE_SECRET=short"}, nil, 2, "CUTONCE_SECRET"},
		"a policy that does not compile": {[]string{"CUTONCE_POLICY_DIR=" + misspelt(t)}, nil, 2, "budget_chnage"},
		"an unknown check":               {nil, []string{"--only", "nope"}, 2, "claim-guard"},
		"no database":                    {[]string{"CUTONCE_DATABASE_URL=postgres://x:y@127.0.0.1:1/z"}, nil, 3, "cannot be reached"},
		"a pooler that drops a setting":  {[]string{"CUTONCE_DATABASE_URL=" + forgetful(t, databaseOf(good))}, nil, 3, "direct connection"},
		"a role that may not":            {[]string{"CUTONCE_DATABASE_URL=" + powerless(t, databaseOf(good))}, nil, 3, "grant create on database"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := begin(t, t.TempDir(), with(good, c.set...), append([]string{"verify"}, c.args...)...)
			if code := p.wait(); code != c.code {
				t.Errorf("got exit code %d, want %d", code, c.code)
			}
			if said := p.stderr.String(); !strings.Contains(said, c.want) {
				t.Errorf("got %q, want %q in it", said, c.want)
			}
		})
	}
}

// forgetful is the same database behind a pooler that drops the start-up parameter by which verify stays in its own schema.
func forgetful(t *testing.T, address string) string {
	t.Helper()
	p, through, err := wire.Pool(address, "search_path")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	p.Forget()
	return through
}

// powerless is the same database for a role that may make no schema.
func powerless(t *testing.T, address string) string {
	t.Helper()
	admin := pgtest.Admin(t)
	role := "powerless_" + randomHex()[:12]
	if _, err := admin.Exec(t.Context(), "create role "+role+" login password 'powerless'"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = admin.Exec(context.WithoutCancel(t.Context()), "drop role "+role) })
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(role, "powerless")
	return u.String()
}

// Whatever is under way, an interrupt leaves nothing behind.
func TestVerifyInterrupted(t *testing.T) {
	t.Parallel()
	env := production(t)
	p := begin(t, t.TempDir(), env, "verify")
	p.saw(p.stdout, `claim-guard`)
	p.signal(syscall.SIGINT)
	if code := p.wait(); code != interrupted {
		t.Errorf("got exit code %d, want %d", code, interrupted)
	}
	if got := schemas(t, databaseOf(env)); len(got) != 1 {
		t.Errorf("got the schemas %v after an interrupt, want none left behind", got)
	}
	// Killed, it leaves its schema behind; the next run drops it and says so.
	killed := begin(t, t.TempDir(), env, "verify")
	killed.saw(killed.stdout, `claim-guard`)
	killed.signal(syscall.SIGKILL)
	killed.wait()
	next := begin(t, t.TempDir(), env, "verify", "--only", "secret")
	if code := next.wait(); code != 0 {
		t.Errorf("got exit code %d, want 0", code)
	}
	if !strings.Contains(next.stdout.String(), "left behind") {
		t.Errorf("the next run does not speak of what was left behind: %s", next.stdout)
	}
	if got := schemas(t, databaseOf(env)); len(got) != 1 {
		t.Errorf("got the schemas %v, want none left behind", got)
	}
}

func TestVerifyLists(t *testing.T) {
	t.Parallel()
	p := begin(t, t.TempDir(), nil, "verify", "--list")
	if code := p.wait(); code != 0 {
		t.Errorf("got exit code %d, want 0", code)
	}
	for _, c := range verify.Checks() {
		if !strings.Contains(p.stdout.String(), c.ID+" ") {
			t.Errorf("the list lacks %s", c.ID)
		}
	}
}

// With an issuer that answers, forged tokens are told from others.
func TestVerifyTellsForgedTokens(t *testing.T) {
	t.Parallel()
	var issuer *devissuer.Issuer
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { issuer.Handler().ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	var err error
	issuer, err = devissuer.New(devissuer.Config{
		Dir: t.TempDir(), URL: server.URL, Audience: "cutonce-test", Tenant: "t", Now: time.Now, Rand: rand.Reader,
	})
	if err != nil {
		t.Fatal(err)
	}
	env := with(production(t), "CUTONCE_ISSUER_URL="+issuer.URL(), "CUTONCE_ISSUER_JWKS_URL="+issuer.JWKSURL(), "CUTONCE_AUDIENCES=cutonce-test")
	p := begin(t, t.TempDir(), env, "verify", "--only", "tokens")
	if code := p.wait(); code != 0 {
		t.Errorf("got exit code %d, want 0", code)
	}
	if !strings.Contains(p.stdout.String(), "PASS  tokens") {
		t.Errorf("got %s, want a pass", p.stdout)
	}
}
