package store_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
)

// stuck makes the next send wait at the target: begun tells that it got there, resume lets it go on. It ignores its deadline,
// as a connector might.
func (l *ledger) stuck(after func(do func() error) (connector.Receipt, error)) (begun chan struct{}, resume chan struct{}) {
	begun, resume = make(chan struct{}), make(chan struct{})
	var once sync.Once
	l.script(func(_ context.Context, _ connector.Plan, _ connector.Call, do func() error) (connector.Receipt, error) {
		once.Do(func() { close(begun) })
		<-resume
		return after(do)
	})
	return begun, resume
}

func receipt(do func() error) (connector.Receipt, error) {
	if err := do(); err != nil {
		return connector.Receipt{}, err
	}
	return connector.Receipt{Evidence: map[string]any{"said": "done at last"}}, nil
}

// applyAsync applies without waiting for the outcome.
func (r *rig) applyAsync(p preview.Preview) {
	r.t.Helper()
	c, err := r.commits.Apply(r.t.Context(), agent("bot"), "text_change", p.ID, 0)
	if err != nil || c.Status != commit.StatusApplying {
		r.t.Fatalf("got %s, %v, want applying", c.Status, err)
	}
}

// awaitStatus polls the public status, without any sweep.
func (r *rig) awaitStatus(id preview.ID, want commit.Status) commit.Change {
	r.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		c := r.status(id)
		if c.Status == want {
			return c
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("got %s, want %s", c.Status, want)
		}
		time.Sleep(5 * time.Millisecond) // polling with a deadline
	}
}

func TestALapsedLeaseReadsAsUnknownWithoutASweep(t *testing.T) {
	t.Parallel()
	r := newRig(t, unhurried)
	begun, resume := r.target.stuck(receipt)
	p := r.prepare("a", "new")
	r.applyAsync(p)
	receive(t, begun)
	r.endLease(p.ID)
	c := r.status(p.ID)
	if c.Status != commit.StatusUnknown || c.Executions[0].State != commit.Applying {
		t.Errorf("got %s with the row still %s, want unknown, applying", c.Status, c.Executions[0].State)
	}
	again, err := r.apply(p)
	if err != nil || again.Status != commit.StatusUnknown {
		t.Errorf("applying again: got %s, %v, want unknown", again.Status, err)
	}
	close(resume)
	c = r.awaitStatus(p.ID, commit.StatusApplied) // the late receipt settles it
	if c.Executions[0].Evidence != commit.ByReceipt || c.Executions[0].Contradicted {
		t.Errorf("got evidence %s, contradicted %v, want a receipt and no contradiction", c.Executions[0].Evidence, c.Executions[0].Contradicted)
	}
}

func TestALateReceiptSettlesWhatWasMarkedUnknown(t *testing.T) {
	t.Parallel()
	r := newRig(t, unhurried)
	r.target.looks(func(connector.Call) (connector.Finding, error) {
		return connector.Finding{Found: connector.EffectUnsure}, nil
	})
	begun, resume := r.target.stuck(receipt)
	p := r.prepare("a", "new")
	r.applyAsync(p)
	receive(t, begun)
	r.endLease(p.ID)
	r.sweepUntil(p.ID, commit.StatusUnknown) // marked, and looked up: the send is no longer current
	if err := r.commits.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	close(resume)
	c := r.awaitStatus(p.ID, commit.StatusApplied)
	if kinds := r.kinds(p.ID); countOf(kinds, "lease_lapsed") != 1 || countOf(kinds, "applied") != 1 || c.Executions[0].Contradicted {
		t.Errorf("got events %v, contradicted %v, want one lapse and one applied", kinds, c.Executions[0].Contradicted)
	}
}

func TestASenderPausedPastItsLeaseDoesNotSend(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name            string
		probed, looking bool
	}{
		{"nobody has looked", false, false},
		{"another worker has looked", true, false},
		{"another worker is looking", false, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, unhurried)
			reading, resume := make(chan struct{}), make(chan struct{})
			r.target.reads(func(now connector.Reading) (connector.Reading, error) {
				close(reading)
				<-resume
				return now, nil
			})
			r.target.looks(func(connector.Call) (connector.Finding, error) {
				return connector.Finding{Found: connector.EffectUnsure}, nil
			})
			p := r.prepare("a", "new")
			done := make(chan outcome, 1)
			go func() { c, err := r.apply(p); done <- outcome{err, c.Status} }()
			receive(t, reading)
			r.endLease(p.ID)
			if tc.probed {
				_, _, other := services(t, r, r.store)
				if err := other.Sweep(t.Context()); err != nil {
					t.Fatal(err)
				}
				if c := r.status(p.ID); len(c.Attempts) != 2 || c.Status != commit.StatusUnknown {
					t.Fatalf("got %s with %d attempts, want unknown with a look-up", c.Status, len(c.Attempts))
				}
			}
			if tc.looking {
				if _, err := r.store.MarkLapsed(t.Context(), 10); err != nil {
					t.Fatal(err)
				}
				key := commit.Key{Tenant: "acme", ID: p.ID}
				if ok, err := r.store.BeginProbe(t.Context(), key, uuid.New(), commit.Lookup, time.Minute, 0); !ok || err != nil {
					t.Fatalf("got %v, %v, want a look-up begun", ok, err)
				}
			}
			close(resume)
			got := receive(t, done)
			c := r.status(p.ID)
			if got.err != nil || got.status != commit.StatusNotApplied || c.Executions[0].Reason != commit.NeverLeft || r.target.total() != 0 {
				t.Errorf("got %s, %v (%s) with %d effects, want not_applied, never_left, 0", got.status, got.err, c.Executions[0].Reason, r.target.total())
			}
		})
	}
}

func TestALateProofContradictsOpenly(t *testing.T) {
	t.Parallel()
	for _, by := range []commit.Evidence{commit.ByLookup, commit.ByStatement} {
		t.Run(string(by), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, unhurried)
			found := connector.EffectAbsent
			if by == commit.ByStatement {
				found = connector.EffectUnsure
			}
			r.target.looks(func(connector.Call) (connector.Finding, error) {
				return connector.Finding{Found: found, Evidence: map[string]any{"page": "empty"}}, nil
			})
			begun, resume := r.target.stuck(receipt)
			p := r.prepare("a", "new")
			r.applyAsync(p)
			receive(t, begun)
			r.endLease(p.ID)
			if by == commit.ByLookup {
				r.settleNow(p.ID)
				r.sweepUntil(p.ID, commit.StatusNotApplied)
			} else {
				r.settleNow(p.ID)
				c, err := r.commits.Resolve(t.Context(), commit.Resolution{
					Key: commit.Key{ID: p.ID}, By: operator("ito"), Reason: "not in the log", Evidence: "target log"})
				if err != nil || c.Status != commit.StatusNotApplied {
					t.Fatalf("got %s, %v, want not_applied", c.Status, err)
				}
			}
			close(resume)
			c := r.awaitStatus(p.ID, commit.StatusApplied)
			e := c.Executions[0]
			if !e.Contradicted || e.Evidence != commit.ByReceipt || e.FinishedAt.IsZero() {
				t.Errorf("got contradicted %v by %s, want an open contradiction by a receipt", e.Contradicted, e.Evidence)
			}
			if kinds := r.kinds(p.ID); kinds[len(kinds)-1] != "contradicted" {
				t.Errorf("got events %v, want the contradiction last", kinds)
			}
			wantBothKept(t, c, by)
			backlog, err := r.store.Backlog(t.Context())
			if err != nil || backlog.Contradictions != 1 {
				t.Errorf("got %d contradictions for operators, %v, want 1", backlog.Contradictions, err)
			}
		})
	}
}

func wantBothKept(t *testing.T, c commit.Change, by commit.Evidence) {
	t.Helper()
	results := map[string]bool{}
	for _, a := range c.Attempts {
		results[a.Result] = true
	}
	if !results["applied"] {
		t.Errorf("got results %v, want the receipt kept", results)
	}
	if by == commit.ByLookup && !results["absent"] {
		t.Errorf("got results %v, want the look-up kept", results)
	}
	if e := c.Executions[0]; by == commit.ByStatement && (e.ResolvedBy != "ito" || e.ResolvedWhy == "" || e.Detail["statement"] == nil) {
		t.Errorf("got %q, %q, %v, want the operator's word kept", e.ResolvedBy, e.ResolvedWhy, e.Detail)
	}
}

func TestALateRefusalOfAnOldAttemptChangesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, unhurried)
	r.target.looks(func(connector.Call) (connector.Finding, error) {
		return connector.Finding{Found: connector.EffectUnsure}, nil
	})
	begun, resume := r.target.stuck(func(func() error) (connector.Receipt, error) {
		return connector.Receipt{}, connector.Rejected(422, "no")
	})
	p := r.prepare("a", "new")
	r.applyAsync(p)
	receive(t, begun)
	r.endLease(p.ID)
	if err := r.commits.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := len(r.kinds(p.ID))
	close(resume)
	r.await(`select coalesce(result, '') = 'refused' from attempts where preview_id = $1 and kind = 'send'`, p.ID.UUID())
	c := r.status(p.ID)
	if c.Status != commit.StatusUnknown || len(r.kinds(p.ID)) != before {
		t.Errorf("got %s with events %v, want unknown and no new event", c.Status, r.kinds(p.ID))
	}
}

func TestRecordingTwiceIsOneEvent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.prepare("a", "new")
	claim := r.claimOf(p)
	if err := r.store.ClaimApproved(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	refused := commit.Result{Key: claim.Key, Attempt: claim.Attempt, Kind: commit.Send, Class: connector.ClassRefused, Answered: true, Reason: "no"}
	for range 3 {
		if _, err := r.store.RecordResult(t.Context(), refused); err != nil {
			t.Fatal(err)
		}
	}
	// Another result of the same attempt comes too late as well.
	unlike := refused
	unlike.Class = connector.ClassDrifted
	if _, err := r.store.RecordResult(t.Context(), unlike); err != nil {
		t.Fatal(err)
	}
	if kinds := r.kinds(p.ID); countOf(kinds, "not_applied") != 1 || len(kinds) != 3 {
		t.Errorf("got events %v, want one not_applied", kinds)
	}
	if e := r.status(p.ID).Executions[0]; e.Reason != commit.Refused || e.Detail["reason"] != "no" {
		t.Errorf("got %s (%v), want refused (no)", e.Reason, e.Detail)
	}
}

func TestATargetThatRefusesByItsPrecondition(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.prepare("a", "new")
	r.target.reads(func(now connector.Reading) (connector.Reading, error) {
		r.target.move("a", "between the read and the send")
		return now, nil
	})
	c, err := r.apply(p)
	if err != nil || c.Status != commit.StatusNotApplied || c.Executions[0].Reason != commit.Drifted || c.Executions[0].Evidence != commit.ByReceipt {
		t.Errorf("got %s (%s by %s), %v, want not_applied, drifted by the target's own answer", c.Status, c.Executions[0].Reason, c.Executions[0].Evidence, err)
	}
}

// TestAStaleReadIsTriedAgain: the target still shows the version that our own last change replaced.
func TestAStaleReadIsTriedAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(r *rig) { r.clocks.SettleFor = time.Minute })
	first := r.prepare("a", "one")
	stale := r.target.now("a")
	if c, err := r.apply(first); err != nil || c.Status != commit.StatusApplied {
		t.Fatalf("got %s, %v", c.Status, err)
	}
	second := r.prepare("a", "two")
	r.target.reads(func(connector.Reading) (connector.Reading, error) { return stale, nil })
	c, err := r.apply(second)
	wantCode(t, err, fault.TargetUnavailable)
	if c.Status != commit.StatusApproved || !fault.From(err).Retryable {
		t.Errorf("got %s, retryable %v, want approved and to be tried again", c.Status, fault.From(err).Retryable)
	}
	r.target.reads(nil)
	if c, err := r.apply(second); err != nil || c.Status != commit.StatusApplied {
		t.Errorf("got %s, %v, want applied", c.Status, err)
	}
}

func TestALeaseTooShortToSendIn(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(r *rig) { r.clocks.LeaseFor, r.clocks.SendFor = 500*time.Millisecond, 500*time.Millisecond })
	p := r.prepare("a", "new")
	c, err := r.apply(p)
	if c.Status == commit.StatusApproved { // else the lease had lapsed before, on a busy machine: never left
		wantCode(t, err, fault.TargetUnavailable)
	}
	if c.Status == commit.StatusApplied || r.target.total() != 0 {
		t.Errorf("got %s with %d effects, want nothing sent", c.Status, r.target.total())
	}
}

func TestAConnectorThatPanics(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p, q := r.prepare("a", "new"), r.prepare("b", "new")
	r.target.reads(func(connector.Reading) (connector.Reading, error) { panic("in Read") })
	c, err := r.apply(p)
	wantCode(t, err, fault.TargetUnavailable)
	if c.Status != commit.StatusApproved {
		t.Errorf("in Read: got %s, want approved", c.Status)
	}
	r.target.reads(nil)
	r.target.script(func(_ context.Context, _ connector.Plan, _ connector.Call, do func() error) (connector.Receipt, error) {
		_ = do()
		panic("in Execute")
	})
	if c, err = r.apply(q); err != nil || c.Status != commit.StatusUnknown {
		t.Errorf("in Execute: got %s, %v, want unknown", c.Status, err)
	}
	r.target.looks(func(connector.Call) (connector.Finding, error) { panic("in Lookup") })
	if err := r.commits.Sweep(t.Context()); err != nil {
		t.Errorf("in Lookup: %v", err)
	}
	if c := r.status(q.ID); c.Status != commit.StatusUnknown || len(c.Attempts) != 2 {
		t.Errorf("in Lookup: got %s with %d attempts, want unknown with 2", c.Status, len(c.Attempts))
	}
	r.target.looks(nil)
	r.sweepUntil(q.ID, commit.StatusApplied)
}

func TestACallerWhoLeavesCancelsNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	seen := make(chan error, 1)
	begun, resume := make(chan struct{}), make(chan struct{})
	r.target.script(func(ctx context.Context, _ connector.Plan, _ connector.Call, do func() error) (connector.Receipt, error) {
		close(begun)
		<-resume
		seen <- ctx.Err()
		return receipt(do)
	})
	p := r.prepare("a", "new")
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := r.commits.Apply(ctx, agent("bot"), "text_change", p.ID, contentWait)
		left <- err
	}()
	receive(t, begun)
	leave()
	if err := receive(t, left); err != nil {
		t.Errorf("the caller who left was told %v", err)
	}
	close(resume)
	if err := receive(t, seen); err != nil {
		t.Errorf("the send's context was cut: %v", err)
	}
	r.awaitStatus(p.ID, commit.StatusApplied)
}

func TestACallerWhoLeavesDuringTheClaimCancelsNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.prepare("a", "new")
	release := r.hold(p.ID)
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := r.commits.Apply(ctx, agent("bot"), "text_change", p.ID, contentWait)
		left <- err
	}()
	r.awaitBlocked(1)
	leave()
	release()
	receive(t, left)
	r.awaitStatus(p.ID, commit.StatusApplied)
}

func TestDrainWaitsForTheSendAndItsRecord(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	begun, resume := r.target.stuck(receipt)
	p := r.prepare("a", "new")
	r.applyAsync(p)
	receive(t, begun)
	drained := make(chan error, 1)
	go func() { drained <- r.commits.Drain(context.Background()) }()
	select {
	case err := <-drained:
		t.Fatalf("drained (%v) while a send was under way", err)
	default:
	}
	close(resume)
	if err := receive(t, drained); err != nil {
		t.Error(err)
	}
	if got := r.status(p.ID).Status; got != commit.StatusApplied {
		t.Errorf("got %s after the drain, want applied", got)
	}
}

func TestADrainThatRunsOutOfTimeCutsTheSend(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	begun := make(chan struct{})
	r.target.script(func(ctx context.Context, _ connector.Plan, _ connector.Call, _ func() error) (connector.Receipt, error) {
		close(begun)
		<-ctx.Done()
		return connector.Receipt{}, ctx.Err()
	})
	p := r.prepare("a", "new")
	r.applyAsync(p)
	receive(t, begun)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.commits.Drain(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the drain's own end", err)
	}
	r.awaitStatus(p.ID, commit.StatusUnknown)
}

// TestAfterTheTimeToSendNothingIsSent gives a send no time at all: by the answer to the last look it is over, as it is for a process
// that was paused in between. The target would take a late send, and ignores its context.
func TestAfterTheTimeToSendNothingIsSent(t *testing.T) {
	t.Parallel()
	r := newRig(t, unhurried, func(r *rig) { r.clocks.SendFor = time.Nanosecond })
	p := r.prepare("a", "new")
	c, err := r.apply(p)
	wantCode(t, err, fault.TargetUnavailable)
	if f := fault.From(err); c.Status != commit.StatusApproved || f.Key != "fault.target_unavailable.lease" || r.target.total() != 0 {
		t.Errorf("got %s (%s) with %d effects, want approved, too late to send, and nothing sent", c.Status, f.Key, r.target.total())
	}
}

// TestEvidenceNeverKeepsAnOutcomeFromBeingRecorded gives what a JSON column refuses, or what is no JSON at all.
func TestEvidenceNeverKeepsAnOutcomeFromBeingRecorded(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, evidence := range map[string]map[string]any{
		"NUL": {"said": "a\x00b", `back\u0000slash`: `\u0000`}, "not UTF-8": {"said": "a\xffb"}, "no number": {"took": math.NaN()},
		"no value": {"f": func() {}}, "float": {"took": 0.1}, "nil": nil,
	} {
		r.target.script(func(_ context.Context, _ connector.Plan, _ connector.Call, do func() error) (connector.Receipt, error) {
			return connector.Receipt{Evidence: evidence}, do()
		})
		p := r.prepare(name, "new")
		if c, err := r.apply(p); err != nil || c.Status != commit.StatusApplied {
			t.Errorf("%s: got %s, %v, want applied", name, c.Status, err)
		}
	}
}

// TestANeverLeftSendKeepsItsApproval walks the longest life: approved by a person, never left, vetoed or applied after all.
func TestANeverLeftSendKeepsItsApproval(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.pending("a", policy.Seats{AnyOf: []string{"leads"}, Count: 1})
	if _, err := r.approve(p, "kim"); err != nil {
		t.Fatal(err)
	}
	r.target.script(func(context.Context, connector.Plan, connector.Call, func() error) (connector.Receipt, error) {
		return connector.Receipt{}, connector.NotSent(errors.New("refused"))
	})
	for range 3 {
		c, err := r.apply(p)
		wantCode(t, err, fault.TargetUnavailable)
		if c.Status != commit.StatusApproved {
			t.Fatalf("got %s, want approved", c.Status)
		}
	}
	var keys sync.Map
	r.target.script(func(_ context.Context, _ connector.Plan, call connector.Call, do func() error) (connector.Receipt, error) {
		keys.Store(call.Key, call)
		return receipt(do)
	})
	c, err := r.apply(p)
	if err != nil || c.Status != commit.StatusApplied {
		t.Fatalf("got %s, %v, want applied", c.Status, err)
	}
	said, ok := keys.Load(commit.IdempotencyKey(secret, "acme", p.ID, 0))
	if call, _ := said.(connector.Call); !ok || call.OnBehalfOf != "sato" || call.Agent != "bot" || len(call.ApprovedBy) != 1 {
		t.Errorf("got call %+v, want the constant key, the human, the agent and the approver", said)
	}
	if c = r.status(p.ID); len(c.Attempts) != 4 || len(c.Executions) != 1 {
		t.Errorf("got %d attempts of %d executions, want 4 of 1", len(c.Attempts), len(c.Executions))
	}
	q := r.pending("b")
	if _, err := r.approve(q, "kim"); err != nil {
		t.Fatal(err)
	}
	r.target.script(func(context.Context, connector.Plan, connector.Call, func() error) (connector.Receipt, error) {
		return connector.Receipt{}, connector.NotSent(errors.New("refused"))
	})
	if _, err := r.apply(q); err == nil {
		t.Fatal("want target_unavailable")
	}
	if got, err := r.reject(q, "lee"); err != nil || got.State != preview.Rejected {
		t.Errorf("a veto after a send that never left: got %s, %v, want rejected", got.State, err)
	}
}

func TestAbsentIsNoProofBeforeTheSettleTimeWhoeverSaysSo(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(r *rig) { r.clocks.SettleFor = time.Minute })
	p := r.unknown("a")
	key, attempt := commit.Key{Tenant: "acme", ID: p.ID}, uuid.New()
	if ok, err := r.store.BeginProbe(t.Context(), key, attempt, commit.Lookup, time.Minute, 0); !ok || err != nil {
		t.Fatalf("got %v, %v, want a look-up begun", ok, err)
	}
	absent := commit.Result{Key: key, Attempt: attempt, Kind: commit.Lookup, Found: connector.EffectAbsent}
	if _, err := r.store.RecordResult(t.Context(), absent); err != nil {
		t.Fatal(err)
	}
	if got := r.status(p.ID).Status; got != commit.StatusUnknown {
		t.Errorf("got %s, want unknown", got)
	}
}

func TestOneProbeAtATime(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.unknown("a")
	key := commit.Key{Tenant: "acme", ID: p.ID}
	begin := func() bool {
		ok, err := r.store.BeginProbe(t.Context(), key, uuid.New(), commit.Lookup, time.Minute, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	if !begin() {
		t.Fatal("the first probe did not begin")
	}
	if begin() {
		t.Error("a second probe began beside the first")
	}
	if keys, err := r.store.NextProbes(t.Context(), 10); err != nil || len(keys) != 0 {
		t.Errorf("got %v, %v, want no probe due", keys, err)
	}
	var settle bool
	r.exec(`update executions set probe_until = clock_timestamp() where preview_id = $1`, p.ID.UUID())
	if ok, err := r.store.BeginProbe(t.Context(), key, uuid.New(), commit.Replay, time.Minute, time.Hour); !ok || err != nil {
		t.Fatalf("got %v, %v, want a replay begun", ok, err)
	}
	r.scalar(&settle, `select settle_at > clock_timestamp() + interval '1 hour' from executions where preview_id = $1`, p.ID.UUID())
	if !settle {
		t.Error("a replay did not put off the moment when absent proves something")
	}
	_, err := r.commits.Resolve(t.Context(), commit.Resolution{Key: key, By: operator("ito"), Reason: "not in the log", Evidence: "target log"})
	wantCode(t, err, fault.Conflict)
}
