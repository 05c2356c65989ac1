package store_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/preview"
)

// silent makes every effect without a reply, and every look-up without an answer until look is set.
func silent(r *rig) {
	r.target.execute = func(_ context.Context, _ connector.Plan, _ connector.Call, do func() error) (connector.Receipt, error) {
		if err := do(); err != nil {
			return connector.Receipt{}, err
		}
		return connector.Receipt{}, context.DeadlineExceeded
	}
	r.target.lookup = func(connector.Call) (connector.Finding, error) {
		return connector.Finding{}, context.DeadlineExceeded
	}
}

func (r *rig) canLook() {
	r.target.mu.Lock()
	defer r.target.mu.Unlock()
	r.target.lookup = nil
}

// settleable waits until "it did not happen" would be heard.
func (r *rig) settleable(id preview.ID) commit.Change {
	r.t.Helper()
	deadline := time.Now().Add(15 * time.Second)
	for {
		c := r.status(id)
		if len(c.Executions) == 1 && !c.Now.Before(c.Executions[0].SettleAt) {
			return c
		}
		if time.Now().After(deadline) {
			r.t.Fatal("the outcome does not get old enough to be settled")
		}
		time.Sleep(20 * time.Millisecond) // polling with a deadline
	}
}

func didNot(id preview.ID) commit.Resolution {
	return commit.Resolution{
		Key: commit.Key{Tenant: "acme", ID: id}, By: operator("ito"), Reason: "nothing in the log", Evidence: "target log, noon",
	}
}

// A mistaken "it did not happen" would let the change be made twice, so the target is asked once more.
func TestTheTargetIsAskedBeforeAnOperatorsWordCounts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	silent(r)
	p := r.prepare("a", "new")
	if c, err := r.apply(p); err != nil || c.Status != commit.StatusUnknown {
		t.Fatalf("got %s, %v, want unknown", c.Status, err)
	}
	r.settleable(p.ID)
	r.canLook()
	c, err := r.commits.Resolve(t.Context(), didNot(p.ID))
	wantCode(t, err, fault.Conflict)
	if c.Status != commit.StatusApplied || c.Executions[0].Evidence != commit.ByLookup {
		t.Errorf("got %s by %s, want applied by look-up", c.Status, c.Executions[0].Evidence)
	}
}

// Where the target could not be asked, the word counts; proof that turns up later contradicts it, openly.
func TestALaterLookContradictsAnOperatorOpenly(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	silent(r)
	p := r.prepare("a", "new")
	if _, err := r.apply(p); err != nil {
		t.Fatal(err)
	}
	r.settleable(p.ID)
	c, err := r.commits.Resolve(t.Context(), didNot(p.ID))
	if err != nil || c.Status != commit.StatusNotApplied {
		t.Fatalf("got %s, %v, want not_applied by the operator's word", c.Status, err)
	}
	if c, err = r.commits.Probe(t.Context(), operator("ito"), p.ID); err != nil || c.Status != commit.StatusNotApplied {
		t.Fatalf("a look that proves nothing: got %s, %v, want not_applied still", c.Status, err)
	}
	r.canLook()
	c, err = r.commits.Probe(t.Context(), operator("ito"), p.ID)
	if err != nil {
		t.Fatal(err)
	}
	e := c.Executions[0]
	if c.Status != commit.StatusApplied || !e.Contradicted || e.ResolvedBy == "" || e.Evidence != commit.ByLookup {
		t.Errorf("got %s (contradicted %t, resolved by %q, evidence %s), want applied, contradicted openly, both kept", c.Status,
			e.Contradicted, e.ResolvedBy, e.Evidence)
	}
}

// A drain ends waits for news, and lets an apply under way have its answer.
func TestADrainEndsWaitsAndNotSends(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	begun, goOn := make(chan struct{}), make(chan struct{})
	r.target.execute = func(_ context.Context, _ connector.Plan, _ connector.Call, do func() error) (connector.Receipt, error) {
		close(begun)
		<-goOn
		return connector.Receipt{}, do()
	}
	p := r.prepare("a", "new")
	type answer struct {
		c   commit.Change
		err error
	}
	applied, waited := make(chan answer, 1), make(chan answer, 1)
	go func() { c, err := r.apply(p); applied <- answer{c, err} }()
	<-begun
	go func() {
		c, err := r.commits.Status(t.Context(), agent("bot"), p.ID, commit.MaxWait, false)
		waited <- answer{c, err}
	}()
	r.commits.EndWaits()
	if got := <-waited; got.err != nil || got.c.Status != commit.StatusApplying {
		t.Errorf("a wait for news: got %s, %v, want applying", got.c.Status, got.err)
	}
	close(goOn)
	if got := <-applied; got.err != nil || got.c.Status != commit.StatusApplied {
		t.Errorf("the apply: got %s, %v, want applied", got.c.Status, got.err)
	}
}

// A read that shows what our own last change replaced says so, and when to come again.
func TestAStaleReadIsToldAsOne(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	before := r.target.now("a")
	if _, err := r.apply(r.prepare("a", "first")); err != nil {
		t.Fatal(err)
	}
	p := r.prepare("a", "second")
	r.target.mu.Lock()
	r.target.read = func(connector.Reading) (connector.Reading, error) { return before, nil }
	r.target.mu.Unlock()
	_, err := r.apply(p)
	f := fault.From(err)
	if f.Code != fault.TargetUnavailable || f.Key != "fault.target_unavailable.stale" || f.RetryAfter <= 0 {
		t.Errorf("got %s (%s) after %s, want target_unavailable, stale, with a time", f.Code, f.Key, f.RetryAfter)
	}
}

// What a look-up called not applied is looked at again, because an effect may come late.
func TestALateEffectIsFoundByItself(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.target.execute = func(context.Context, connector.Plan, connector.Call, func() error) (connector.Receipt, error) {
		return connector.Receipt{}, context.DeadlineExceeded
	}
	p := r.prepare("a", "new")
	if _, err := r.apply(p); err != nil {
		t.Fatal(err)
	}
	c := r.sweepUntil(p.ID, commit.StatusNotApplied)
	if next := c.Executions[0].NextProbeAt; !next.After(c.Now) {
		t.Fatalf("got no later look (%s at %s)", next, c.Now)
	}
	r.target.mu.Lock()
	r.target.effects[commit.IdempotencyKey(secret, "acme", p.ID, 0)]++ // the request arrived after all
	r.target.mu.Unlock()
	if _, err := r.pool.Exec(t.Context(), `update executions set next_probe_at = clock_timestamp() where preview_id = $1`, p.ID.UUID()); err != nil {
		t.Fatal(err)
	}
	if c = r.sweepUntil(p.ID, commit.StatusApplied); !c.Executions[0].Contradicted {
		t.Error("the contradiction is not marked")
	}
}

// One person known to two issuers cannot approve their own agent's change, nor fill two seats.
func TestFourEyesAcrossIssuers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.pending("a")
	elsewhere := person("Sato", "leads")
	elsewhere.Issuer = "https://people.example"
	_, err := r.approvals.Decide(t.Context(), elsewhere, p.ID, approvals.Decision{Approve: true, Digest: p.Digest})
	wantCode(t, err, fault.Forbidden)
	_, err = r.pool.Exec(t.Context(), `insert into decisions (preview_id, tenant_id, round, person, name, groups, approve, reason, digest,
		policy_version, decided_at) values ($1, 'acme', 1, 'https://people.example#sato', 'sato', '{}', true, '', $2, '', clock_timestamp())`,
		p.ID.UUID(), p.Digest[:])
	if err == nil {
		t.Error("Postgres let the requester decide under another issuer")
	}
}

// A target that does not answer its look-ups holds up its own, and nobody else's.
func TestOneSilentTargetDelaysNoOther(t *testing.T) {
	t.Parallel()
	other := newLedger()
	other.suffix = "_other"
	r := newRig(t, func(r *rig) { r.others = []connector.Connector{other} })
	silent(r)
	if _, err := r.apply(r.prepare("a", "new")); err != nil {
		t.Fatal(err)
	}
	asked, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	r.target.mu.Lock()
	r.target.lookup = func(connector.Call) (connector.Finding, error) {
		once.Do(func() { close(asked) })
		<-release
		return connector.Finding{}, context.DeadlineExceeded
	}
	r.target.mu.Unlock()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- commit.Reconciler{Service: r.commits, Every: 10 * time.Millisecond}.Run(ctx) }()
	<-asked // from here on, the first target's look-up hangs

	other.execute = func(_ context.Context, _ connector.Plan, _ connector.Call, do func() error) (connector.Receipt, error) {
		return connector.Receipt{}, errors.Join(do(), context.DeadlineExceeded)
	}
	p, err := r.previews.Prepare(t.Context(), agent("bot"), preview.Request{Action: other.action(), Input: input("b", "new")})
	if err != nil {
		t.Fatal(err)
	}
	c, err := r.commits.Apply(t.Context(), agent("bot"), other.action(), p.Preview.ID, 10*time.Second)
	for deadline := time.Now().Add(10 * time.Second); err == nil && c.Status == commit.StatusUnknown && time.Now().Before(deadline); {
		c, err = r.commits.Status(t.Context(), agent("bot"), p.Preview.ID, time.Second, false)
	}
	if err != nil || c.Status != commit.StatusApplied {
		t.Errorf("got %s, %v, want the other target's outcome found meanwhile", c.Status, err)
	}
	close(release)
	stop()
	if err := <-ended; err != nil {
		t.Errorf("the reconciler: %v", err)
	}
}
