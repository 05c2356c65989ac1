package store_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/preview"
	"github.com/cutonce/cutonce/store"
)

// The bodies of audit events mark the statements on the wire.
const (
	theClaim    = `,"digest":"`
	theRecord   = `,"detail":`
	theDecision = `"approve":true`
	thePrepare  = `"verdict":`
)

// proxied is a rig whose services reach Postgres through a proxy; the rig's own pool does not.
func proxied(t *testing.T, options ...func(*rig)) (*rig, proxy) {
	t.Helper()
	r := newRig(t, options...)
	p, url := newProxy(t, r.url)
	r.store = openStore(t, url)
	r.previews, r.approvals, r.commits = services(t, r, r.store)
	return r, p
}

func TestAClaimWhoseAcknowledgementIsLostIsConfirmedAndSentOnce(t *testing.T) {
	t.Parallel()
	r, wire := proxied(t)
	p := r.prepare("a", "new")
	fired := wire.arm(theClaim, afterItIsDone)
	c, err := r.apply(p)
	receive(t, fired)
	if err != nil || c.Status != commit.StatusApplied || r.target.total() != 1 {
		t.Errorf("got %s, %v, %d effects, want applied once", c.Status, err, r.target.total())
	}
	if c = r.status(p.ID); len(c.Attempts) != 1 {
		t.Errorf("got %d attempts, want 1", len(c.Attempts))
	}
}

func TestAClaimThatNeverReachedTheServerSendsNothing(t *testing.T) {
	t.Parallel()
	r, wire := proxied(t)
	p := r.prepare("a", "new")
	fired := wire.arm(theClaim, beforeTheServer)
	c, err := r.apply(p)
	receive(t, fired)
	wantCode(t, err, fault.TargetUnavailable)
	if c.Status != commit.StatusApproved || r.target.total() != 0 || !fault.From(err).Retryable {
		t.Errorf("got %s with %d effects, want approved with 0, to be tried again", c.Status, r.target.total())
	}
	if c, err = r.apply(p); err != nil || c.Status != commit.StatusApplied {
		t.Errorf("the next apply: got %s, %v, want applied", c.Status, err)
	}
}

// TestAClaimThatTheServerIsStillWorkingOn: the connection is cut while the claim waits for the row. The confirmation must not
// take "not yet" for "not at all".
func TestAClaimThatTheServerIsStillWorkingOn(t *testing.T) {
	t.Parallel()
	r, wire := proxied(t, func(r *rig) { r.clocks.LeaseFor = 10 * time.Second })
	p := r.prepare("a", "new")
	release := r.hold(p.ID)
	now := make(chan struct{})
	fired := wire.armUntil(theClaim, now)
	done := make(chan outcome, 1)
	go func() { c, err := r.apply(p); done <- outcome{err, c.Status} }()
	r.awaitBlocked(1)
	close(now)
	receive(t, fired)
	r.awaitBlocked(2) // the claim, and the confirmation behind it
	release()
	if got := receive(t, done); got.err != nil || got.status != commit.StatusApplied || r.target.total() != 1 {
		t.Errorf("got %s, %v, %d effects, want applied once", got.status, got.err, r.target.total())
	}
}

func TestADoubtThatNobodyCanSettleSendsNothing(t *testing.T) {
	t.Parallel()
	r, wire := proxied(t, hasty)
	p := r.prepare("a", "new")
	fired := wire.arm(theClaim, andThenAll)
	done := make(chan error, 1)
	go func() { _, err := r.apply(p); done <- err }()
	receive(t, fired)
	wantCode(t, receive(t, done), fault.TargetUnavailable)
	if r.target.total() != 0 {
		t.Errorf("got %d effects, want none on a doubt", r.target.total())
	}
	wire.rise()
	if c := r.status(p.ID); c.Status != commit.StatusUnknown {
		t.Errorf("got %s, want unknown: it is claimed, and its lease has lapsed", c.Status)
	}
	r.commits = r.throughNoProxy()
	r.sweepUntil(p.ID, commit.StatusNotApplied)
}

// throughNoProxy is the service of another replica, which reaches the database.
func (r *rig) throughNoProxy() *commit.Service {
	_, _, s := services(r.t, r, r.direct)
	return s
}

func TestAWarningDuringTheClaimIsADoubt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.exec(`
		create function warn() returns trigger language plpgsql as $$ begin raise warning 'canceling wait for synchronous replication'; return null; end $$;
		create constraint trigger warn after insert on attempts deferrable initially deferred for each row when (new.kind = 'send') execute function warn()`)
	p := r.prepare("a", "new")
	claim := r.claimOf(p)
	if err := r.store.ClaimApproved(t.Context(), claim); !errors.Is(err, commit.ErrInDoubt) {
		t.Errorf("got %v, want ErrInDoubt", err)
	}
	if err := r.store.ConfirmClaim(t.Context(), claim.Key, claim.Attempt); err != nil {
		t.Errorf("confirming: %v", err)
	}
	if err := r.store.ConfirmClaim(t.Context(), claim.Key, uuid.New()); !errors.Is(err, commit.ErrNotClaimed) {
		t.Errorf("confirming another attempt: got %v, want ErrNotClaimed", err)
	}
	r.awaitLapse(p.ID)
	if err := r.store.ConfirmClaim(t.Context(), claim.Key, claim.Attempt); !errors.Is(err, commit.ErrNotClaimed) {
		t.Errorf("confirming after the lease: got %v, want ErrNotClaimed", err)
	}
	q := r.prepare("b", "new")
	if c, err := r.apply(q); err != nil || c.Status != commit.StatusApplied {
		t.Errorf("got %s, %v, want the doubt confirmed and the change applied", c.Status, err)
	}
	// The warning was of one transaction: the same connection is trusted again.
	if n, err := r.store.MarkLapsed(t.Context(), 10); err != nil || n != 1 {
		t.Errorf("got %d, %v, want one lapse", n, err)
	}
}

func TestARecordWhoseAcknowledgementIsLostIsOneEvent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]cut{"acknowledgement lost": afterItIsDone, "never reached the server": beforeTheServer, "cut while it works": whileItWorks} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, wire := proxied(t)
			p := r.prepare("a", "new")
			fired := wire.arm(theRecord, c)
			got, err := r.apply(p)
			receive(t, fired)
			if err != nil || got.Status != commit.StatusApplied {
				t.Errorf("got %s, %v, want applied", got.Status, err)
			}
			if kinds := r.kinds(p.ID); countOf(kinds, "applied") != 1 || len(kinds) != 3 {
				t.Errorf("got events %v, want one applied", kinds)
			}
		})
	}
}

func TestADecisionWhoseAnswerIsLostIsTheSameDecision(t *testing.T) {
	t.Parallel()
	r, wire := proxied(t)
	p := r.pending("a")
	fired := wire.arm(theDecision, afterItIsDone)
	_, err := r.approve(p, "kim")
	receive(t, fired)
	if fault.CodeOf(err) != fault.Internal {
		t.Errorf("got %v, want an internal error: it is not known", err)
	}
	if got, err := r.approve(p, "kim"); err != nil || got.State != preview.Approved || len(got.Votes) != 1 {
		t.Errorf("again: got %s with %d votes, %v, want approved with 1", got.State, len(got.Votes), err)
	}
	if kinds := r.kinds(p.ID); countOf(kinds, "approved") != 1 {
		t.Errorf("got events %v, want one approval", kinds)
	}
}

func TestAPrepareWhoseAnswerIsLostIsTheSamePreview(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]string{"with a key": "k1", "without one": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, wire := proxied(t)
			fired := wire.arm(thePrepare, afterItIsDone)
			_, err := r.prepareAs(agent("bot"), key, "a", "new")
			receive(t, fired)
			if fault.CodeOf(err) != fault.Internal {
				t.Errorf("got %v, want an internal error", err)
			}
			if p, err := r.prepareAs(agent("bot"), key, "a", "new"); err != nil || !p.Replayed {
				t.Errorf("again: got replayed %v, %v, want the first one", p.Replayed, err)
			}
		})
	}
}

func TestADeadDatabaseIsAnErrorOnEveryPath(t *testing.T) {
	t.Parallel()
	r, wire := proxied(t)
	r.forged = true // nothing to verify without a database
	p := r.prepare("a", "new")
	claim := r.claimOf(p)
	wire.fall()
	ctx, bot := t.Context(), agent("bot")
	key := claim.Key
	for name, call := range map[string]func() error{
		"store.FindReplay": func() error { _, err := r.store.FindReplay(ctx, preview.ReplayQuery{Tenant: "acme"}); return err },
		"store.Create":     func() error { _, _, err := r.store.Create(ctx, preview.New{Preview: p}); return err },
		"store.Preview":    func() error { _, _, err := r.store.Preview(ctx, "acme", p.ID); return err },
		"store.Cancel": func() error {
			_, _, err := r.store.Cancel(ctx, preview.Move{Tenant: "acme", ID: p.ID, By: bot})
			return err
		},
		"store.RequestApproval": func() error {
			_, _, err := r.store.RequestApproval(ctx, preview.Move{Tenant: "acme", ID: p.ID, By: bot})
			return err
		},
		"store.RecordDecision": func() error {
			_, _, err := r.store.RecordDecision(ctx, approvals.RecordedDecision{ID: p.ID, Tenant: p.Tenant})
			return err
		},
		"store.Queue":          func() error { _, _, _, err := r.store.Queue(ctx, "acme", approvals.Page{}); return err },
		"store.Load":           func() error { _, _, err := r.store.Load(ctx, "acme", p.ID, false); return err },
		"store.Load in detail": func() error { _, _, err := r.store.Load(ctx, "acme", p.ID, true); return err },
		"store.ClaimApproved":  func() error { return r.store.ClaimApproved(ctx, claim) },
		"store.ConfirmClaim":   func() error { return r.store.ConfirmClaim(ctx, key, claim.Attempt) },
		"store.CheckLease":     func() error { _, err := r.store.CheckLease(ctx, key, claim.Attempt, "", 0); return err },
		"store.RecordResult": func() error {
			_, err := r.store.RecordResult(ctx, commit.Result{Key: key, Kind: commit.Send})
			return err
		},
		"store.SendBack":   func() error { _, err := r.store.SendBack(ctx, "acme", p.ID, people(), 0); return err },
		"store.HolderOf":   func() error { _, _, err := r.store.HolderOf(ctx, "acme", "x"); return err },
		"store.MarkLapsed": func() error { _, err := r.store.MarkLapsed(ctx, 1); return err },
		"store.NextProbes": func() error { _, err := r.store.NextProbes(ctx, 1); return err },
		"store.BeginProbe": func() error { _, err := r.store.BeginProbe(ctx, key, uuid.New(), commit.Lookup, 0, 0); return err },
		"store.Resolve": func() error {
			_, err := r.store.Resolve(ctx, commit.Resolution{Key: key, By: operator("ito")})
			return err
		},
		"store.Revealed": func() error {
			_, err := r.store.Revealed(ctx, "acme", p.ID, operator("ito"), []string{"text"})
			return err
		},
		"store.List":             func() error { _, _, err := r.store.List(ctx, commit.Filter{Tenant: "acme", Limit: 1}); return err },
		"store.ActivatePolicy":   func() error { return r.store.ActivatePolicy(ctx, "p2", "") },
		"store.Durability":       func() error { _, _, err := r.store.Durability(ctx); return err },
		"store.Backlog":          func() error { _, err := r.store.Backlog(ctx); return err },
		"store.Ping":             func() error { return r.store.Ping(ctx) },
		"store.Now":              func() error { _, err := r.store.Now(ctx); return err },
		"store.Open":             func() error { return openError(ctx, wire, r.url) },
		"preview.Prepare":        func() error { _, err := r.prepareAs(bot, "", "a", "new"); return err },
		"preview.Prepare by key": func() error { _, err := r.prepareAs(bot, "k", "a", "new"); return err },
		"preview.Cancel":         func() error { _, err := r.previews.Cancel(ctx, bot, p.ID, ""); return err },
		"approvals.Request":      func() error { _, err := r.approvals.Request(ctx, bot, p.ID, ""); return err },
		"approvals.Decide":       func() error { _, err := r.approve(p, "kim"); return err },
		"approvals.Queue":        func() error { _, _, _, err := r.approvals.Queue(ctx, person("kim"), approvals.Page{}); return err },
		"commit.Apply":           func() error { _, err := r.apply(p); return err },
		"commit.Status":          func() error { _, err := r.commits.Status(ctx, bot, p.ID, 0, false); return err },
		"commit.Why":             func() error { _, err := r.commits.Why(ctx, bot, p.ID); return err },
		"commit.List":            func() error { _, _, err := r.commits.List(ctx, bot, commit.Filter{}); return err },
		"commit.Probe":           func() error { _, err := r.commits.Probe(ctx, operator("ito"), p.ID); return err },
		"commit.Reveal":          func() error { _, err := r.commits.Reveal(ctx, operator("ito"), p.ID); return err },
		"commit.Resolve": func() error {
			_, err := r.commits.Resolve(ctx, commit.Resolution{Key: key, By: operator("ito")})
			return err
		},
		"commit.Sweep": func() error { return r.commits.Sweep(ctx) },
	} {
		err := call()
		if err == nil {
			t.Errorf("%s: got no error from a dead database", name)
			continue
		}
		f := fault.From(err)
		// A claim that was written to a connection before its end was noticed may have been taken: that is a doubt, and nothing is sent.
		doubt := name == "commit.Apply" && f.Code == fault.TargetUnavailable
		if !doubt && (f.Code != fault.Internal || f.Key != "fault.internal.passing") || f.Args != nil || f.Fields != nil || f.Data != nil || !f.Retryable {
			t.Errorf("%s: got %s (%s; %v, %v, %v), want internal, to be tried again, and nothing else", name, f.Code, f.Key, f.Args, f.Fields, f.Data)
		}
		if strings.Contains(err.Error(), "password") {
			t.Errorf("%s: the error holds more than it should: %v", name, err)
		}
	}
	if r.target.total() != 0 {
		t.Errorf("got %d effects, want none", r.target.total())
	}
}

func openError(ctx context.Context, wire proxy, _ string) error {
	s, err := store.Open(ctx, store.Config{URL: "postgres://cutonce:secret@" + wire.Addr() + "/x?sslmode=disable"})
	if err == nil {
		s.Close()
	}
	return err
}

// TestTheDatabaseDiesUnderASend: the outcome is recorded once it is back.
func TestTheDatabaseDiesUnderASend(t *testing.T) {
	t.Parallel()
	r, wire := proxied(t)
	begun, resume := r.target.stuck(receipt)
	p := r.prepare("a", "new")
	r.applyAsync(p)
	receive(t, begun)
	wire.fall()
	close(resume)
	wire.rise()
	c := r.awaitStatus(p.ID, commit.StatusApplied)
	if c.Executions[0].Evidence != commit.ByReceipt && c.Executions[0].Evidence != commit.ByLookup {
		t.Errorf("got evidence %s", c.Executions[0].Evidence)
	}
}

// TestADatabaseThatFallsBeforeTheLeaseIsReadSendsNothing: Execute has not begun, so nothing has left.
func TestADatabaseThatFallsBeforeTheLeaseIsReadSendsNothing(t *testing.T) {
	t.Parallel()
	r, wire := proxied(t, func(r *rig) { r.clocks.LeaseFor = 10 * time.Second })
	p := r.prepare("a", "new")
	r.target.reads(func(now connector.Reading) (connector.Reading, error) { wire.fall(); return now, nil })
	tried := make(chan struct{})
	once := sync.OnceFunc(func() { close(tried) })
	r.stop = func(point string) {
		if point == beforeRecord {
			once() // it is tried again until the database is back
		}
	}
	_, _, s := services(t, r, r.store)
	done := make(chan struct{})
	go func() { _, _ = s.Apply(t.Context(), agent("bot"), "text_change", p.ID, 0); close(done) }()
	receive(t, tried)
	receive(t, done)
	r.target.reads(nil)
	wire.rise()
	r.awaitStatus(p.ID, commit.StatusApproved)
	if r.target.total() != 0 {
		t.Errorf("got %d effects, want 0", r.target.total())
	}
	if c, err := r.throughNoProxyApply(p); err != nil || c.Status != commit.StatusApplied {
		t.Errorf("got %s, %v, want applied", c.Status, err)
	}
}

func (r *rig) throughNoProxyApply(p preview.Preview) (commit.Change, error) {
	r.stop = nil
	return r.throughNoProxy().Apply(r.t.Context(), agent("bot"), "text_change", p.ID, contentWait)
}
