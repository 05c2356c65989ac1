package verify

import (
	"context"

	"github.com/google/uuid"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/preview"
)

var attemptFence = Check{
	ID: "attempt-fence", Promise: "A result counts only for the attempt that is still current; an old one moves nothing",
	Run: func(ctx context.Context, b *bench) (Proof, error) {
		// The control: the current attempt's refusal settles.
		p, k, attempt, err := b.claimed(ctx, "fence-current")
		if err != nil {
			return Proof{}, err
		}
		refused := commit.Result{Key: k, Attempt: attempt, Kind: commit.Send, Class: connector.ClassRefused, Answered: true, Reason: "refused"}
		if _, err := b.store.RecordResult(ctx, refused); err != nil {
			return Proof{}, err
		}
		if err := b.want(ctx, p, commit.StatusNotApplied, "after its current attempt was refused"); err != nil {
			return Proof{}, err
		}
		// The refusal: the lease lapses, a probe takes over, and the old attempt wakes up.
		p, k, attempt, err = b.claimed(ctx, "fence-old")
		if err != nil {
			return Proof{}, err
		}
		if _, err := b.later.MarkLapsed(ctx, 1000); err != nil {
			return Proof{}, err
		}
		taken, err := b.later.BeginProbe(ctx, k, newAttempt(), commit.Lookup, b.clocks.SendFor, b.clocks.SettleFor)
		if err != nil || !taken {
			return Proof{}, fail("a probe could not take over a lapsed attempt (%v)", err)
		}
		refused.Key, refused.Attempt = k, attempt
		if _, err := b.later.RecordResult(ctx, refused); err != nil {
			return Proof{}, err
		}
		if err := b.want(ctx, p, commit.StatusUnknown, "after an old attempt wrote back a refusal"); err != nil {
			return Proof{}, err
		}
		return Proof{
			Control: "the current attempt's refusal settled its change",
			Refusal: "a refusal written back by an attempt that a probe had replaced moved nothing: the change stays unknown",
		}, nil
	},
}

// claimed makes a claim without a sender behind it.
func (b *bench) claimed(ctx context.Context, id string) (p preview.Preview, k commit.Key, attempt uuid.UUID, err error) {
	if p, err = b.prepare(ctx, id); err != nil {
		return p, k, attempt, err
	}
	err = b.claim(ctx, b.store, p, func(c *commit.Claim) { k, attempt = c.Key, c.Attempt })
	return p, k, attempt, err
}
