package api_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/cutonce/cutonce/api"
	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/adbudget"
	"github.com/cutonce/cutonce/examples/policies"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/auth"
	"github.com/cutonce/cutonce/internal/catalog"
	"github.com/cutonce/cutonce/internal/devissuer"
	"github.com/cutonce/cutonce/internal/pgtest"
	"github.com/cutonce/cutonce/internal/target"
	"github.com/cutonce/cutonce/migrations"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
	"github.com/cutonce/cutonce/store"
)

const (
	audience      = "https://cutonce.example"
	platformToken = "simulator-token"
)

// rig is the whole service behind real HTTP: Postgres, the simulated platform, the example policy, signed tokens.
type rig struct {
	t      testing.TB
	url    string
	api    http.Handler
	ads    *target.Ads
	issuer *devissuer.Issuer
	store  *store.Store
	deps   api.Deps
	log    *lines
	change *commit.Service
}

// shortClocks keep tests fast; the defaults have tests of their own.
var shortClocks = connector.Clocks{
	PreviewTTL: time.Minute, ApprovalFor: time.Minute, ApplyWindow: time.Minute, SendFor: 500 * time.Millisecond,
	LeaseFor: 1500 * time.Millisecond, SettleFor: 100 * time.Millisecond,
}

type settings struct {
	ads    adbudget.Config
	clocks connector.Clocks
	deps   func(*api.Deps)
	rules  fs.FS
	// limit and maxOpen are the preview service's.
	limit   func(actor.Actor, string) error
	maxOpen int
	// front stands before the platform's connector, if it is set.
	front func(*adbudget.Connector) connector.Connector
}

type option func(*settings)

func withAds(cfg adbudget.Config) option { return func(s *settings) { s.ads = cfg } }

func withClocks(k connector.Clocks) option { return func(s *settings) { s.clocks = k.Or(shortClocks) } }

func withDeps(change func(*api.Deps)) option { return func(s *settings) { s.deps = change } }

// withRules is a policy of the test's own.
func withRules(text string) option {
	return func(s *settings) { s.rules = fstest.MapFS{"rules.yaml": {Data: []byte(text)}} }
}

func newRig(t testing.TB, options ...option) *rig {
	t.Helper()
	s := settings{clocks: shortClocks, rules: policies.FS, deps: func(*api.Deps) {}}
	for _, o := range options {
		o(&s)
	}
	r := &rig{t: t, log: &lines{}}
	r.startPlatform(s.ads.HonoursKeys)
	r.startIssuer()
	r.openStore()
	r.wire(s)
	r.serve()
	return r
}

func (r *rig) startPlatform(honourKeys bool) {
	r.ads = target.NewAds(target.AdsConfig{PlatformConfig: target.PlatformConfig{Token: platformToken, HonourKeys: honourKeys}, Seed: 1})
}

func (r *rig) startIssuer() {
	var handler atomic.Pointer[http.Handler]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { (*handler.Load()).ServeHTTP(w, q) }))
	r.t.Cleanup(server.Close)
	issuer, err := devissuer.New(devissuer.Config{
		Dir: r.t.TempDir(), URL: server.URL + "/dev/issuer", Audience: audience, Tenant: "dev", Now: time.Now, Rand: rand.Reader,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	h := issuer.Handler()
	handler.Store(&h)
	r.issuer = issuer
}

func (r *rig) openStore() {
	s, err := store.Open(r.t.Context(), store.Config{URL: pgtest.URL(r.t, pgtest.Migrated(migrations.FS, store.Migrate)), MaxConns: 8})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(s.Close)
	r.store = s
}

func (r *rig) wire(s settings) {
	platform := httptest.NewServer(r.ads)
	r.t.Cleanup(func() { _ = r.ads.Close(); platform.Close() })
	s.ads.BaseURL, s.ads.Token, s.ads.System, s.ads.SettleFor = platform.URL, platformToken, "ads.example/agency", 100*time.Millisecond
	ads, err := adbudget.New(s.ads)
	r.must(err)
	r.t.Cleanup(ads.Close)
	var front connector.Connector = ads
	if s.front != nil {
		front = s.front(ads)
	}
	registry, err := connector.NewRegistry(front)
	r.must(err)
	rules, err := policy.Load(s.rules)
	r.must(err)
	r.must(r.store.ActivatePolicy(r.t.Context(), rules.Version(), "test"))
	log := slog.New(slog.NewJSONHandler(r.log, nil))
	previews, err := preview.NewService(preview.Deps{
		Store: r.store, Actions: registry, Policy: rules, Clocks: s.clocks, Log: log, Limit: s.limit, MaxOpen: s.maxOpen,
	})
	r.must(err)
	people := approvals.NewService(approvals.Deps{Store: r.store, Actions: registry, Policy: rules, Clocks: s.clocks})
	r.change = commit.NewService(commit.Deps{
		Store: r.store, Actions: registry, Freezes: r.store, Journal: r.store, Recheck: people, PolicyVersion: rules.Version(), Secret: []byte("a secret of thirty-two bytes....."),
		Clocks: s.clocks, SendMargin: 50 * time.Millisecond, ProbeBase: 10 * time.Millisecond, Log: log, Observe: observer{},
	})
	r.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.t.Context()), 5*time.Second)
		defer cancel()
		if err := r.change.Drain(ctx); err != nil {
			r.t.Errorf("drain: %v", err)
		}
	})
	texts, err := catalog.New(registry.Texts()...)
	r.must(err)
	verifier, err := auth.New(r.t.Context(), auth.Config{
		Issuers:   []auth.Issuer{{URL: r.issuer.URL(), AgentClients: r.issuer.AgentClients()}},
		Audiences: []string{audience}, Now: time.Now,
	})
	r.must(err)
	var ids atomic.Int64
	r.deps = api.Deps{
		Previews: previews, Approvals: people, Changes: r.change, Freezes: r.change, Verifier: verifier, Catalog: texts, Actions: registry,
		Challenge: auth.Challenge{ResourceMetadataURL: audience + "/.well-known/oauth-protected-resource", ReadScopes: []string{"ads:read"}},
		Ready:     r.store.Ping, ApplyWait: 5 * time.Second, Log: log, Now: time.Now, Version: "test",
		NewRequestID: func() string { return fmt.Sprintf("req-%d", ids.Add(1)) },
	}
	s.deps(&r.deps)
}

func (r *rig) serve() {
	handler, err := api.New(r.deps)
	r.must(err)
	r.api = handler
	server := httptest.NewServer(handler)
	r.t.Cleanup(server.Close)
	r.url = server.URL
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

type observer struct{}

func (observer) Sent(string, connector.Class, time.Duration) {}
func (observer) Settled(string, string, commit.Status)       {}

// lines keeps what was logged.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// token mints the token of one of the development people.
func (r *rig) token(person string, options ...devissuer.Option) string {
	r.t.Helper()
	token, err := r.issuer.Token(person, options...)
	r.must(err)
	return token
}

// ask is one request. Body is sent as it is if it is a string or bytes, as JSON otherwise.
type ask struct {
	method, path string
	as           string // a person; nobody if empty
	token        string // instead of as
	body         any
	header       http.Header
}

// reply is what came back. Every reply has been held up to openapi.yaml.
type reply struct {
	status int
	header http.Header
	raw    []byte
	body   map[string]any
}

func (r *rig) do(a ask) reply {
	r.t.Helper()
	req := r.request(a)
	var sent []byte
	if req.Body != nil {
		sent, _ = io.ReadAll(req.Body)
		req.Body = io.NopCloser(bytes.NewReader(sent))
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatalf("%s %s: %v", a.method, a.path, err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	r.must(err)
	out := reply{status: resp.StatusCode, header: resp.Header, raw: raw}
	checkExchange(r.t, req, sent, out)
	if media := resp.Header.Get("Content-Type"); strings.HasSuffix(media, "json") && !strings.HasSuffix(media, "ndjson") {
		if err := json.Unmarshal(raw, &out.body); err != nil {
			r.t.Fatalf("%s %s: the answer is not JSON: %v", a.method, a.path, err)
		}
	}
	return out
}

func (r *rig) request(a ask) *http.Request {
	r.t.Helper()
	var body io.Reader
	switch b := a.body.(type) {
	case nil:
	case string:
		body = strings.NewReader(b)
	case []byte:
		body = bytes.NewReader(b)
	default:
		raw, err := json.Marshal(b)
		r.must(err)
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(r.t.Context(), a.method, r.url+a.path, body)
	r.must(err)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if a.as != "" {
		a.token = r.token(a.as)
	}
	if a.token != "" {
		req.Header.Set("Authorization", "Bearer "+a.token)
	}
	for name, values := range a.header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	return req
}

func (r *rig) get(as, path string) reply {
	r.t.Helper()
	return r.do(ask{method: "GET", path: path, as: as})
}

func (r *rig) post(as, path string, body any) reply {
	r.t.Helper()
	return r.do(ask{method: "POST", path: path, as: as, body: body})
}

type object = map[string]any

// raise is an input for one of the plain JPY campaigns, whose budgets are JPY 10000.
func raise(n int, to int) object {
	return object{"campaign_id": target.PlainJPY(n), "new_daily_budget_jpy": to, "reason": "a test"}
}

// prepared makes a preview for the agent and returns its ID.
func (r *rig) prepared(input object) string {
	r.t.Helper()
	got := r.post("agent", previewsPath, input)
	got.want(r.t, http.StatusCreated, "")
	return got.text("preview_id")
}

const previewsPath = "/v1/actions/budget_change/previews"

func of(id, what string) string { return "/v1/previews/" + id + what }

// want checks status and code.
func (p reply) want(t testing.TB, status int, code string) {
	t.Helper()
	if got := p.text("code"); p.status != status || got != code {
		t.Fatalf("got %d %q, want %d %q; %s", p.status, got, status, code, p.raw)
	}
}

func (p reply) text(path ...string) string {
	s, _ := p.at(path...).(string)
	return s
}

func (p reply) at(path ...string) any {
	var value any = p.body
	for _, name := range path {
		m, _ := value.(map[string]any)
		value = m[name]
	}
	return value
}

// field finds what was said of one place of the input.
func (p reply) field(path string) string {
	fields, _ := p.at("fields").([]any)
	for _, f := range fields {
		if m := f.(map[string]any); m["path"] == path {
			return m["reason"].(string)
		}
	}
	return ""
}

func shortApplyWait(d *api.Deps) { d.ApplyWait = 300 * time.Millisecond }
