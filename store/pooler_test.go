package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/pgtest"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
	"github.com/cutonce/cutonce/store"
)

// replies loses every fourth target's reply, after the effect.
func replies(_ context.Context, plan connector.Plan, _ connector.Call, do func() error) (connector.Receipt, error) {
	err := do()
	if err == nil && strings.HasSuffix(plan.Target.ID, "lost") {
		err = context.DeadlineExceeded
	}
	return connector.Receipt{Evidence: map[string]any{"said": "ok"}}, err
}

// of is somebody in another tenant than acme.
func of(tenant string, who actor.Actor) actor.Actor {
	who.Tenant = tenant
	return who
}

// TestTwoTenantsThroughATransactionPooler runs the whole of a change, the reconciler and the sealer over a real PgBouncer: 32 clients of
// two tenants, two replicas and three sessions of the server, which every transaction gets another one of.
func TestTwoTenantsThroughATransactionPooler(t *testing.T) {
	t.Parallel()
	r := newRig(t, unhurried)
	r.rules.set(people(policy.Seats{AnyOf: []string{"leads"}, Count: 1}))
	r.target.script(replies)
	through := pgtest.Pooler(t, serving(t, r.url), 3)
	var replicas [2]*rig
	for i := range replicas {
		other := *r
		other.store = openPool(t, through, 16)
		if !other.store.Pooled() {
			t.Fatal("the pooler is not recognised")
		}
		other.previews, other.approvals, other.commits = services(t, &other, other.store)
		replicas[i] = &other
	}
	if r.store.Pooled() {
		t.Error("a direct connection is taken for a pooler")
	}
	ctx, stop := context.WithCancel(t.Context())
	var behind, clients sync.WaitGroup
	behind.Go(func() { replicas[0].sweepAndSeal(ctx) })
	const each = 32
	for i := range each {
		clients.Go(func() {
			for n := range 3 {
				if err := replicas[(i+n)%2].through(t.Context(), []string{"acme", "rival"}[i%2], fmt.Sprintf("%d-%d", i, n)); err != nil {
					t.Errorf("client %d: %v", i, err)
				}
			}
		})
	}
	clients.Wait()
	for _, tenant := range []string{"acme", "rival"} {
		replicas[1].awaitAll(tenant, each/2*3)
	}
	stop()
	behind.Wait()
	if got := r.target.total(); got != each*3 {
		t.Errorf("got %d effects, want %d", got, each*3)
	}
	if seal, err := replicas[0].store.LastSeal(t.Context()); err != nil || seal == nil {
		t.Errorf("got seal %v, %v, want one made through the pooler", seal, err)
	}
	r.leavesNothingBehind(t, through)
}

func (r *rig) sweepAndSeal(ctx context.Context) {
	sealer := r.sealer("")
	sealer.Store = r.store
	for ctx.Err() == nil {
		if err := r.commits.Sweep(ctx); err != nil && ctx.Err() == nil {
			r.t.Errorf("sweep: %v", err)
		}
		if err := sealer.Seal(ctx); err != nil && ctx.Err() == nil {
			r.t.Errorf("seal: %v", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// through takes one change of a tenant through its life, and asks for it as the other tenant at every step.
func (r *rig) through(ctx context.Context, tenant, id string) error {
	if strings.HasSuffix(id, "-2") {
		id += "-lost"
	}
	bot, stranger := of(tenant, agent("bot")), map[string]string{"acme": "rival", "rival": "acme"}[tenant]
	made, err := r.previews.Prepare(ctx, bot, preview.Request{Action: "text_change", Input: input(tenant+id, "new")})
	if err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	p := made.Preview
	unseen := func() error {
		if _, _, err := r.store.Load(ctx, stranger, p.ID, true); !errors.Is(err, fault.NotFound) {
			return fmt.Errorf("another tenant reads the change: %w", err)
		}
		return nil
	}
	if _, err := r.approvals.Request(ctx, bot, p.ID, "please"); err != nil {
		return fmt.Errorf("request: %w", err)
	}
	if err := unseen(); err != nil {
		return err
	}
	if _, err := r.approvals.Decide(ctx, of(tenant, person("kim", "leads")), p.ID, approvals.Decision{Approve: true, Digest: p.Digest}); err != nil {
		return fmt.Errorf("decide: %w", err)
	}
	c, err := r.commits.Apply(ctx, bot, "text_change", p.ID, commit.MaxWait)
	if err != nil || c.Status != commit.StatusApplied && c.Status != commit.StatusUnknown {
		return fmt.Errorf("apply: got %s, %w", c.Status, err)
	}
	return unseen()
}

// awaitAll waits until all of a tenant's changes are applied, and sees none of another.
func (r *rig) awaitAll(tenant string, want int) {
	r.t.Helper()
	for deadline := time.Now().Add(60 * time.Second); ; {
		list, _, err := r.store.List(r.t.Context(), commit.Filter{Tenant: tenant, Limit: 100})
		if err != nil {
			r.t.Fatal(err)
		}
		applied := 0
		for _, c := range list {
			if c.Preview.Tenant != tenant {
				r.t.Fatalf("%s is shown a change of %s", tenant, c.Preview.Tenant)
			}
			if c.Status == commit.StatusApplied {
				applied++
			}
		}
		if applied == want && len(list) == want {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("%s: got %d changes, %d of them applied, want %d: something is stuck", tenant, len(list), applied, want)
		}
		time.Sleep(20 * time.Millisecond) // polling with a deadline
	}
}

// leavesNothingBehind asks the server's sessions, through the pooler, whether a role, a tenant or a lock outlasted its transaction.
func (r *rig) leavesNothingBehind(t *testing.T, through string) {
	t.Helper()
	config, err := pgx.ParseConfig(through)
	if err != nil {
		t.Fatal(err)
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	for range 8 {
		conn, err := pgx.ConnectConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.WithoutCancel(t.Context()))
		var role, tenant string
		err = conn.QueryRow(t.Context(), `select current_user, coalesce(current_setting('cutonce.tenant', true), '')`).Scan(&role, &tenant)
		if err != nil || role != "cutonce_test_serving" || tenant != "" {
			t.Errorf("a session is %q for %q, %v, want it as it was", role, tenant, err)
		}
	}
	var locks int
	r.scalar(&locks, `select count(*) from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`)
	if locks > 0 {
		t.Errorf("got %d advisory locks that outlast their transactions", locks)
	}
}

// TestThePoolerThatIsNamed: whoever says that nothing stands between, or that something does, is believed.
func TestThePoolerThatIsNamed(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for pooler, want := range map[store.Pooler]bool{store.PoolerTransaction: true, store.PoolerNone: false, store.PoolerAuto: false, "": false} {
		s, err := store.Open(t.Context(), store.Config{URL: serving(t, r.url), Pooler: pooler, MaxConns: 2})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Pooled(); got != want {
			t.Errorf("%q: got %t, want %t", pooler, got, want)
		}
		if _, err := s.Now(t.Context()); err != nil {
			t.Error(err)
		}
		s.Close()
	}
}
