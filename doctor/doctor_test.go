package doctor_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/adbudget"
	"github.com/cutonce/cutonce/doctor"
	"github.com/cutonce/cutonce/internal/auth"
	"github.com/cutonce/cutonce/internal/config"
	"github.com/cutonce/cutonce/internal/pgtest"
	"github.com/cutonce/cutonce/store"
)

// TestNothingIsWrong is the positive half of every check: on a deployment that is well, each finds nothing to do but what is said here.
func TestNothingIsWrong(t *testing.T) {
	t.Parallel()
	p := healthy(t)
	p.Settings.SealWitness = filepath.Join(t.TempDir(), "witness")
	p.sealed(p.Key)
	r := p.report()
	var got []string
	for _, f := range r.Findings {
		// The tests' server forgets, and is beyond this machine where it runs in a container.
		if f.Level != doctor.OK && f.Check != "database durability" && f.Says != "the connection is not encrypted" {
			got = append(got, f.Check+": "+f.Says)
		}
	}
	want := []string{
		"policy: a rule can never apply: " + unservedRule(p),
		"seal key: seals are signed with a key made from the deployment's secret (" + p.Key.ID() + ")",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got, want := r.OK+r.Warnings+r.Failed, len(r.Findings); got != want {
		t.Errorf("got %d counted, want %d", got, want)
	}
	for _, want := range []string{"it is the one of these files", "the database knows seal 1", "verifies the last seal (1 of ", "answers by TCP", "at most one effect by one send", "up to date"} {
		if !said(r, "", doctor.OK, want) {
			t.Errorf("nothing says %q:\n%v", want, r.Findings)
		}
	}
}

func unservedRule(p patient) string {
	return strings.Join(strings.Fields(p.Policy.CheckActions([]string{adbudget.ActionName}).Error()), " ")
}

func said(r doctor.Report, check string, level doctor.Level, text string) bool {
	for _, f := range r.Findings {
		if strings.HasPrefix(f.Check, check) && f.Level == level && strings.Contains(f.Says, text) && (f.Fix != "") == (level != doctor.OK) {
			return true
		}
	}
	return false
}

const ecKey = `{"kty":"EC","use":"sig","alg":"ES256","kid":"a","crv":"P-256","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}`

// TestWhatIsWrongIsSaid is the negative half.
func TestWhatIsWrongIsSaid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		harm  func(*testing.T, patient)
		check string
		level doctor.Level
		says  string
	}{
		"a forgetful database is allowed": {func(_ *testing.T, p patient) { p.Settings.AllowUnsafe = config.Unsafe }, "settings", doctor.Warning, "accepts a database that forgets"},
		"the policy may be put back":      {func(_ *testing.T, p patient) { p.Settings.PolicyReinstate = true }, "settings", doctor.Warning, "CUTONCE_POLICY_REINSTATE"},
		"a credential in the clear":       {func(_ *testing.T, p patient) { p.Settings.Deploys.URL = "http://deploys.invalid" }, "settings", doctor.Warning, "CUTONCE_DEPLOYS_URL is plain http"},
		"a drain that cuts off":           {func(_ *testing.T, p patient) { p.Settings.DrainFor = time.Second }, "clocks", doctor.Warning, "cuts off sends"},
		"a settle time too short":         {func(_ *testing.T, p patient) { p.Settings.Clock.Settle = time.Second }, "clocks", doctor.Warning, "a slow target may still act"},
		"approvals in a hurry":            {func(_ *testing.T, p patient) { p.Settings.Clock.Approval = time.Minute }, "clocks", doctor.Warning, "expired"},
		"keys forgotten too soon": {func(_ *testing.T, p patient) {
			p.Settings.Ads.HonoursKeys, p.Settings.Ads.KeyRetention = true, time.Minute
		}, "clocks", doctor.Warning, "CUTONCE_ADS_KEY_RETENTION"},
		"a secret that looks guessable": {func(_ *testing.T, p patient) { p.Settings.Secret = config.Secret(strings.Repeat("ab", 20)) }, "secret", doctor.Warning, "2 different characters"},
		"a loopback address":            {func(_ *testing.T, p patient) { p.Settings.PublicURL = "http://127.0.0.1:8780" }, "public URL", doctor.Warning, "this machine's own"},
		"no way in":                     {func(_ *testing.T, p patient) { p.SignIn = nil }, "sign-in", doctor.Warning, "nobody can sign in"},
		"a provider that is away":       {func(t *testing.T, p patient) { p.SignIn = signInAt(t, "http://127.0.0.1:1") }, "sign-in", doctor.Failed, "connection refused"},
		"a sign-in in the clear": {func(_ *testing.T, p patient) {
			p.SignIn = func(context.Context) (string, error) { return "http://idp.example/authorize", nil }
		}, "sign-in", doctor.Failed, "in the clear"},
		"an issuer that is away": {func(_ *testing.T, p patient) { p.Tokens.Issuers[0] = auth.Issuer{URL: "http://127.0.0.1:1"} }, "issuer", doctor.Failed, "its metadata"},
		"an issuer in the clear": {func(_ *testing.T, p patient) { p.Tokens.Issuers[0] = auth.Issuer{URL: "http://issuer.example"} }, "issuer", doctor.Failed, "https"},
		"an issuer without keys": {func(t *testing.T, p patient) { p.Tokens.Issuers[0] = serveKeys(t, "", "") }, "issuer", doctor.Failed, "it publishes none"},
		"keys for encryption": {func(t *testing.T, p patient) {
			p.Tokens.Issuers[0] = serveKeys(t, strings.Replace(ecKey, `"sig"`, `"enc"`, 1), "")
		}, "issuer", doctor.Failed, "a: it is not for signatures"},
		"a symmetric key": {func(t *testing.T, p patient) { p.Tokens.Issuers[0] = serveKeys(t, `{"kty":"oct","k":"AAAA"}`, "") }, "issuer", doctor.Failed, "key 1: it is no public key"},
		"an algorithm not accepted": {func(t *testing.T, p patient) {
			p.Tokens.Algorithms = []string{"RS256"}
			p.Tokens.Issuers[0] = serveKeys(t, ecKey, "")
		}, "issuer", doctor.Failed, "its algorithm ES256 is not accepted"},
		"an issuer that lives later":      {func(t *testing.T, p patient) { p.Tokens.Issuers[0] = serveKeys(t, ecKey, httpTime(5*time.Minute)) }, "issuer", doctor.Failed, "tokens are refused beyond"},
		"an issuer a little ahead":        {func(t *testing.T, p patient) { p.Tokens.Issuers[0] = serveKeys(t, ecKey, httpTime(20*time.Second)) }, "issuer", doctor.Warning, "from this machine's"},
		"an issuer for every tenant":      {func(_ *testing.T, p patient) { p.Tokens.Issuers[0].Tenant = "" }, "issuer", doctor.Warning, "any tenant"},
		"a policy that is not one":        {func(_ *testing.T, p patient) { p.Policy, p.PolicyErr = nil, errors.New("rule x:\n no such field") }, "policy", doctor.Failed, "rule x: no such field"},
		"an unknown action":               {func(_ *testing.T, p patient) { p.Actions = []string{"budget_change"} }, "policy", doctor.Failed, "deployment_rollback"},
		"a policy without cases":          {func(_ *testing.T, p patient) { p.Rules = fstest.MapFS{} }, "policy", doctor.Warning, "no cases"},
		"a case that is not met":          {func(_ *testing.T, p patient) { p.Rules = unmet() }, "policy", doctor.Failed, "1 of 1 cases are not as expected"},
		"a database that is away":         {func(_ *testing.T, p patient) { p.Settings.DatabaseURL = "postgres://u:pass-word-9@127.0.0.1:1/x" }, "database", doctor.Failed, "connecting to the database"},
		"a database without database":     {func(_ *testing.T, p patient) { p.Settings.DatabaseURL = "postgres://u:pass-word-9@127.0.0.1:1/x" }, "migrations", doctor.Warning, "not looked at"},
		"an isolation of its own":         {set("default_transaction_isolation to serializable"), "database", doctor.Failed, "serializable"},
		"a database that only reads":      {set("default_transaction_read_only to on"), "database", doctor.Failed, "only reads"},
		"more than it may have":           {func(_ *testing.T, p patient) { p.Settings.DatabasePool = 1000 }, "database", doctor.Failed, "1002 connections"},
		"a commit that is not waited for": {set("synchronous_commit to off"), "database durability", doctor.Failed, "synchronous_commit=off"},
		"and that is allowed": {func(t *testing.T, p patient) {
			set("synchronous_commit to off")(t, p)
			p.Settings.AllowUnsafe = config.Unsafe
		}, "database durability", doctor.Warning, "synchronous_commit=off"},
		"a superuser":                   {func(_ *testing.T, p patient) { p.Settings.DatabaseURL = config.Secret(p.owner) }, "database role", doctor.Warning, "is a superuser"},
		"a role that makes databases":   {func(t *testing.T, p patient) { alter(t, p, "createdb createrole bypassrls") }, "database role", doctor.Warning, "may create databases"},
		"a role that makes roles":       {func(t *testing.T, p patient) { alter(t, p, "createrole") }, "database role", doctor.Warning, "may create roles"},
		"a role that walls do not bind": {func(t *testing.T, p patient) { alter(t, p, "bypassrls") }, "database role", doctor.Warning, "row-level security"},
		"a role with few connections":   {func(t *testing.T, p patient) { alter(t, p, "connection limit 20") }, "database", doctor.Warning, "two replicas do not fit"},
		"an owner":                      {func(t *testing.T, p patient) { execute(t, p.owner, "alter table previews owner to "+roleOf(t, p)) }, "database role", doctor.Warning, "owns what it works on"},
		"a role that may not write":     {func(t *testing.T, p patient) { execute(t, p.owner, "revoke insert on decisions from cutonce_app") }, "tenants", doctor.Failed, "decisions (cutonce_app: insert)"},
		"a role that takes none":        {func(t *testing.T, p patient) { execute(t, p.owner, "revoke cutonce_worker from "+roleOf(t, p)) }, "tenants", doctor.Failed, "may not take the roles"},
		"a role that inherits":          {func(t *testing.T, p patient) { inherit(t, p) }, "database role", doctor.Warning, "sees every tenant"},
		"a table without its wall":      {func(t *testing.T, p patient) { execute(t, p.owner, "alter table decisions disable row level security") }, "tenants", doctor.Failed, "does not guard decisions"},
		"a wall that spares the owner": {func(t *testing.T, p patient) {
			execute(t, p.owner, "alter table decisions no force row level security")
		}, "tenants", doctor.Failed, "does not guard decisions"},
		"a policy that was dropped":     {func(t *testing.T, p patient) { execute(t, p.owner, "drop policy every_tenant on seals") }, "tenants", doctor.Failed, "does not guard seals"},
		"a policy beside":               {func(t *testing.T, p patient) { execute(t, p.owner, "create policy x on previews using (true)") }, "tenants", doctor.Failed, "does not guard previews"},
		"somebody else's tables beside": {func(t *testing.T, p patient) { execute(t, p.owner, "create table customers (id int)") }, "migrations", doctor.Warning, "public.customers"},
		"somebody else's database": {func(t *testing.T, p patient) {
			other := pgtest.URL(t)
			execute(t, other, "create table customers (id int)")
			p.Settings.DatabaseURL = config.Secret(other)
		}, "migrations", doctor.Failed, "public.customers"},
		"an empty database": {func(t *testing.T, p patient) { p.Settings.DatabaseURL = config.Secret(pgtest.URL(t)) }, "migrations", doctor.Warning, "serve will bring it up to date"},
		"a schema behind": {func(t *testing.T, p patient) {
			p.Settings.DatabaseURL, p.Settings.Migrate = config.Secret(pgtest.URL(t)), false
		}, "migrations", doctor.Failed, "CUTONCE_MIGRATE is false"},
		"a schema ahead": {func(t *testing.T, p patient) {
			execute(t, p.owner, "insert into cutonce_migrations (version_id, is_applied) values (99999, true)")
		}, "migrations", doctor.Warning, "newer version"},
		"another time": {func(_ *testing.T, p patient) { p.Now = func() time.Time { return time.Now().Add(-time.Minute) } }, "database clock", doctor.Failed, "from this machine's"},
		"another policy in force": {func(t *testing.T, p patient) {
			p.sealed(p.Key)
			p.activate("another")
			p.Settings.PolicyReinstate = true
		}, "policy in force", doctor.Warning, "in its place"},
		"a superseded policy": {func(t *testing.T, p patient) { p.sealed(p.Key); p.activate("another") }, "policy in force", doctor.Failed, "serve refuses to start"},
		"a key that is none":  {func(_ *testing.T, p patient) { p.KeyErr = errors.New("CUTONCE_SEAL_KEY_FILE: no key") }, "seal key", doctor.Failed, "no key"},
		"another secret":      {func(t *testing.T, p patient) { p.sealed(otherKey(t)) }, "seal key", doctor.Failed, "is CUTONCE_SECRET another one"},
		"another key": {func(t *testing.T, p patient) {
			p.Settings.SealKeyFile = "key.pem"
			p.sealed(otherKey(t))
		}, "seal key", doctor.Warning, "another key"},
		"a forged seal": {func(t *testing.T, p patient) {
			p.sealed(p.Key)
			execute(t, p.owner, "alter table seals disable trigger all; update seals set at = at + interval '1 day'")
		}, "seal key", doctor.Failed, "does not verify"},
		"no witness":                {func(*testing.T, patient) {}, "witness", doctor.Warning, "goes unnoticed"},
		"a witness without a place": {func(_ *testing.T, p patient) { p.Settings.SealWitness = "/nowhere/at/all/witness" }, "witness", doctor.Failed, "cannot be made"},
		"a witness that is none":    {func(t *testing.T, p patient) { p.Settings.SealWitness = write(t, "hello") }, "witness", doctor.Failed, "not readable"},
		"a witness of another database": {func(t *testing.T, p patient) {
			p.Settings.SealWitness = filepath.Join(t.TempDir(), "witness")
			healthyWith(t, p.Settings.SealWitness).sealed(p.Key)
		}, "witness", doctor.Failed, "does not know seal 1"},
		"receivers that are none": {func(_ *testing.T, p patient) { p.NotifyErr = errors.New("CUTONCE_NOTIFY_FILE: receiver r: tenant") }, "notifications", doctor.Failed, "receiver r: tenant"},
		"a queue behind": {func(t *testing.T, p patient) {
			execute(t, p.owner, "delete from river_migration where version = (select max(version) from river_migration)")
		}, "migrations", doctor.Failed, "may not change it"},
		"a restore under way":     {func(t *testing.T, p patient) { p.declare() }, "restore", doctor.Warning, "nothing is applied"},
		"no platform":             {func(_ *testing.T, p patient) { p.Connectors = nil }, "connectors", doctor.Failed, "no platform"},
		"a connector refused":     {func(_ *testing.T, p patient) { p.ConnectorsErr = errors.New("plain http") }, "connectors", doctor.Failed, "plain http"},
		"a sandbox":               {func(t *testing.T, p patient) { p.Connectors[0] = ads(t, adbudget.Config{Sandbox: true}) }, "connectors", doctor.Warning, "sandbox"},
		"nothing that settles":    {func(t *testing.T, p patient) { p.Connectors[0] = ads(t, adbudget.Config{NoLookup: true}) }, "connectors", doctor.Warning, "operator's word"},
		"a platform that is away": {func(_ *testing.T, p patient) { p.Settings.Ads.URL = "http://127.0.0.1:1" }, "target ads", doctor.Failed, "127.0.0.1:1 does not answer by TCP"},
		"a platform without TLS": {func(_ *testing.T, p patient) {
			p.Settings.Ads.URL = strings.Replace(p.Settings.Ads.URL, "http:", "https:", 1)
		}, "target ads", doctor.Failed, "does not answer by TLS"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := healthy(t)
			c.harm(t, p)
			r := p.report()
			if !said(r, c.check, c.level, c.says) {
				t.Errorf("got\n%v\nwant %s of %s saying %q", lines(r), c.level, c.check, c.says)
			}
			if c.level == doctor.Failed && r.Code != 1 {
				t.Errorf("got code %d, want 1", r.Code)
			}
			if got, want := strings.Count(lines(r), "\n")+1, len(r.Findings); got != want {
				t.Errorf("got %d lines, want one for each of %d findings", got, want)
			}
			if text := lines(r); strings.Contains(text, "pass-word-9") || strings.Contains(text, secret) {
				t.Error("a secret was printed")
			}
		})
	}
}

func lines(r doctor.Report) string {
	var all []string
	for _, f := range r.Findings {
		all = append(all, f.String())
	}
	return strings.Join(all, "\n")
}

func httpTime(ahead time.Duration) string {
	return time.Now().Add(ahead).UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT")
}

// set changes a setting of the database.
func set(what string) func(*testing.T, patient) {
	return func(t *testing.T, p patient) {
		execute(t, p.owner, `do $$ begin execute format('alter database %I set `+what+`', current_database()); end $$`)
	}
}

func roleOf(t testing.TB, p patient) string {
	t.Helper()
	_, rest, _ := strings.Cut(string(p.Settings.DatabaseURL), "://")
	role, _, ok := strings.Cut(rest, ":")
	if !ok {
		t.Fatal("the URL names no role")
	}
	return role
}

// inherit gives the login what the worker may do, without taking its role.
func inherit(t testing.TB, p patient) {
	alter(t, p, "inherit")
	execute(t, p.owner, fmt.Sprintf("revoke cutonce_worker from %[1]s; grant cutonce_worker to %[1]s", roleOf(t, p)))
}

func alter(t testing.TB, p patient, how string) {
	execute(t, p.owner, "alter role "+roleOf(t, p)+" "+how)
}

func ads(t testing.TB, c adbudget.Config) connector.Connector {
	t.Helper()
	c.BaseURL, c.Token, c.System, c.SettleFor = "http://127.0.0.1:1", "of-the-tests", "ads.example/agency", time.Minute
	made, err := adbudget.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(made.Close)
	return made
}

func unmet() fstest.MapFS {
	return fstest.MapFS{"x.test.yaml": {Data: []byte(`
cases:
  - name: a decrease is refused
    action: budget_change
    before: {daily_budget: KRW 9000000}
    after: {daily_budget: KRW 5500000}
    expect: {verdict: deny}
`)}}
}

func healthyWith(t *testing.T, witness string) patient {
	p := healthy(t)
	p.Settings.SealWitness = witness
	return p
}

func (p patient) opened() *store.Store {
	p.t.Helper()
	s, err := store.Open(p.t.Context(), store.Config{URL: p.owner, MaxConns: 2})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(s.Close)
	return s
}

func (p patient) activate(version string) {
	p.t.Helper()
	if err := p.opened().ActivatePolicy(p.t.Context(), version, "text"); err != nil {
		p.t.Fatal(err)
	}
}

func (p patient) declare() {
	p.t.Helper()
	_, _, err := p.opened().DeclareRestore(p.t.Context(), store.Restore{To: time.Now().Add(-time.Hour), By: "operator:kim", Reason: "a test"})
	if err != nil {
		p.t.Fatal(err)
	}
}
