package verify

import (
	"context"
	"errors"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/fault"
)

var lease = Check{
	ID: "lease", Promise: "A sender that was held up past its lease reads it again before the write, and sends nothing",
	Run: func(ctx context.Context, b *bench) (Proof, error) {
		const id = "held-up"
		p, err := b.prepare(ctx, id)
		if err != nil {
			return Proof{}, err
		}
		// The sender has claimed and reads the target once more. Meanwhile its lease lapses and another replica settles the
		// change: nothing at the target, so it did not happen. If the sender sent now, that would be a lie.
		var settled error
		b.target.onRead(id, func() {
			settled = b.sweep(ctx, p, commit.StatusNotApplied)
		})
		_, err = b.core.apply(ctx, p)
		switch {
		case settled != nil:
			return Proof{}, settled
		case err != nil && !errors.Is(err, fault.TargetUnavailable):
			return Proof{}, err
		}
		if received, _ := b.target.count(b.key(p)); received != 0 {
			return Proof{}, fail("a sender whose lease another replica had taken sent all the same: the change was called not_applied")
		}
		if err := b.want(ctx, p, commit.StatusNotApplied, "after the sender woke up"); err != nil {
			return Proof{}, err
		}
		q, err := b.prepare(ctx, id)
		if err != nil {
			return Proof{}, err
		}
		c, err := b.core.apply(ctx, q)
		if err != nil || c.Status != commit.StatusApplied {
			return Proof{}, fail("a sender within its lease ended %s (%v), want applied", c.Status, err)
		}
		return Proof{
			Control: "a sender within its lease sent, once",
			Refusal: "a sender that woke up after another replica had settled its change sent nothing",
		}, b.wantEffects(q, 1, "after it")
	},
}
