package rollback_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/rollback"
	"github.com/cutonce/cutonce/examples/policies"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/pgtest"
	"github.com/cutonce/cutonce/internal/target"
	"github.com/cutonce/cutonce/migrations"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
	"github.com/cutonce/cutonce/store"
)

// core is the whole product without its doors: real Postgres, the simulated platform, the example policies.
type core struct {
	t         *testing.T
	deploys   *target.Deploys
	connector *rollback.Connector
	store     *store.Store
	previews  *preview.Service
	approvals *approvals.Service
	commits   *commit.Service
}

type deaf struct{}

func (deaf) Sent(string, connector.Class, time.Duration) {}
func (deaf) Settled(string, string, commit.Status)       {}

func newCore(t *testing.T) *core {
	t.Helper()
	d, server := startDeploys(t, true)
	c := &core{t: t, deploys: d, connector: connect(t, rollback.Config{BaseURL: server.URL, HonoursKeys: true, SettleFor: 100 * time.Millisecond, Sandbox: true})}
	registry := must(connector.NewRegistry(c.connector))(t)
	rules := must(policy.Load(policies.FS))(t)
	c.store = must(store.Open(t.Context(), store.Config{URL: pgtest.URL(t, pgtest.Migrated(migrations.FS, store.Migrate)), MaxConns: 8}))(t)
	t.Cleanup(c.store.Close)
	if err := c.store.ActivatePolicy(t.Context(), rules.Version(), "test"); err != nil {
		t.Fatal(err)
	}
	clocks := connector.Clocks{
		PreviewTTL: time.Minute, ApprovalFor: time.Minute, ApplyWindow: time.Minute,
		SendFor: time.Second, LeaseFor: 3 * time.Second, SettleFor: 100 * time.Millisecond,
	}
	log := slog.New(slog.DiscardHandler)
	c.previews = must(preview.NewService(preview.Deps{Store: c.store, Actions: registry, Policy: rules, Clocks: clocks, Log: log}))(t)
	c.approvals = approvals.NewService(approvals.Deps{Store: c.store, Actions: registry, Policy: rules, Clocks: clocks})
	c.commits = commit.NewService(commit.Deps{
		Store: c.store, Actions: registry, Recheck: c.approvals, PolicyVersion: rules.Version(), Secret: bytes.Repeat([]byte("s"), 32),
		Clocks: clocks, SendMargin: 50 * time.Millisecond, ProbeBase: 10 * time.Millisecond, Log: log, Observe: deaf{},
	})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := c.commits.Drain(ctx); err != nil {
			t.Errorf("drain: %v", err)
		}
	})
	return c
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// asks is an agent that acts for a person.
func asks(name string) actor.Actor {
	who := person(name)
	who.Scopes = []string{rollback.ScopeRead, rollback.ScopeRollback}
	return who
}

// manager is a person of release-managers, signed in.
func manager(name string) actor.Actor {
	return actor.Actor{
		Tenant: "t1", Kind: actor.Human, Issuer: "https://issuer.example", Subject: name, Groups: []string{"release-managers"},
		Roles: []string{actor.RoleApprover}, Scopes: []string{rollback.ScopeRead},
	}
}

func (c *core) prepare(who actor.Actor, input map[string]any, reverts *preview.ID) (preview.Preview, error) {
	c.t.Helper()
	raw := must(json.Marshal(input))(c.t)
	p, err := c.previews.Prepare(c.t.Context(), who, preview.Request{Action: rollback.ActionName, Input: raw, Reverts: reverts})
	return p.Preview, err
}

func (c *core) apply(who actor.Actor, id preview.ID) (commit.Status, error) {
	c.t.Helper()
	change, err := c.commits.Apply(c.t.Context(), who, rollback.ActionName, id, 10*time.Second)
	return change.Status, err
}

func (c *core) wantRunning(id string, effects int) {
	c.t.Helper()
	now, _ := c.deploys.Active(target.ServiceCheckoutAPI, target.EnvProduction)
	if now.Activates != id && now.ID != id {
		c.t.Errorf("%s runs (build %s), want %s", now.ID, now.Activates, id)
	}
	if n := c.deploys.Counters().Total; n.Effects != effects || n.Received != effects {
		c.t.Errorf("the platform counted %+v, want %d", n, effects)
	}
}

// TestARollbackFromPreviewToUndo: refused for whoever may not, approved by one manager, refused while the permission is
// withdrawn, applied once, and undone by a new preview through the same queue.
func TestARollbackFromPreviewToUndo(t *testing.T) {
	t.Parallel()
	c := newCore(t)
	if _, err := c.prepare(asks(target.UserOno), with(nil), nil); fault.CodeOf(err) != fault.Forbidden || fault.From(err).Args["reason"] != "not_granted" {
		t.Errorf("somebody who may roll back in staging only: got %v, want forbidden (not_granted)", err)
	}
	readOnly := asks(target.UserMori)
	readOnly.Scopes = []string{rollback.ScopeRead}
	if _, err := c.prepare(readOnly, with(nil), nil); fault.CodeOf(err) != fault.InsufficientScope {
		t.Errorf("without the scope: got %v, want insufficient_scope", err)
	}
	p, err := c.prepare(asks(target.UserMori), with(nil), nil)
	if err != nil || p.State != preview.NeedsApproval || p.Ruling.Rule != "rollback-in-production" {
		t.Fatalf("got %s by %s, %v, want needs_approval", p.State, p.Ruling.Rule, err)
	}
	c.agree(p, target.UserHayashi)

	permission := target.Permission{User: target.UserMori, Verb: "rollback", Resource: "checkout-api/production"}
	c.deploys.SetPermission(permission)
	if status, err := c.apply(asks(target.UserMori), p.ID); fault.CodeOf(err) != fault.Forbidden || fault.From(err).Args["reason"] != "withdrawn" || status != commit.StatusApproved {
		t.Errorf("after the permission was withdrawn: got %s, %v, want approved and forbidden", status, err)
	}
	c.wantRunning(target.CheckoutAPICurrent, 0)

	permission.Allowed = true
	c.deploys.SetPermission(permission)
	for range 2 {
		if status, err := c.apply(asks(target.UserMori), p.ID); err != nil || status != commit.StatusApplied {
			t.Fatalf("got %s, %v, want applied", status, err)
		}
		c.wantRunning(target.CheckoutAPIPrevious, 1)
	}
	if e := c.deploys.Entries()[0]; e.OnBehalfOf != target.UserMori || e.ApprovedBy != target.UserHayashi {
		t.Errorf("the platform's log names %q, approved by %q", e.OnBehalfOf, e.ApprovedBy)
	}

	undo := must(c.connector.Reverse(rollback.ActionName, p.Plan))(t)
	back, err := c.prepare(asks(target.UserMori), undo, &p.ID)
	if err != nil || back.State != preview.NeedsApproval || back.Reverts != p.ID.String() {
		t.Fatalf("the undo: got %s, reverts %q, %v", back.State, back.Reverts, err)
	}
	c.agree(back, target.UserHayashi)
	if status, err := c.apply(asks(target.UserMori), back.ID); err != nil || status != commit.StatusApplied {
		t.Fatalf("the undo: got %s, %v, want applied", status, err)
	}
	c.wantRunning(target.CheckoutAPICurrent, 2)
}

// agree puts a change into the queue and lets people approve it, each of whom must be needed.
func (c *core) agree(p preview.Preview, people ...string) {
	c.t.Helper()
	if _, err := c.approvals.Request(c.t.Context(), asks(target.UserMori), p.ID, "please"); err != nil {
		c.t.Fatal(err)
	}
	own := manager(target.UserMori)
	if _, err := c.approvals.Decide(c.t.Context(), own, p.ID, approvals.Decision{Approve: true, Digest: p.Digest}); fault.CodeOf(err) != fault.Forbidden {
		c.t.Errorf("the requester approves their own change: got %v, want forbidden", err)
	}
	for i, name := range people {
		got, err := c.approvals.Decide(c.t.Context(), manager(name), p.ID, approvals.Decision{Approve: true, Digest: p.Digest})
		want := preview.Pending
		if i == len(people)-1 {
			want = preview.Approved
		}
		if err != nil || got.State != want {
			c.t.Fatalf("after %s approved: got %s, %v, want %s", name, got.State, err, want)
		}
	}
}

// TestAMigrationNeedsTwo: one manager is not enough, and the same one twice is still one.
func TestAMigrationNeedsTwo(t *testing.T) {
	t.Parallel()
	c := newCore(t)
	p, err := c.prepare(asks(target.UserMori), with(connector.Input{"to_deployment_id": target.CheckoutAPIOldest}), nil)
	if err != nil || p.Ruling.Rule != "rollback-over-migration" {
		t.Fatalf("got %s, %v", p.Ruling.Rule, err)
	}
	c.agree(p, target.UserHayashi, "yamada@platform.example")
	if status, err := c.apply(asks(target.UserMori), p.ID); err != nil || status != commit.StatusApplied {
		t.Errorf("got %s, %v, want applied", status, err)
	}
	c.wantRunning(target.CheckoutAPIOldest, 1)
}

// TestSomeoneDeploysBetweenPreviewAndApply: the rollback is not sent over what nobody has seen.
func TestSomeoneDeploysBetweenPreviewAndApply(t *testing.T) {
	t.Parallel()
	c := newCore(t)
	staging := with(connector.Input{
		"environment": target.EnvStaging, "to_deployment_id": target.CheckoutAPIStagingPrevious, "expect_current_deployment_id": target.CheckoutAPIStagingCurrent,
	})
	p, err := c.prepare(asks(target.UserOno), staging, nil)
	if err != nil || p.State != preview.Approved {
		t.Fatalf("staging: got %s, %v, want approved by policy", p.State, err)
	}
	made := deploy(t, c.deploys, target.NewDeployment{Service: target.ServiceCheckoutAPI, Environment: target.EnvStaging})
	change, err := c.commits.Apply(t.Context(), asks(target.UserOno), rollback.ActionName, p.ID, 10*time.Second)
	if err != nil || change.Status != commit.StatusNotApplied {
		t.Fatalf("got %s, %v, want not_applied", change.Status, err)
	}
	if now, _ := c.deploys.Active(target.ServiceCheckoutAPI, target.EnvStaging); now.ID != made.ID || c.deploys.Counters().Total.Received != 0 {
		t.Errorf("%s runs, and the platform received %d changes, want %s and none", now.ID, c.deploys.Counters().Total.Received, made.ID)
	}
}

// TestALostReplyIsFoundByItsKey: unknown at first, and settled by looking.
func TestALostReplyIsFoundByItsKey(t *testing.T) {
	t.Parallel()
	c := newCore(t)
	staging := with(connector.Input{
		"environment": target.EnvStaging, "to_deployment_id": target.CheckoutAPIStagingPrevious, "expect_current_deployment_id": target.CheckoutAPIStagingCurrent,
	})
	p, err := c.prepare(asks(target.UserOno), staging, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.deploys.AddFault(target.Once(target.OpChange, "checkout-api/staging", target.Step{Action: target.DropAfter})); err != nil {
		t.Fatal(err)
	}
	if status, err := c.apply(asks(target.UserOno), p.ID); err != nil || status != commit.StatusUnknown {
		t.Fatalf("got %s, %v, want unknown", status, err)
	}
	deadline, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for tick := time.NewTicker(50 * time.Millisecond); ; {
		if err := c.commits.Sweep(deadline); err != nil {
			t.Fatal(err)
		}
		change, err := c.commits.Status(deadline, asks(target.UserOno), p.ID, 0, false)
		if err != nil {
			t.Fatal(err)
		}
		if change.Status == commit.StatusApplied {
			break
		}
		<-tick.C
	}
	if n := c.deploys.Counters().Total; n.Effects != 1 || n.Received != 1 {
		t.Errorf("the platform counted %+v, want one", n)
	}
}
