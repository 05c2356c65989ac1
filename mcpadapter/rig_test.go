package mcpadapter_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/adbudget"
	"github.com/cutonce/cutonce/examples/policies"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/auth"
	"github.com/cutonce/cutonce/internal/catalog"
	"github.com/cutonce/cutonce/internal/pgtest"
	"github.com/cutonce/cutonce/internal/target"
	"github.com/cutonce/cutonce/mcpadapter"
	"github.com/cutonce/cutonce/migrations"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
	"github.com/cutonce/cutonce/store"
)

const platformToken = "simulator-token"

// rig is the agents' door on the whole core: real Postgres, the simulated ad platform, the shipped policy, signed tokens.
type rig struct {
	t         testing.TB
	ads       *target.Ads
	issuer    *issuer
	verifier  *auth.Verifier
	store     *store.Store
	approvals *approvals.Service
	commits   *commit.Service
	clocks    connector.Clocks
	// more are connectors beside the ad platform's.
	more    []connector.Connector
	log     *record
	deps    mcpadapter.Deps
	handler *mcpadapter.Handler
	url     string
}

// quickClocks keep tests fast. The tools' texts name the defaults.
var quickClocks = connector.Clocks{
	PreviewTTL: time.Minute, ApprovalFor: time.Minute, ApplyWindow: time.Minute,
	SendFor: time.Second, LeaseFor: 3 * time.Second, SettleFor: 100 * time.Millisecond,
}

type observer struct{}

func (observer) Sent(string, connector.Class, time.Duration) {}
func (observer) Settled(string, string, commit.Status)       {}

func newRig(t testing.TB, options ...func(*rig)) *rig {
	t.Helper()
	r := &rig{t: t, issuer: newIssuer(t), clocks: quickClocks, log: &record{}}
	r.verifier = r.issuer.verifier()
	r.ads = target.NewAds(target.AdsConfig{PlatformConfig: target.PlatformConfig{Token: platformToken}, Seed: 1})
	platform := httptest.NewServer(r.ads)
	t.Cleanup(func() { _ = r.ads.Close(); platform.Close() })
	ads, err := adbudget.New(adbudget.Config{
		BaseURL: platform.URL, Token: platformToken, System: "ads.example/agency", Sandbox: true, SettleFor: 100 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(ads.Close)
	r.deps = mcpadapter.Deps{ResourceMetadataURL: metadataURL, Version: "test", ApplyWait: 10 * time.Second, Verifier: r.verifier}
	for _, o := range options {
		o(r)
	}
	registry, err := connector.NewRegistry(append(r.more, ads)...)
	if err != nil {
		t.Fatal(err)
	}
	r.deps.Actions = registry
	if r.deps.Changes == nil {
		r.store = openStore(t)
		r.core(registry)
	}
	texts, err := catalog.New(registry.Texts()...)
	if err != nil {
		t.Fatal(err)
	}
	r.deps.Catalog, r.deps.Log = texts, slog.New(slog.NewJSONHandler(r.log, nil))
	r.open()
	return r
}

func openStore(t testing.TB) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{URL: pgtest.URL(t, pgtest.Migrated(migrations.FS, store.Migrate)), MaxConns: 8})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// core makes the services behind the door.
func (r *rig) core(registry *connector.Registry) {
	r.t.Helper()
	rules, err := policy.Load(policies.FS)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := r.store.ActivatePolicy(r.t.Context(), rules.Version(), "test"); err != nil {
		r.t.Fatal(err)
	}
	log := slog.New(slog.NewJSONHandler(r.log, nil))
	previews, err := preview.NewService(preview.Deps{Store: r.store, Actions: registry, Policy: rules, Clocks: r.clocks, Log: log})
	if err != nil {
		r.t.Fatal(err)
	}
	r.approvals = approvals.NewService(approvals.Deps{Store: r.store, Actions: registry, Policy: rules, Clocks: r.clocks})
	r.commits = commit.NewService(commit.Deps{
		Store: r.store, Actions: registry, Recheck: r.approvals, PolicyVersion: rules.Version(), Secret: bytes.Repeat([]byte("s"), 32),
		Clocks: r.clocks, SendMargin: 50 * time.Millisecond, ProbeBase: 10 * time.Millisecond, Log: log, Observe: observer{},
	})
	r.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := r.commits.Drain(ctx); err != nil {
			r.t.Errorf("drain: %v", err)
		}
	})
	r.deps.Changes, r.deps.Commits, r.deps.Approvals = previews, r.commits, r.approvals
}

// open serves the door over real HTTP.
func (r *rig) open() {
	r.t.Helper()
	handler, err := mcpadapter.New(r.deps)
	if err != nil {
		r.t.Fatal(err)
	}
	r.handler = handler
	server := httptest.NewServer(handler)
	r.url = server.URL + "/mcp"
	r.t.Cleanup(func() { _ = handler.Close(); server.Close() })
}

// actorOf is who a token speaks for, for calls past the door.
func (r *rig) actorOf(token string) actor.Actor {
	r.t.Helper()
	who, err := r.verifier.Verify(r.t.Context(), token)
	if err != nil {
		r.t.Fatal(err)
	}
	return who
}

// decide lets a person of ads-approvers decide, as the console would.
func (r *rig) decide(id string, approve bool, reason string) {
	r.t.Helper()
	parsed, _ := preview.ParseID(id)
	boss := r.actorOf(r.issuer.token(person("kim@agency.example", []string{"ads-approvers"}, []string{actor.RoleApprover})))
	p, _, err := r.store.Preview(r.t.Context(), boss.Tenant, parsed)
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := r.approvals.Decide(r.t.Context(), boss, p.ID, decision(p, approve, reason)); err != nil {
		r.t.Fatal(err)
	}
}

// sweepUntil runs the reconciler's work until the change has the status.
func (r *rig) sweepUntil(id string, want commit.Status) {
	r.t.Helper()
	parsed, _ := preview.ParseID(id)
	who := r.actorOf(r.issuer.token())
	for deadline := time.Now().Add(20 * time.Second); ; {
		if err := r.commits.Sweep(r.t.Context()); err != nil {
			r.t.Fatal(err)
		}
		c, err := r.commits.Status(r.t.Context(), who, parsed, 0, false)
		if err != nil {
			r.t.Fatal(err)
		}
		if c.Status == want {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("got status %s, want %s", c.Status, want)
		}
		pause(r.t.Context(), 20*time.Millisecond)
	}
}

// pause is for polling with a deadline.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// record is a log that a test can read.
type record struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.b.Write(p)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.b.String()
}

// body reads a whole answer.
func body(t testing.TB, resp *http.Response) string {
	t.Helper()
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
