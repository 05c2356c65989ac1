package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
	"github.com/cutonce/cutonce/store"
)

// bench is the whole core on the scratch schema, with the counting target in the place of the user's.
type bench struct {
	cfg     Config
	scratch *scratch
	// clocks are the ones that this run uses; ahead is how far the second clock is.
	clocks     connector.Clocks
	sendMargin time.Duration
	ahead      time.Duration

	sql *pgxpool.Pool
	// store is the database as it is; later the same one on a clock that is ahead.
	store, later *store.Store
	target       *target
	conn         *noteConnector
	actions      *connector.Registry
	rules        *rules
	// core is on store, tomorrow on later.
	core, tomorrow *core
	closers        []func()
}

// core is the three services on one store.
type core struct {
	previews  *preview.Service
	approvals *approvals.Service
	commits   *commit.Service
}

// ports are what the services need of a store. Checks decorate them to be between two steps.
type ports interface {
	preview.Store
	approvals.Store
	commit.Store
}

// The times that a run has to sit through are never longer than these.
const (
	shortSend   = 2 * time.Second
	shortLease  = 6 * time.Second
	shortMargin = 200 * time.Millisecond
	shortSettle = 300 * time.Millisecond
	probeBase   = 10 * time.Millisecond
)

func newBench(ctx context.Context, cfg Config) (b *bench, err error) {
	c := cfg.Clocks
	b = &bench{cfg: cfg, clocks: c, sendMargin: min(cfg.SendMargin, shortMargin), rules: &rules{}}
	b.clocks.SendFor, b.clocks.LeaseFor = min(c.SendFor, shortSend), min(c.LeaseFor, shortLease)
	b.clocks.SettleFor = min(c.SettleFor, shortSettle)
	b.ahead = 24*time.Hour + 2*max(c.PreviewTTL, c.ApprovalFor, c.ApplyWindow, c.LeaseFor+c.SendFor+c.SettleFor)
	if b.scratch, err = newScratch(ctx, cfg.URL, b.ahead); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close(ctx))
		}
	}()
	if err := b.open(ctx); err != nil {
		return b, err
	}
	b.core, err = b.on(b.store)
	if err != nil {
		return b, err
	}
	b.tomorrow, err = b.on(b.later)
	return b, err
}

// sqlConns is for what checks say in SQL themselves.
const sqlConns = 2

func (b *bench) open(ctx context.Context) (err error) {
	if b.store, err = b.openStore(ctx, b.scratch.url, b.scratch.here); err != nil {
		return err
	}
	if b.later, err = b.openStore(ctx, b.scratch.ahead, b.scratch.later); err != nil {
		return err
	}
	config, err := pgxpool.ParseConfig(b.scratch.url)
	if err != nil {
		return err
	}
	config.MaxConns = sqlConns
	config.PrepareConn = func(ctx context.Context, conn *pgx.Conn) (bool, error) {
		err := b.scratch.here(ctx, conn)
		return err == nil, err
	}
	if b.sql, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return err
	}
	b.closers = append(b.closers, b.sql.Close)
	if b.target, err = newTarget(); err != nil {
		return err
	}
	b.closers = append(b.closers, b.target.close)
	if b.conn, err = newNoteConnector(b.target.url, b.clocks); err != nil {
		return err
	}
	b.closers = append(b.closers, b.conn.close)
	if b.actions, err = connector.NewRegistry(b.conn); err != nil {
		return err
	}
	return b.store.ActivatePolicy(ctx, ruleVersion, "the rules of a verification run")
}

func (b *bench) openStore(ctx context.Context, url string, vet store.Vet) (*store.Store, error) {
	s, err := store.Open(ctx, store.Config{URL: url, MaxConns: b.cfg.PoolSize, Vet: vet})
	if strayed := b.scratch.strayed.Load(); strayed != nil {
		return nil, strayed
	}
	if err != nil {
		return nil, cannot("the database cannot be opened: %s", told(err))
	}
	b.closers = append(b.closers, s.Close)
	return s, nil
}

// on makes the services on a store, decorated or not.
func (b *bench) on(s ports) (*core, error) {
	previews, err := preview.NewService(preview.Deps{Store: s, Actions: b.actions, Policy: b.rules, Clocks: b.clocks, Log: b.cfg.Log})
	if err != nil {
		return nil, err
	}
	people := approvals.NewService(approvals.Deps{Store: s, Actions: b.actions, Policy: b.rules, Clocks: b.clocks})
	return &core{previews: previews, approvals: people, commits: commit.NewService(commit.Deps{
		Store: s, Freezes: b.store, Actions: b.actions, Recheck: people, PolicyVersion: ruleVersion, Secret: b.cfg.Secret, Clocks: b.clocks,
		SendMargin: b.sendMargin, ProbeBase: probeBase, Log: b.cfg.Log, Observe: observer{},
	})}, nil
}

// drainFor bounds the end of sends that a failed check may have left.
const drainFor = 5 * time.Second

// close lets go of everything and drops the schema, also after an interrupt.
func (b *bench) close(ctx context.Context) error {
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainFor)
	defer cancel()
	for _, c := range []*core{b.core, b.tomorrow} {
		if c != nil {
			_ = c.commits.Drain(bound) // what a failed check left is of no interest any more
		}
	}
	for _, f := range slices.Backward(b.closers) {
		f()
	}
	return b.scratch.drop(ctx)
}

// shown are the clocks as configured and as used.
func (b *bench) shown() []Clock {
	c := b.cfg.Clocks
	var all []Clock
	for _, one := range []struct {
		name             string
		configured, used time.Duration
	}{
		{"PREVIEW_TTL", c.PreviewTTL, b.clocks.PreviewTTL}, {"APPROVAL", c.ApprovalFor, b.clocks.ApprovalFor},
		{"APPLY_WINDOW", c.ApplyWindow, b.clocks.ApplyWindow}, {"SEND", c.SendFor, b.clocks.SendFor},
		{"LEASE", c.LeaseFor, b.clocks.LeaseFor}, {"SEND_MARGIN", b.cfg.SendMargin, b.sendMargin},
		{"SETTLE", c.SettleFor, b.clocks.SettleFor},
	} {
		all = append(all, Clock{Name: one.name, Configured: one.configured.String(), Used: one.used.String()})
	}
	return all
}

// The tenant and the people of a run.
const (
	tenant    = "cutonce-verify"
	issuer    = "https://verify.invalid"
	approvers = "verify-approvers"
	requester = "requester"
)

var (
	agent = actor.Actor{
		Tenant: tenant, Kind: actor.Agent, Issuer: issuer, Subject: "agent", Client: "agent", For: requester, Owner: "owner",
		Scopes: []string{writeScope, readScope},
	}
	approver = person("approver")
)

// person is somebody who could fill a seat, unless they are involved in the change.
func person(name string) actor.Actor {
	return actor.Actor{
		Tenant: tenant, Kind: actor.Human, Issuer: issuer, Subject: name, Groups: []string{approvers},
		Roles: []string{actor.RoleApprover, actor.RoleOperator}, Scopes: []string{writeScope, readScope},
	}
}

// ruleVersion names the rules of a run.
const ruleVersion = "cutonce-verify"

// rules rule by the thing's name: those that begin with "people-" need a person, with "several-" several; "capped-" and what follows say
// what the change takes of a cap. All others are automatic.
type rules struct {
	mu     sync.Mutex
	strict bool
}

const (
	byPeople  = "people-"
	bySeveral = "several-"
	byCap     = "capped-"
)

// UsesTime is false: the rules of a run look at names.
func (r *rules) UsesTime() bool { return false }

// UsesExposure is false: these rulings look at nothing.
func (r *rules) UsesExposure() bool { return false }

// Counted is never asked.
func (r *rules) Counted(policy.Facts) []policy.Charge { return nil }

// Evaluate is the policy of a run.
func (r *rules) Evaluate(f policy.Facts) policy.Ruling {
	r.mu.Lock()
	defer r.mu.Unlock()
	ruling := policy.Ruling{Verdict: policy.Allow, Rule: "automatic", Version: ruleVersion}
	switch id := f.Plan.Target.ID; {
	case r.strict, strings.HasPrefix(id, byPeople):
		ruling.Verdict, ruling.Rule, ruling.Needs = policy.Require, "people", policy.Requirement{{AnyOf: []string{approvers}, Count: 1}}
	case strings.HasPrefix(id, bySeveral):
		ruling.Verdict, ruling.Rule, ruling.Needs = policy.Require, "several", severalPeople
	case strings.HasPrefix(id, byCap):
		ruling.Charges = []policy.Charge{chargeOf(id)}
	}
	return ruling
}

func (r *rules) set(strict bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.strict = strict
}

// prepare proposes a change of one thing.
func (b *bench) prepare(ctx context.Context, id string) (preview.Preview, error) {
	return b.prepareBy(ctx, b.core, id)
}

func (b *bench) prepareBy(ctx context.Context, c *core, id string) (preview.Preview, error) {
	raw, err := json.Marshal(map[string]string{"id": id, "text": "new"})
	if err != nil {
		return preview.Preview{}, err
	}
	p, err := c.previews.Prepare(ctx, agent, preview.Request{Action: noteAction, Input: raw, Key: randomName()})
	if err != nil {
		return p.Preview, fmt.Errorf("preparing a change: %w", err)
	}
	return p.Preview, nil
}

// pending prepares a change that needs one person, and asks.
func (b *bench) pending(ctx context.Context, id string) (preview.Preview, error) {
	return b.asked(ctx, byPeople+id)
}

// asked prepares a change and asks people.
func (b *bench) asked(ctx context.Context, id string) (preview.Preview, error) {
	p, err := b.prepare(ctx, id)
	if err != nil {
		return p, err
	}
	p, err = b.core.approvals.Request(ctx, agent, p.ID, "")
	if err == nil && p.State != preview.Pending {
		err = fail("a change that people were asked about is %s, not pending", p.State)
	}
	return p, err
}

func (b *bench) approve(ctx context.Context, p preview.Preview) (preview.Preview, error) {
	return b.core.approvals.Decide(ctx, approver, p.ID, approvals.Decision{Approve: true, Digest: p.Digest})
}

// applyWait is how long an apply waits for its send.
const applyWait = 10 * time.Second

func (c *core) apply(ctx context.Context, p preview.Preview) (commit.Change, error) {
	return c.commits.Apply(ctx, agent, noteAction, p.ID, applyWait)
}

// claim makes a claim on the port itself, with whatever the check has altered of it.
func (b *bench) claim(ctx context.Context, s commit.Store, p preview.Preview, alter func(*commit.Claim)) error {
	seen, epochs, err := s.Load(ctx, p.Tenant, p.ID, false)
	if err != nil {
		return err
	}
	c := commit.Claim{
		Key: commit.Key{Tenant: p.Tenant, ID: p.ID}, Attempt: newAttempt(), By: agent, Digest: p.Digest, Revision: seen.Preview.Revision, Version: p.Plan.Version,
		Epochs: epochs, Clocks: b.clocks,
	}
	if alter != nil {
		alter(&c)
	}
	return s.ClaimApproved(ctx, c)
}

// key is the change's idempotency key, which the target counts by.
func (b *bench) key(p preview.Preview) string {
	return commit.IdempotencyKey(b.cfg.Secret, p.Tenant, p.ID, 0)
}

// status reads a change with its attempts and events.
func (b *bench) status(ctx context.Context, p preview.Preview) (commit.Change, error) {
	c, _, err := b.store.Load(ctx, p.Tenant, p.ID, true)
	return c, err
}

// want reads a change and compares its status.
func (b *bench) want(ctx context.Context, p preview.Preview, want commit.Status, when string) error {
	c, err := b.status(ctx, p)
	if err != nil {
		return err
	}
	if c.Status != want {
		return fail("%s, the change is %s, want %s", when, c.Status, want)
	}
	return nil
}

// wantEffects compares what the target counted under a change's key.
func (b *bench) wantEffects(p preview.Preview, want int, when string) error {
	if _, got := b.target.count(b.key(p)); got != want {
		return fail("%s, the target counted %d effects, want %d", when, got, want)
	}
	return nil
}

// sweep lets the reconciler of a later time come by, until the change has a status.
func (b *bench) sweep(ctx context.Context, p preview.Preview, want commit.Status) error {
	for {
		if err := b.tomorrow.commits.Sweep(ctx); err != nil {
			return fmt.Errorf("sweeping: %w", err)
		}
		c, err := b.status(ctx, p)
		switch {
		case err != nil:
			return err
		case c.Status == want:
			return nil
		case c.Status != commit.StatusUnknown && c.Status != commit.StatusApplying:
			return fail("the reconciler settled the change as %s, want %s", c.Status, want)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fail("the reconciler left the change %s, want %s", c.Status, want)
		}
	}
}

// refusedSQL runs a statement that the schema itself must refuse with a code, in a transaction that is rolled back.
func (b *bench) refusedSQL(ctx context.Context, code, what, sql string, args ...any) error {
	return b.refusedAtOnce(ctx, "", code, what, sql, args...)
}

// refusedAtOnce is refusedSQL where one deferred constraint is to speak before the others.
func (b *bench) refusedAtOnce(ctx context.Context, constraint, code, what, sql string, args ...any) error {
	tx, err := b.sql.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if constraint != "" {
		if _, err := tx.Exec(ctx, "set constraints "+constraint+" immediate"); err != nil {
			return err
		}
	}
	if _, err = tx.Exec(ctx, sql, args...); err == nil {
		_, err = tx.Exec(ctx, "set constraints all immediate")
	}
	var refused *pgconn.PgError
	switch {
	case err == nil:
		return fail("%s was not refused by the database", what)
	case errors.As(err, &refused) && refused.Code == code:
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

// observer wants no metrics.
type observer struct{}

func (observer) Sent(string, connector.Class, time.Duration) {}
func (observer) Settled(string, string, commit.Status)       {}

var _ commit.Observer = observer{}
