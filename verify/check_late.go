package verify

import (
	"context"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
)

var lateProof = Check{
	ID: "late-proof", Promise: "Proof of an effect counts however late it comes: what was called not_applied is then applied, contradicted",
	Run: func(ctx context.Context, b *bench) (Proof, error) {
		p, k, attempt, err := b.claimed(ctx, "late-proof")
		if err != nil {
			return Proof{}, err
		}
		// On the clock that is ahead the lease is over, and so is the time in which a late effect could still come.
		if _, err := b.later.MarkLapsed(ctx, 1000); err != nil {
			return Proof{}, err
		}
		probe := newAttempt()
		taken, err := b.later.BeginProbe(ctx, k, probe, commit.Lookup, b.clocks.SendFor, b.clocks.SettleFor)
		if err != nil || !taken {
			return Proof{}, fail("a probe could not take over a lapsed attempt (%v)", err)
		}
		absent := commit.Result{Key: k, Attempt: probe, Kind: commit.Lookup, Found: connector.EffectAbsent}
		if _, err := b.later.RecordResult(ctx, absent); err != nil {
			return Proof{}, err
		}
		if err := b.want(ctx, p, commit.StatusNotApplied, "after a look-up found nothing"); err != nil {
			return Proof{}, err
		}
		// The sender wakes up after all that, and has the target's receipt.
		receipt := commit.Result{Key: k, Attempt: attempt, Kind: commit.Send, Class: connector.ClassApplied, Answered: true}
		if _, err := b.store.RecordResult(ctx, receipt); err != nil {
			return Proof{}, err
		}
		if err := b.want(ctx, p, commit.StatusApplied, "after the receipt came late"); err != nil {
			return Proof{}, err
		}
		c, err := b.status(ctx, p)
		if err != nil {
			return Proof{}, err
		}
		if !c.Executions[0].Contradicted {
			return Proof{}, fail("the outcome was changed without a word of the contradiction")
		}
		return Proof{
			Control: "a look-up that found nothing, once nothing can come any more, was called not_applied",
			Refusal: "a receipt that came after it was not thrown away: the change is applied, and says that it contradicts what was said",
		}, nil
	},
}
