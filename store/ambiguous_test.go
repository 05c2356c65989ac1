package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/wire"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
)

// param is how a short text argument stands on the wire: the text of a statement never looks like it.
func param(text string) string { return string([]byte{0, 0, 0, byte(len(text))}) + text }

// ambiguous is one transaction whose commit nobody hears of.
type ambiguous struct {
	name  string
	setup func(r *rig, id string) preview.Preview
	// marker names the transaction on the wire; point is before it, where the service makes another before it.
	marker, point string
	act           func(*rig, preview.Preview) error
	// settles is set where the service itself asks again: act must then end as if nothing had been lost.
	settles bool
	// again is what the caller does after an answer that never came: the same call, if nil.
	again func(*rig, preview.Preview) error
	ends  commit.Status
	// event must be on record exactly once.
	event string
}

func transactions() []ambiguous {
	two := policy.Seats{AnyOf: []string{"leads"}, Count: 2}
	applies := func(r *rig, p preview.Preview) error { _, err := r.apply(p); return err }
	return []ambiguous{
		{name: "request", marker: `"justification":`, event: "approval_requested", ends: commit.StatusPending,
			setup: func(r *rig, id string) preview.Preview { r.rules.set(people(leads)); return r.prepare(id, "new") },
			act: func(r *rig, p preview.Preview) error {
				_, err := r.approvals.Request(r.t.Context(), agent("bot"), p.ID, "please")
				return err
			}},
		{name: "a vote of two", marker: theDecision, event: "vote", ends: commit.StatusPending,
			setup: func(r *rig, id string) preview.Preview { return r.pending(id, two) },
			act:   func(r *rig, p preview.Preview) error { _, err := r.approve(p, "kim"); return err }},
		{name: "the deciding vote", marker: theDecision, event: "approved", ends: commit.StatusApproved,
			setup: func(r *rig, id string) preview.Preview { return r.pending(id) },
			act:   func(r *rig, p preview.Preview) error { _, err := r.approve(p, "kim"); return err }},
		{name: "a rejection", marker: `"approve":false`, event: "rejected", ends: commit.StatusRejected,
			setup: func(r *rig, id string) preview.Preview { return r.pending(id) },
			act:   func(r *rig, p preview.Preview) error { _, err := r.reject(p, "kim"); return err }},
		{name: "a veto", marker: `"approve":false`, event: "rejected", ends: commit.StatusRejected,
			setup: func(r *rig, id string) preview.Preview { return r.approved(id) },
			act:   func(r *rig, p preview.Preview) error { _, err := r.reject(p, "kim"); return err }},
		{name: "a confirmation", marker: param("confirmed"), event: "confirmed", ends: commit.StatusApproved,
			setup: func(r *rig, id string) preview.Preview { return r.asked(id, byConfirmation) },
			act:   func(r *rig, p preview.Preview) error { _, err := r.confirm(p, requester()); return err }},
		{name: "a cancel", marker: param("canceled"), event: "canceled", ends: commit.StatusCanceled,
			setup: func(r *rig, id string) preview.Preview { return r.approved(id) },
			act: func(r *rig, p preview.Preview) error {
				_, err := r.previews.Cancel(r.t.Context(), agent("bot"), p.ID, "no more")
				return err
			}},
		{name: "a return for approval", marker: param("sent_back"), event: "sent_back", ends: commit.StatusNeedsApproval,
			setup: func(r *rig, id string) preview.Preview { p := r.approved(id); r.rules.set(people(two)); return p },
			act:   applies,
			again: func(r *rig, p preview.Preview) error { return unless(applies(r, p), fault.ApprovalRequired) }},
		{name: "the record of an effect", marker: theRecord, point: beforeRecord, event: "applied", ends: commit.StatusApplied, settles: true, act: applies},
		{name: "the record of a refusal", marker: theRecord, point: beforeRecord, event: "not_applied", ends: commit.StatusNotApplied, settles: true,
			setup: answering(func() error { return connector.Rejected(422, "no") }), act: applies},
		{name: "the record of a drift", marker: theRecord, point: beforeRecord, event: "not_applied", ends: commit.StatusNotApplied, settles: true,
			setup: func(r *rig, id string) preview.Preview {
				p := r.prepare(id, "new")
				r.target.move(id, "moved")
				return p
			}, act: applies},
		{name: "the record of a doubt", marker: theRecord, point: beforeRecord, event: "unknown", ends: commit.StatusUnknown, settles: true,
			setup: answering(func() error { return context.DeadlineExceeded }), act: applies},
		{name: "the record of what never left", marker: theRecord, point: beforeRecord, event: "not_sent", ends: commit.StatusApproved, settles: true,
			setup: answering(func() error { return connector.NotSent(errors.New("refused")) }),
			act:   func(r *rig, p preview.Preview) error { return unless(applies(r, p), fault.TargetUnavailable) }},
		{name: "the beginning of a look-up", marker: param("lookup"), event: "applied", ends: commit.StatusApplied,
			setup: func(r *rig, id string) preview.Preview { return r.lost(id) },
			act:   (*rig).look,
			again: (*rig).lookUntilApplied},
		{name: "the record of a look-up that found", marker: theRecord, point: beforeFinding, event: "applied", ends: commit.StatusApplied, settles: true,
			setup: func(r *rig, id string) preview.Preview { return r.lost(id) },
			act:   (*rig).look},
		{name: "the record of a look-up that could not tell", marker: theRecord, point: beforeFinding, event: "probed", ends: commit.StatusUnknown, settles: true,
			setup: func(r *rig, id string) preview.Preview { p := r.lost(id); r.target.looks(cannotTell); return p },
			act:   (*rig).look,
			again: func(*rig, preview.Preview) error { return nil }},
		{name: "a lapse", marker: param("lease_lapsed"), event: "lease_lapsed", ends: commit.StatusUnknown,
			setup: func(r *rig, id string) preview.Preview { p := r.prepare(id, "new"); r.lapsed(p); return p },
			act:   func(r *rig, _ preview.Preview) error { _, err := r.store.MarkLapsed(r.t.Context(), 10); return err }},
		{name: "an expiry", marker: param("expired"), event: "expired", ends: commit.StatusExpired,
			setup: func(r *rig, id string) preview.Preview { p := r.prepare(id, "new"); r.shortly(p.ID, 0); return p },
			act:   func(r *rig, _ preview.Preview) error { _, err := r.store.MarkLapsed(r.t.Context(), 10); return err }},
		{name: "an operator's word that it happened", marker: param("resolved"), point: beforeResolve, event: "resolved", ends: commit.StatusApplied,
			setup: func(r *rig, id string) preview.Preview { p := r.lost(id); r.target.looks(cannotTell); return p },
			act: func(r *rig, p preview.Preview) error {
				said := didNot(p.ID)
				said.Applied = true
				_, err := r.commits.Resolve(r.t.Context(), said)
				return err
			}},
		{name: "an operator's word that it did not", marker: param("resolved"), point: beforeResolve, event: "resolved", ends: commit.StatusNotApplied,
			setup: func(r *rig, id string) preview.Preview {
				p := r.unknown(id)
				r.target.looks(cannotTell)
				r.settleNow(p.ID)
				return p
			},
			act: func(r *rig, p preview.Preview) error {
				_, err := r.commits.Resolve(r.t.Context(), didNot(p.ID))
				return err
			}},
	}
}

// look asks the target about one change.
func (r *rig) look(p preview.Preview) error {
	_, err := r.commits.Probe(r.t.Context(), operator("ito"), p.ID)
	return err
}

// lookUntilApplied looks again when the hold of a look-up that nobody made has ended, as it does by itself.
func (r *rig) lookUntilApplied(p preview.Preview) error {
	for deadline := time.Now().Add(20 * time.Second); ; {
		r.exec(`update executions set probe_until = clock_timestamp() where preview_id = $1`, p.ID.UUID())
		c, err := r.commits.Probe(r.t.Context(), operator("ito"), p.ID)
		if err != nil || c.Status == commit.StatusApplied || time.Now().After(deadline) {
			return err
		}
	}
}

// settleNow lets the time pass after which "it did not happen" is heard.
func (r *rig) settleNow(id preview.ID) {
	r.t.Helper()
	r.exec(`update executions set lease_until = clock_timestamp() - interval '1 s', settle_at = clock_timestamp() - interval '1 s'
		where preview_id = $1`, id.UUID())
}

func unless(err error, expected fault.Code) error {
	if errors.Is(err, expected) {
		return nil
	}
	return err
}

// answering makes the target answer so, with no effect, and prepares a change.
func answering(answer func() error) func(*rig, string) preview.Preview {
	return func(r *rig, id string) preview.Preview {
		r.target.script(func(context.Context, connector.Plan, connector.Call, func() error) (connector.Receipt, error) {
			return connector.Receipt{}, answer()
		})
		return r.prepare(id, "new")
	}
}

func cannotTell(connector.Call) (connector.Finding, error) {
	return connector.Finding{Found: connector.EffectUnsure}, nil
}

// approved is a change that a person has approved.
func (r *rig) approved(id string) preview.Preview {
	r.t.Helper()
	p := r.pending(id)
	if _, err := r.approve(p, "park"); err != nil {
		r.t.Fatal(err)
	}
	return p
}

// lost is a change that took place, and whose reply was lost.
func (r *rig) lost(id string) preview.Preview {
	r.t.Helper()
	r.target.script(modes["lost"])
	p := r.prepare(id, "new")
	if c, err := r.apply(p); err != nil || c.Status != commit.StatusUnknown {
		r.t.Fatalf("got %s, %v, want unknown", c.Status, err)
	}
	r.target.script(nil)
	return p
}

// lapsed claims a change, as a process that is gone did, for a lease that has ended.
func (r *rig) lapsed(p preview.Preview) commit.Claim {
	r.t.Helper()
	claim := r.claimOf(p)
	claim.Clocks.LeaseFor, claim.Clocks.SendFor, claim.Clocks.SettleFor = time.Microsecond, time.Microsecond, time.Microsecond
	if err := r.store.ClaimApproved(r.t.Context(), claim); err != nil {
		r.t.Fatal(err)
	}
	r.awaitLapse(p.ID)
	return claim
}

// TestEveryCommitMayBeInDoubt loses the acknowledgement of each transaction, cuts it while the server works on it, and keeps it
// from the server. Whoever asks again gets the right answer, and the event is on record once.
func TestEveryCommitMayBeInDoubt(t *testing.T) {
	t.Parallel()
	for how, cut := range cuts {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			r, wire := proxied(t, unhurried)
			for _, tx := range transactions() {
				t.Run(tx.name, func(t *testing.T) {
					tx.run(r.in(t), func() chan struct{} { return wire.arm(tx.marker, cut) })
				})
			}
		})
	}
}

var cuts = map[string]wire.Cut{"acknowledgement lost": afterItIsDone, "cut while it works": whileItWorks, "never reached the server": beforeTheServer}

// run makes the transaction after arm has prepared for its end to get lost, and asks again. fired tells that it was lost.
func (a ambiguous) run(r *rig, arm func() (fired chan struct{})) {
	r.rules.set(automatic)
	r.target.script(nil)
	r.target.looks(nil)
	if a.setup == nil {
		a.setup = func(r *rig, id string) preview.Preview { return r.prepare(id, "new") }
	}
	if a.again == nil {
		a.again = a.act
	}
	t, p := r.t, a.setup(r, a.name)
	fired := arm()
	err := a.act(r, p)
	receive(t, fired)
	if f := fault.From(err); !a.settles && (err == nil || f.Key != "fault.internal.passing" || !f.Retryable) {
		t.Errorf("got %v, want the truth: it is not known, and asking again is right", err)
	}
	if a.settles && err != nil {
		t.Errorf("got %v, want the service to have asked again by itself", err)
	}
	if !a.settles {
		if err := a.again(r, p); err != nil {
			t.Errorf("asked again: %v", err)
		}
	}
	if got := r.status(p.ID).Status; got != a.ends {
		t.Errorf("got %s, want %s", got, a.ends)
	}
	if kinds := r.kinds(p.ID); countOf(kinds, a.event) != 1 {
		t.Errorf("got events %v, want %s once", kinds, a.event)
	}
}

// TestAConfirmationMayBeInDoubtToo: the claim's acknowledgement is lost, and then that of the second write. Nothing is sent
// before one has come back clean.
func TestAConfirmationMayBeInDoubtToo(t *testing.T) {
	t.Parallel()
	for how, cut := range cuts {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			r, wire := proxied(t, unhurried)
			p := r.prepare("a", "new")
			var lost chan struct{}
			r.stop = func(point string) {
				if point == afterClaim { // in doubt, and not yet confirmed
					id := p.ID.UUID()
					lost = wire.arm(string(id[:]), cut)
				}
			}
			_, _, s := services(t, r, r.store)
			fired := wire.arm(theClaim, afterItIsDone)
			r.target.reads(func(now connector.Reading) (connector.Reading, error) {
				select {
				case <-lost:
				default:
					t.Error("the target was read before the second write was in doubt and confirmed")
				}
				return now, nil
			})
			c, err := s.Apply(t.Context(), agent("bot"), "text_change", p.ID, contentWait)
			receive(t, fired)
			if err != nil || c.Status != commit.StatusApplied || r.target.total() != 1 {
				t.Errorf("got %s, %v, %d effects, want applied once", c.Status, err, r.target.total())
			}
			if kinds := r.kinds(p.ID); countOf(kinds, "claimed") != 1 {
				t.Errorf("got events %v, want one claim", kinds)
			}
		})
	}
}

// TestAPolicyWhoseActivationIsInDoubtIsActivatedOnce: its epoch moves once, so that no claim is refused for nothing.
func TestAPolicyWhoseActivationIsInDoubtIsActivatedOnce(t *testing.T) {
	t.Parallel()
	for how, cut := range cuts {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			r, wire := proxied(t)
			fired := wire.arm("the new rules", cut)
			if err := r.store.ActivatePolicy(t.Context(), "p2", "the new rules"); err == nil {
				t.Error("got no error, want the truth: it is not known")
			}
			receive(t, fired)
			if err := r.store.ActivatePolicy(t.Context(), "p2", "the new rules"); err != nil {
				t.Errorf("asked again: %v", err)
			}
			var activated int
			r.scalar(&activated, `select count(*) from control_events where scope = '' and kind = 'policy_activated'`)
			if activated != 2 { // the rig's own, and this one
				t.Errorf("got %d activations, want 2", activated)
			}
		})
	}
}
