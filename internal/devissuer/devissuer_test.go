package devissuer_test

import (
	"crypto/rand"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/auth"
	"github.com/cutonce/cutonce/internal/devissuer"
	"github.com/cutonce/cutonce/internal/fault"
)

const audience = "http://127.0.0.1:8080/mcp"

// stage is a running development issuer and a verifier that trusts it: the two meet over HTTP only.
type stage struct {
	issuer   *devissuer.Issuer
	verifier *auth.Verifier
	now      time.Time
}

func newStage(t *testing.T, dir string) *stage {
	t.Helper()
	s := &stage{now: time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.issuer.Handler().ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	s.issuer = open(t, devissuer.Config{Dir: dir, URL: server.URL + "/dev/issuer", Now: func() time.Time { return s.now }})
	var err error
	s.verifier, err = auth.New(t.Context(), auth.Config{
		Issuers:   []auth.Issuer{{URL: s.issuer.URL(), AgentClients: s.issuer.AgentClients()}}, // keys by discovery
		Audiences: []string{audience}, Now: func() time.Time { return s.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func open(t *testing.T, cfg devissuer.Config) *devissuer.Issuer {
	t.Helper()
	if cfg.Now == nil {
		cfg.Now = func() time.Time { return time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC) }
	}
	if cfg.URL == "" {
		cfg.URL = "http://127.0.0.1:8080/dev/issuer"
	}
	cfg.Audience, cfg.Rand = audience, rand.Reader
	issuer, err := devissuer.New(cfg)
	if err != nil {
		t.Fatalf("devissuer.New: %v", err)
	}
	return issuer
}

func mint(t *testing.T, i *devissuer.Issuer, person string, options ...devissuer.Option) string {
	t.Helper()
	token, err := i.Token(person, options...)
	if err != nil {
		t.Fatalf("Token(%s): %v", person, err)
	}
	return token
}

func TestEveryPersonIsAcceptedAsWhoTheyAre(t *testing.T) {
	t.Parallel()
	s := newStage(t, t.TempDir())
	for _, p := range s.issuer.People() {
		got, err := s.verifier.Verify(t.Context(), mint(t, s.issuer, p.ID))
		if err != nil {
			t.Errorf("%s: %v", p.ID, err)
			continue
		}
		want := actor.Actor{
			Tenant: "dev", Kind: actor.Human, Issuer: s.issuer.URL(), Subject: p.Subject, Client: devissuer.ConsoleClient,
			Name: p.Name, Locale: p.Locale, Groups: p.Groups, Roles: p.Roles, Scopes: p.Scopes,
		}
		if p.Agent {
			want.Kind, want.Subject, want.For, want.Client = actor.Agent, devissuer.AgentClient, p.Subject, devissuer.AgentClient
		} else if got.AuthTime.IsZero() {
			t.Errorf("%s: no sign-in time", p.ID)
		}
		got.AuthTime = time.Time{}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", p.ID, diff)
		}
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	s := newStage(t, t.TempDir())
	verify := func(options ...devissuer.Option) (actor.Actor, error) {
		return s.verifier.Verify(t.Context(), mint(t, s.issuer, "sato", options...))
	}
	a, err := verify(devissuer.WithScopes("ads:read"), devissuer.WithTenant("other"), devissuer.WithLife(s.now.Add(-time.Minute), time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"ads:read"}, a.Scopes); diff != "" || a.Tenant != "other" || !a.AuthTime.Equal(s.now.Add(-time.Minute)) {
		t.Errorf("got scopes %v, tenant %q, signed in at %s", a.Scopes, a.Tenant, a.AuthTime)
	}
	for key, option := range map[string]devissuer.Option{
		"fault.unauthenticated.audience":      devissuer.WithAudience("https://other.example"),
		"fault.unauthenticated.expired":       devissuer.WithLife(s.now.Add(-time.Hour), time.Minute),
		"fault.unauthenticated.not_yet_valid": devissuer.WithLife(s.now.Add(time.Hour), time.Minute),
	} {
		if _, err := verify(option); fault.From(err).Key != key {
			t.Errorf("got %v, want %s", err, key)
		}
	}
}

func TestTokenSurvivesRestartsAndIsRenewedInTime(t *testing.T) {
	t.Parallel()
	s := newStage(t, t.TempDir())
	first := mint(t, s.issuer, "agent")
	dir := t.TempDir()
	a, b := open(t, devissuer.Config{Dir: dir}), open(t, devissuer.Config{Dir: dir})
	if mint(t, a, "agent") != mint(t, b, "agent") {
		t.Error("a restart changed the printed token")
	}
	// Whenever it is printed, it is good for a week.
	for range 60 {
		printed := mint(t, s.issuer, "agent")
		s.now = s.now.Add(7*24*time.Hour - time.Minute)
		if _, err := s.verifier.Verify(t.Context(), printed); err != nil {
			t.Fatalf("at %s: a token printed a week ago: %v", s.now, err)
		}
	}
	if _, err := s.verifier.Verify(t.Context(), first); fault.From(err).Key != "fault.unauthenticated.expired" {
		t.Errorf("after a year: got %v, want expired", err)
	}
}

func TestKeyFile(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new")
	open(t, devissuer.Config{Dir: dir})
	path := filepath.Join(dir, "dev-issuer.key")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("the key's mode: got %o, want 600", got)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("the directory: got %v, %v, want the key alone", entries, err)
	}
	cfg := devissuer.Config{Dir: dir, URL: "http://127.0.0.1:1", Audience: audience, Now: time.Now, Rand: rand.Reader}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := devissuer.New(cfg); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a readable key: got %v, want a refusal with the command", err)
	}
	if err := errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, []byte("half"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := devissuer.New(cfg); err == nil {
		t.Error("a broken key: got nil, want an error")
	}
}

func TestTwoStartsAtOnceShareOneKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tokens := make([]string, 8)
	var wg sync.WaitGroup
	for n := range tokens {
		wg.Go(func() {
			issuer, err := devissuer.New(devissuer.Config{
				Dir: dir, URL: "http://127.0.0.1:1", Audience: audience, Rand: rand.Reader,
				Now: func() time.Time { return time.Unix(1796115600, 0) },
			})
			if err != nil {
				t.Error(err)
				return
			}
			tokens[n], _ = issuer.Token("kim")
		})
	}
	wg.Wait()
	for n, token := range tokens {
		if token == "" || token != tokens[0] {
			t.Errorf("start %d made another token than start 0", n)
		}
	}
}

func TestSignIn(t *testing.T) {
	t.Parallel()
	s := newStage(t, t.TempDir())
	path, err := s.issuer.SignInPath("kim")
	if err != nil {
		t.Fatal(err)
	}
	link, err := url.Parse(path)
	if err != nil || link.Path != "/dev/sign-in" {
		t.Fatalf("got %q, %v", path, err)
	}
	code := link.Query().Get("code")
	token, err := s.issuer.CheckSignIn("kim", code)
	if err != nil {
		t.Fatal(err)
	}
	a, err := s.verifier.Verify(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	if a.Subject != "kim@agency.example" || a.Kind != actor.Human || !a.AuthTime.Equal(s.now) {
		t.Errorf("got %+v, want kim, a human, signed in now", a)
	}
	for name, try := range map[string][2]string{
		"another's code": {"tanaka", code}, "no code": {"kim", ""}, "a changed code": {"kim", code + "A"}, "nobody": {"nobody", code},
	} {
		if _, err := s.issuer.CheckSignIn(try[0], try[1]); !errors.Is(err, devissuer.ErrSignIn) {
			t.Errorf("%s: got %v, want ErrSignIn", name, err)
		}
	}
	other := open(t, devissuer.Config{Dir: t.TempDir()})
	if _, err := other.CheckSignIn("kim", code); !errors.Is(err, devissuer.ErrSignIn) {
		t.Errorf("another key's link: got %v, want ErrSignIn", err)
	}
	if _, err := s.issuer.SignInPath("agent"); !errors.Is(err, devissuer.ErrUnknownPerson) {
		t.Errorf("a link for the agent: got %v, want ErrUnknownPerson", err)
	}
	if _, err := s.issuer.Token("nobody"); !errors.Is(err, devissuer.ErrUnknownPerson) {
		t.Errorf("a token for nobody: got %v, want ErrUnknownPerson", err)
	}
}

func TestHandlerAnswersThisMachineOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	local, remote := open(t, devissuer.Config{Dir: dir}), open(t, devissuer.Config{Dir: dir, AllowRemote: true})
	cases := []struct {
		name, peer, host string
		header           string
		want             int
	}{
		{"loopback", "127.0.0.1:5000", "127.0.0.1:8080", "", 200},
		{"localhost", "127.0.0.1:5000", "localhost:8080", "", 200},
		{"IPv6 loopback", "[::1]:5000", "[::1]:8080", "", 200},
		{"IPv6 loopback without a port", "[::1]:5000", "[::1]", "", 200},
		{"another machine", "192.0.2.7:5000", "127.0.0.1:8080", "", 403},
		{"a rebound name", "127.0.0.1:5000", "evil.example:8080", "", 403},
		{"a name that begins like ours", "127.0.0.1:5000", "localhost.evil.example", "", 403},
		{"no host", "127.0.0.1:5000", "", "", 403},
		{"through a proxy", "127.0.0.1:5000", "localhost:8080", "X-Forwarded-For", 403},
		{"through a proxy of the new kind", "127.0.0.1:5000", "localhost:8080", "Forwarded", 403},
		{"no peer", "", "localhost:8080", "", 403},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, path := range local.Paths() {
				r := httptest.NewRequest(http.MethodGet, path, nil)
				r.RemoteAddr, r.Host = c.peer, c.host
				if c.header != "" {
					r.Header.Set(c.header, "192.0.2.7")
				}
				w, open := httptest.NewRecorder(), httptest.NewRecorder()
				local.Handler().ServeHTTP(w, r)
				if w.Code != c.want {
					t.Errorf("%s: got %d, want %d", path, w.Code, c.want)
				}
				if remote.Handler().ServeHTTP(open, r); open.Code != 200 {
					t.Errorf("%s with AllowRemote: got %d, want 200", path, open.Code)
				}
				if strings.Contains(open.Body.String(), `"d"`) {
					t.Errorf("%s publishes a private key", path)
				}
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*devissuer.Config){
		"no clock":    func(c *devissuer.Config) { c.Now = nil },
		"no random":   func(c *devissuer.Config) { c.Rand = nil },
		"no audience": func(c *devissuer.Config) { c.Audience = "" },
		"no URL":      func(c *devissuer.Config) { c.URL = "" },
	} {
		cfg := devissuer.Config{Dir: t.TempDir(), URL: "http://127.0.0.1:1", Audience: audience, Now: time.Now, Rand: rand.Reader}
		spoil(&cfg)
		if _, err := devissuer.New(cfg); err == nil {
			t.Errorf("%s: got nil, want an error", name)
		}
	}
}
