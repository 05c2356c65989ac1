package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/preview"
)

// record records a result and leaves aside what stands then.
func (r *rig) record(res commit.Result) error {
	_, err := r.store.RecordResult(context.Background(), res)
	return err
}

// lateMove is one of those who may settle an outcome whose lease has ended.
type lateMove func(*rig, commit.Claim) error

var lateMoves = map[string]lateMove{
	"receipt": func(r *rig, c commit.Claim) error {
		return r.record(sendResult(c, connector.ClassApplied))
	},
	"refusal": func(r *rig, c commit.Claim) error {
		return r.record(sendResult(c, connector.ClassRefused))
	},
	"never left": func(r *rig, c commit.Claim) error {
		return r.record(sendResult(c, connector.ClassNotSent))
	},
	"lapse": func(r *rig, _ commit.Claim) error {
		_, err := r.store.MarkLapsed(context.Background(), 10)
		return err
	},
	"operator's no": func(r *rig, c commit.Claim) error {
		_, err := r.store.Resolve(context.Background(), commit.Resolution{
			Key: c.Key, By: operator("ito"), Reason: "not in the log", Evidence: "target log", Settles: true,
		})
		return err
	},
	"look that finds nothing": func(r *rig, c commit.Claim) error {
		attempt := uuid.New()
		_, lapsed := r.store.MarkLapsed(context.Background(), 10)
		ok, begun := r.store.BeginProbe(context.Background(), c.Key, attempt, commit.Lookup, c.Clocks.SendFor, 0)
		if err := errors.Join(lapsed, begun); err != nil || !ok {
			return err
		}
		return r.record(commit.Result{
			Key: c.Key, Attempt: attempt, Kind: commit.Lookup, Found: connector.EffectAbsent})
	},
}

func sendResult(c commit.Claim, class connector.Class) commit.Result {
	return commit.Result{
		Key: c.Key, Attempt: c.Attempt, Kind: commit.Send, Class: class, Answered: class != connector.ClassNotSent,
		Evidence: map[string]any{"said": string(class)},
	}
}

// TestWhoeverSettlesALateOutcome races a lapse, an operator, a look and the sender's own late answer on two replicas. A receipt
// always wins, openly where somebody had said otherwise before it; without one there is one answer, and one event that says so.
func TestWhoeverSettlesALateOutcome(t *testing.T) {
	t.Parallel()
	here := newRig(t, func(r *rig) { r.conns = 16 })
	there := here.replica()
	for _, pair := range [][2]string{
		{"lapse", "receipt"}, {"lapse", "refusal"}, {"lapse", "never left"}, {"lapse", "operator's no"}, {"lapse", "look that finds nothing"},
		{"receipt", "operator's no"}, {"receipt", "look that finds nothing"}, {"refusal", "operator's no"},
		{"refusal", "look that finds nothing"}, {"never left", "operator's no"}, {"never left", "look that finds nothing"},
		{"operator's no", "look that finds nothing"},
	} {
		t.Run(pair[0]+" and "+pair[1], func(t *testing.T) {
			t.Parallel()
			here, there, a, b := here.in(t), there.in(t), pair[0], pair[1]
			for round := range roundsOf() {
				p := here.prepare(fmt.Sprintf("%s/%s/%d", a, b, round), "new")
				c := here.lapsed(p)
				if a == "receipt" || b == "receipt" {
					here.target.tookPlace(p)
				}
				one, two := race(here, there, p, as(lateMoves[a], c), as(lateMoves[b], c), round%2 == 1)
				if one.err != nil || two.err != nil {
					t.Fatalf("round %d: got %v, %v", round, one.err, two.err)
				}
				here.wantOneStory(p.ID, a, b)
			}
		})
	}
}

// as makes a contender of a late move.
func as(m lateMove, c commit.Claim) contender {
	return func(r *rig, _ preview.Preview) outcome { return outcome{err: m(r, c)} }
}

// tookPlace is an effect whose answer is still on its way.
func (l *ledger) tookPlace(p preview.Preview) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.effects[commit.IdempotencyKey(secret, p.Tenant, p.ID, 0)]++
}

// wantOneStory checks that status, flag and events tell the same.
func (r *rig) wantOneStory(id preview.ID, a, b string) {
	r.t.Helper()
	c, kinds := r.status(id), r.kinds(id)
	e := c.Executions[0]
	receipt := a == "receipt" || b == "receipt"
	said := countOf(kinds, "not_applied") + countOf(kinds, "resolved")
	want := commit.StatusNotApplied
	switch {
	case receipt:
		want = commit.StatusApplied
	case said == 0:
		want = commit.StatusUnknown
	}
	settled := countOf(kinds, "applied") + countOf(kinds, "contradicted")
	switch {
	case c.Status != want:
		r.t.Fatalf("%s and %s: got %s, want %s; events %v", a, b, c.Status, want, kinds)
	case said > 1 || receipt && settled != 1 || !receipt && settled != 0:
		r.t.Fatalf("%s and %s: got events %v, want one answer", a, b, kinds)
	case e.Contradicted != (receipt && said == 1), e.Contradicted != slices.Contains(kinds, "contradicted"):
		r.t.Fatalf("%s and %s: got contradicted %v with events %v", a, b, e.Contradicted, kinds)
	}
}
