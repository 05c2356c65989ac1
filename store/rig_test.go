package store_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/pgtest"
	"github.com/cutonce/cutonce/migrations"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
	"github.com/cutonce/cutonce/store"
)

// ledger is a target in memory: things with a text and a version. It counts effects by key and does what a test scripts.
type ledger struct {
	mu       sync.Mutex
	texts    map[string]string
	versions map[string]int
	effects  map[string]int
	// execute, if set, replaces the plain effect; do() makes it.
	execute func(ctx context.Context, plan connector.Plan, call connector.Call, do func() error) (connector.Receipt, error)
	lookup  func(call connector.Call) (connector.Finding, error)
	read    func(connector.Reading) (connector.Reading, error)
	deny    string
	able    connector.Capabilities
	// resolvers is how many operators the action asks for.
	resolvers int
	suffix    string
	// sensitive makes the text one that is hidden.
	sensitive bool
}

func newLedger() *ledger {
	return &ledger{
		texts: map[string]string{}, versions: map[string]int{}, effects: map[string]int{},
		able: connector.Capabilities{Lookup: true, Precondition: true},
	}
}

var _ connector.Connector = (*ledger)(nil)

// system and action tell ledgers apart where a test has several.
func (l *ledger) system() string { return "ledger" + l.suffix }
func (l *ledger) action() string { return "text_change" + l.suffix }

func (l *ledger) Describe() connector.Description {
	return connector.Description{System: l.system(), Able: l.able, Actions: []connector.Action{{
		Name: l.action(), Version: 1, Scopes: []string{"ledger:write"}, ReadScopes: []string{"ledger:read"}, ResolveBy: l.resolvers,
		Input: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["id","text"],
			"properties":{"id":{"type":"string","minLength":1},"text":{"type":"string"},"reason":{"type":"string"}}}`),
	}}}
}

func (l *ledger) Authorize(context.Context, actor.Actor, connector.Verb, connector.Target) (connector.Permission, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return connector.Permission{Allowed: l.deny == "", Reason: l.deny}, nil
}

func (l *ledger) Find(context.Context, actor.Actor, string, connector.Input) (connector.Page, error) {
	return connector.Page{}, nil
}

func (l *ledger) Prepare(_ context.Context, _ actor.Actor, _ string, in connector.Input) (connector.Plan, connector.Impact, error) {
	r := l.now(in.Text("id"))
	return connector.Plan{
		Target: r.Target, Version: r.Version,
		Request: connector.Request{Method: "PUT", Path: "/" + r.Target.ID, Body: json.RawMessage(fmt.Sprintf("%q", in.Text("text"))), Precondition: r.Version},
		Changes: []connector.Change{{Field: "text", Before: r.Values["text"], After: connector.Text(in.Text("text")), Sensitive: l.sensitive}},
	}, connector.Impact{Summary: connector.Say("ledger.summary", nil), Reversible: true, Reversal: connector.Say("ledger.reversal", nil)}, nil
}

// Reverse asks for the text that a plan found.
func (l *ledger) Reverse(_ string, p connector.Plan) (map[string]any, error) {
	return map[string]any{"id": p.Target.ID, "text": *p.Changes[0].Before.Text}, nil
}

func (l *ledger) now(id string) connector.Reading {
	l.mu.Lock()
	defer l.mu.Unlock()
	return connector.Reading{
		Target:  connector.Target{System: l.system(), Kind: "text", ID: id, Name: "Text " + id},
		Version: fmt.Sprintf("v%d", l.versions[id]), Values: map[string]connector.Value{"text": connector.Text(l.texts[id])},
	}
}

func (l *ledger) Read(_ context.Context, t connector.Target) (connector.Reading, error) {
	r := l.now(t.ID)
	l.mu.Lock()
	hook := l.read
	l.mu.Unlock()
	if hook != nil {
		return hook(r)
	}
	return r, nil
}

func (l *ledger) Execute(ctx context.Context, plan connector.Plan, call connector.Call) (connector.Receipt, error) {
	do := func() error { return l.effect(plan, call) }
	l.mu.Lock()
	hook := l.execute
	l.mu.Unlock()
	if hook != nil {
		return hook(ctx, plan, call, do)
	}
	if err := do(); err != nil {
		return connector.Receipt{}, err
	}
	return connector.Receipt{Evidence: map[string]any{"said": "ok"}}, nil
}

func (l *ledger) effect(plan connector.Plan, call connector.Call) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if plan.Request.Precondition != fmt.Sprintf("v%d", l.versions[plan.Target.ID]) {
		return &connector.DriftedError{}
	}
	l.effects[call.Key]++
	l.versions[plan.Target.ID]++
	l.texts[plan.Target.ID] = *plan.Changes[0].After.Text
	return nil
}

func (l *ledger) Lookup(_ context.Context, _ connector.Plan, call connector.Call) (connector.Finding, error) {
	l.mu.Lock()
	hook, n := l.lookup, l.effects[call.Key]
	l.mu.Unlock()
	switch {
	case hook != nil:
		return hook(call)
	case n > 0:
		return connector.Finding{Found: connector.EffectFound, Evidence: map[string]any{"count": n}}, nil
	}
	return connector.Finding{Found: connector.EffectAbsent}, nil
}

// script replaces what Execute does; nil is the plain effect again.
func (l *ledger) script(f func(context.Context, connector.Plan, connector.Call, func() error) (connector.Receipt, error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.execute = f
}

// looks replaces what Lookup finds.
func (l *ledger) looks(f func(connector.Call) (connector.Finding, error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lookup = f
}

// reads replaces what Read gives.
func (l *ledger) reads(f func(connector.Reading) (connector.Reading, error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.read = f
}

func (l *ledger) total() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, e := range l.effects {
		n += e
	}
	return n
}

func (l *ledger) move(id, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.texts[id] = text
	l.versions[id]++
}

// ruler is a policy that a test sets.
type ruler struct {
	mu     sync.Mutex
	ruling policy.Ruling
	by     func(policy.Facts) policy.Ruling // instead of ruling
	real   *policy.Policy
	timed  bool
}

// UsesTime is false unless a test says so.
func (r *ruler) UsesTime() bool { return r.timed }

// UsesExposure and Counted are those of a real policy, where the test has one.
func (r *ruler) UsesExposure() bool { return r.real != nil && r.real.UsesExposure() }

func (r *ruler) Counted(f policy.Facts) []policy.Charge { return r.real.Counted(f) }

func (r *ruler) Evaluate(f policy.Facts) policy.Ruling {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by != nil {
		return r.by(f)
	}
	return r.ruling
}

func (r *ruler) set(ruling policy.Ruling) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ruling = ruling
}

func people(needs ...policy.Seats) policy.Ruling {
	return policy.Ruling{Verdict: policy.Require, Rule: "people", Version: policyVersion, Needs: needs}
}

var automatic = policy.Ruling{Verdict: policy.Allow, Rule: "auto", Version: policyVersion}

const policyVersion = "p1"

var secret = []byte("a secret of thirty-two bytes.....")

type observer struct{}

func (observer) Sent(string, connector.Class, time.Duration) {}
func (observer) Settled(string, string, commit.Status)       {}

// rig is the whole core on a database of its own.
type rig struct {
	t     testing.TB
	url   string
	store *store.Store
	// direct goes to the database itself, where store goes through a proxy.
	direct *store.Store
	pool   *pgxpool.Pool
	target *ledger
	// front is asked in the target's place, nil if nothing stands before it.
	front  connector.Connector
	others []connector.Connector
	rules  *ruler
	clocks connector.Clocks
	// owner is set where the store's login is the one of url.
	owner bool
	// forged is set by tests that break chains themselves.
	forged bool
	// zone is the database's time zone, if it is not the server's own; conns the size of the store's pool.
	zone  string
	conns int32
	// maxOpen is the ceiling on open previews; zero is none.
	maxOpen int
	// stop is called at the points of pauses_test.go by services made after it is set.
	stop      func(point string)
	previews  *preview.Service
	approvals *approvals.Service
	commits   *commit.Service
}

// shortClocks keep tests fast; the defaults have tests of their own.
var shortClocks = connector.Clocks{
	PreviewTTL: time.Minute, ApprovalFor: time.Minute, ApplyWindow: time.Minute, SendFor: 700 * time.Millisecond,
	LeaseFor: 4 * time.Second, SettleFor: 200 * time.Millisecond,
}

// hasty is for tests that wait for a lease to lapse and an outcome to settle.
func hasty(r *rig) {
	r.clocks.LeaseFor, r.clocks.SendFor, r.clocks.SettleFor = 4*time.Second, 600*time.Millisecond, 10*time.Millisecond
}

// template is the migrated database that tests clone.
func template() pgtest.Template { return pgtest.Migrated(migrations.FS, store.Migrate) }

func newRig(t testing.TB, options ...func(*rig)) *rig {
	t.Helper()
	r := &rig{t: t, target: newLedger(), rules: &ruler{ruling: automatic}, clocks: shortClocks}
	for _, o := range options {
		o(r)
	}
	if r.url == "" {
		r.url = pgtest.URL(t, template())
	}
	r.setZone()
	pool, err := pgxpool.New(t.Context(), r.url)
	if err != nil {
		t.Fatal(err)
	}
	r.pool = pool
	if r.owner {
		r.store, r.forged = openAs(t, r.url, 8), true // whose chains are not for it to see
	} else {
		if _, err := pool.Exec(t.Context(), sqlServing); err != nil {
			t.Fatal(err)
		}
		r.store = openPool(t, r.url, cmp.Or(r.conns, 8))
	}
	r.direct = r.store
	t.Cleanup(pool.Close)
	t.Cleanup(r.verifyAtEnd) // after the drains, which are registered later
	if err := r.store.ActivatePolicy(t.Context(), policyVersion, "test"); err != nil {
		t.Fatal(err)
	}
	r.previews, r.approvals, r.commits = services(t, r, r.store)
	return r
}

// in is the same rig for a subtest that runs by itself.
func (r *rig) in(t testing.TB) *rig {
	same := *r
	same.t = t
	return &same
}

// setZone makes every later session of the database live in the rig's time zone.
func (r *rig) setZone() {
	if r.zone == "" {
		return
	}
	conn, err := pgx.Connect(r.t.Context(), r.url)
	if err != nil {
		r.t.Fatal(err)
	}
	defer conn.Close(r.t.Context())
	var name string
	if err = conn.QueryRow(r.t.Context(), `select quote_ident(current_database())`).Scan(&name); err == nil {
		_, err = conn.Exec(r.t.Context(), `alter database `+name+` set timezone = '`+r.zone+`'`)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// sqlServing makes the login that stores of these tests have: one that may take the two roles and nothing else, so that whatever a test
// does, it does behind the wall. The server keeps it for the next test.
const sqlServing = `
do $$ begin
  create role cutonce_test_serving login noinherit password 'of-the-tests' in role cutonce_app, cutonce_worker;
exception when duplicate_object or unique_violation then null;
end $$`

// serving is a database's address for that login.
func serving(t testing.TB, database string) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("cutonce_test_serving", "of-the-tests")
	return u.String()
}

func openStore(t testing.TB, url string) *store.Store { return openPool(t, url, 8) }

func openPool(t testing.TB, url string, conns int32) *store.Store {
	t.Helper()
	return openAs(t, serving(t, url), conns)
}

func openAs(t testing.TB, url string, conns int32) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{URL: url, MaxConns: conns})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func services(t testing.TB, r *rig, s *store.Store) (*preview.Service, *approvals.Service, *commit.Service) {
	t.Helper()
	first := r.front
	if first == nil {
		first = r.target
	}
	registry, err := connector.NewRegistry(append([]connector.Connector{first}, r.others...)...)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	previews, err := preview.NewService(preview.Deps{
		Store: s, Actions: registry, Policy: r.rules, Clocks: r.clocks, Log: log, MaxOpen: r.maxOpen,
	})
	if err != nil {
		t.Fatal(err)
	}
	people := approvals.NewService(approvals.Deps{Store: s, Actions: registry, Policy: r.rules, Clocks: r.clocks})
	commits := commit.NewService(commit.Deps{
		Store: pausing{s, r.stop}, Actions: registry, Holds: s, Freezes: s, Journal: s, Recheck: people, PolicyVersion: policyVersion, Secret: secret,
		Clocks: r.clocks, SendMargin: 50 * time.Millisecond, ProbeBase: 10 * time.Millisecond, Log: log, Observe: observer{},
	})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := commits.Drain(ctx); err != nil {
			t.Errorf("drain: %v", err)
		}
	})
	return previews, people, commits
}

func agent(name string) actor.Actor {
	return actor.Actor{
		Tenant: "acme", Kind: actor.Agent, Issuer: "https://id.example", Subject: name, Client: name, For: "sato",
		Scopes: []string{"ledger:read", "ledger:write"},
	}
}

func person(name string, groups ...string) actor.Actor {
	return actor.Actor{Tenant: "acme", Kind: actor.Human, Issuer: "https://id.example", Subject: name, Groups: groups, Roles: []string{actor.RoleApprover}}
}

func operator(name string) actor.Actor {
	return actor.Actor{Tenant: "acme", Kind: actor.Human, Issuer: "https://id.example", Subject: name, Roles: []string{actor.RoleOperator}}
}

func (r *rig) prepare(id, text string) preview.Preview {
	r.t.Helper()
	p, err := r.previews.Prepare(r.t.Context(), agent("bot"), preview.Request{Action: "text_change", Input: input(id, text)})
	if err != nil {
		r.t.Fatalf("prepare: %v", err)
	}
	return p.Preview
}

func input(id, text string) []byte {
	raw, _ := json.Marshal(map[string]string{"id": id, "text": text})
	return raw
}

func (r *rig) apply(p preview.Preview) (commit.Change, error) {
	return r.commits.Apply(r.t.Context(), agent("bot"), "text_change", p.ID, 10*time.Second)
}

func (r *rig) status(id preview.ID) commit.Change {
	r.t.Helper()
	c, _, err := r.direct.Load(r.t.Context(), "acme", id, true)
	if err != nil {
		r.t.Fatalf("status: %v", err)
	}
	return c
}

// sweepUntil sweeps until the change has the status, or fails.
func (r *rig) sweepUntil(id preview.ID, want commit.Status) commit.Change {
	r.t.Helper()
	deadline := time.Now().Add(15 * time.Second)
	for {
		if err := r.commits.Sweep(r.t.Context()); err != nil {
			r.t.Fatalf("sweep: %v", err)
		}
		c := r.status(id)
		if c.Status == want {
			return c
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("got status %s, want %s", c.Status, want)
		}
		time.Sleep(20 * time.Millisecond) // polling with a deadline
	}
}

func wantCode(t testing.TB, err error, want fault.Code) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got error %v, want %s", err, want)
	}
}
