package verify

import (
	"context"
	"net/http"

	"github.com/cutonce/cutonce/commit"
)

var drift = Check{
	ID: "drift", Promise: "A target that has moved since the preview was shown is seen before the write, and nothing is sent",
	Run: func(ctx context.Context, b *bench) (Proof, error) {
		const id = "moved"
		p, err := b.prepare(ctx, id)
		if err != nil {
			return Proof{}, err
		}
		if status := b.target.effect(id, "somebody-else", "", "theirs"); status != http.StatusOK {
			return Proof{}, fail("the counting target refused somebody else's change (%d)", status)
		}
		c, err := b.core.apply(ctx, p)
		if err != nil {
			return Proof{}, err
		}
		if received, _ := b.target.count(b.key(p)); received != 0 || c.Status != commit.StatusNotApplied {
			return Proof{}, fail("a change whose target had moved was sent %d times and is %s, want nothing sent and not_applied", received, c.Status)
		}
		if got := c.Executions[0].Reason; got != commit.Drifted {
			return Proof{}, fail("a change whose target had moved was not applied because of %q, want %q", got, commit.Drifted)
		}
		q, err := b.prepare(ctx, id)
		if err != nil {
			return Proof{}, err
		}
		if c, err = b.core.apply(ctx, q); err != nil || c.Status != commit.StatusApplied {
			return Proof{}, fail("a change that was prepared anew is %s (%v), want applied", c.Status, err)
		}
		return Proof{
			Control: "prepared anew, on what is there now, it was applied",
			Refusal: "a change whose target somebody else had moved was called drifted, and nothing of it was sent",
		}, b.wantEffects(q, 1, "after it")
	},
}
