package doctor_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/audit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/adbudget"
	"github.com/cutonce/cutonce/doctor"
	"github.com/cutonce/cutonce/examples/policies"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/auth"
	"github.com/cutonce/cutonce/internal/config"
	"github.com/cutonce/cutonce/internal/devissuer"
	"github.com/cutonce/cutonce/internal/pgtest"
	"github.com/cutonce/cutonce/internal/signin"
	"github.com/cutonce/cutonce/internal/signin/signintest"
	"github.com/cutonce/cutonce/migrations"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/store"
)

const secret = "0123456789abcdef0123456789abcdef-of-the-tests"

// patient is a deployment that nothing is wrong with: a real database and a role that can do no more than its work, an issuer that
// publishes keys, an OpenID provider, a platform that answers.
type patient struct {
	*doctor.Deployment
	t testing.TB
	// owner is the database's URL with the role that owns it.
	owner string
}

func healthy(t testing.TB) patient {
	t.Helper()
	key, err := audit.DeriveKey([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	rules, err := policy.Load(policies.FS)
	if err != nil {
		t.Fatal(err)
	}
	p := patient{t: t}
	issuer, platform := issuerOf(t), platformOf(t)
	role := fmt.Sprintf("doctor_%d", roles.Add(1)) + strings.ToLower(rand.Text()[:8])
	t.Cleanup(func() { p.drop(role) }) // after the database
	admin := pgtest.Admin(t)
	if _, err := admin.Exec(t.Context(), fmt.Sprintf("create role %s login noinherit password 'of-the-tests'", role)); err != nil {
		t.Fatal(err)
	}
	p.owner = pgtest.URL(t, pgtest.Migrated(migrations.FS, store.Migrate))
	execute(t, p.owner, fmt.Sprintf("grant cutonce_app, cutonce_worker to %s", role))
	s, err := config.Load([]string{
		"CUTONCE_DATABASE_URL=" + as(t, p.owner, role), "CUTONCE_SECRET=" + secret, "CUTONCE_PUBLIC_URL=https://cutonce.example",
		"CUTONCE_SIGNIN_CLIENT_ID=console", "CUTONCE_SIGNIN_CLIENT_SECRET=a secret", "CUTONCE_ADS_URL=" + platform, "CUTONCE_ADS_SYSTEM=ads.example/agency",
	})
	if err != nil {
		t.Fatal(err)
	}
	ads, err := adbudget.New(adbudget.Config{BaseURL: platform, Token: "of-the-tests", System: "ads.example/agency", SettleFor: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ads.Close)
	p.Deployment = &doctor.Deployment{
		Settings: s, Connectors: []connector.Connector{ads}, Policy: rules, Rules: policies.FS, Actions: []string{"budget_change", "deployment_rollback"},
		Key: key, RedirectURL: "https://cutonce.example/sign-in/done", Now: time.Now,
		Tokens: auth.Config{Audiences: []string{"https://cutonce.example"}, Now: time.Now, Issuers: []auth.Issuer{{URL: issuer, Tenant: "t"}}},
	}
	p.SignIn = signInAt(t, signintest.Start(t).URL)
	return p
}

var roles atomic.Int64

func (p patient) drop(role string) {
	conn, err := pgx.Connect(context.WithoutCancel(p.t.Context()), p.admin())
	if err != nil {
		p.t.Errorf("dropping a role: %v", err)
		return
	}
	defer conn.Close(context.WithoutCancel(p.t.Context()))
	if _, err := conn.Exec(context.WithoutCancel(p.t.Context()), "drop role "+role); err != nil {
		p.t.Errorf("dropping a role: %v", err)
	}
}

// admin is the server's maintenance database.
func (p patient) admin() string {
	u, err := url.Parse(p.owner)
	if err != nil {
		p.t.Fatal(err)
	}
	u.Path = "/postgres"
	return u.String()
}

func as(t testing.TB, database, role string) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(role, "of-the-tests")
	return u.String()
}

func execute(t testing.TB, database, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func issuerOf(t testing.TB) string {
	t.Helper()
	var handler atomic.Pointer[http.Handler]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*handler.Load()).ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	issuer, err := devissuer.New(devissuer.Config{
		Dir: t.TempDir(), URL: server.URL + "/dev/issuer", Audience: "https://cutonce.example", Tenant: "t", Now: time.Now, Rand: rand.Reader,
	})
	if err != nil {
		t.Fatal(err)
	}
	h := issuer.Handler()
	handler.Store(&h)
	return server.URL + "/dev/issuer"
}

// platformOf answers, and fails the test if it is asked anything.
func platformOf(t testing.TB) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("the platform was asked: %s %s", r.Method, r.URL)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func signInAt(t testing.TB, provider string) func(context.Context) (string, error) {
	t.Helper()
	s, err := signin.New(signin.Config{
		Issuer: provider, ClientID: "console", RedirectURL: "https://cutonce.example/sign-in/done", Key: make([]byte, 32), Now: time.Now, Rand: rand.Reader,
		Person: func(map[string]any, []string) (actor.Actor, error) { return actor.Actor{}, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s.Reach
}

// serveKeys is an issuer that publishes these keys, with this Date if any.
func serveKeys(t testing.TB, keys, date string) auth.Issuer {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if date != "" {
			w.Header().Set("Date", date)
		}
		fmt.Fprintf(w, `{"keys":[%s]}`, keys)
	}))
	t.Cleanup(server.Close)
	return auth.Issuer{URL: server.URL, JWKSURL: server.URL + "/keys", Tenant: "t"}
}

func (p patient) report() doctor.Report {
	return doctor.Run(p.t.Context(), doctor.Checks(p.Deployment), func(doctor.Finding) {})
}

// sealed makes a change in the control chain and seals it, as serve would.
func (p patient) sealed(key audit.Key) {
	p.t.Helper()
	s, err := store.Open(p.t.Context(), store.Config{URL: p.owner, MaxConns: 2})
	if err != nil {
		p.t.Fatal(err)
	}
	defer s.Close()
	if err := s.ActivatePolicy(p.t.Context(), p.Policy.Version(), "text"); err != nil {
		p.t.Fatal(err)
	}
	if err := (audit.Sealer{Store: s, Key: key, Witness: p.Settings.SealWitness}).Seal(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
}

func otherKey(t testing.TB) audit.Key {
	t.Helper()
	key, err := audit.DeriveKey([]byte("another secret of thirty-two bytes or more"))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func write(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
