package verify

import (
	"context"
	"net/http"

	"github.com/cutonce/cutonce/commit"
)

var unknown = Check{
	ID: "unknown", Promise: "A lost reply is unknown, is settled by looking at the target, and never by sending again",
	Run: func(ctx context.Context, b *bench) (Proof, error) {
		for id, did := range map[string]bool{"lost-reply": true, "lost-request": false} {
			p, err := b.prepare(ctx, id)
			if err != nil {
				return Proof{}, err
			}
			b.target.script(id, func(_ http.ResponseWriter, _ *http.Request, do func() int) {
				if did {
					do()
				}
				hangUp()
			})
			for _, when := range []string{"after a reply was lost", "after it was applied again"} {
				c, err := b.core.apply(ctx, p)
				if err != nil || c.Status != commit.StatusUnknown {
					return Proof{}, fail("%s, the change is %s (%v), want unknown", when, c.Status, err)
				}
			}
			settled, effects := commit.StatusNotApplied, 0
			if did {
				settled, effects = commit.StatusApplied, 1
			} else if err := b.core.commits.Sweep(ctx); err != nil {
				return Proof{}, err
			} else if err := b.want(ctx, p, commit.StatusUnknown, "before a late effect is ruled out"); err != nil {
				return Proof{}, err
			}
			if err := b.sweep(ctx, p, settled); err != nil {
				return Proof{}, err
			}
			if received, got := b.target.count(b.key(p)); received != 1 || got != effects {
				return Proof{}, fail("%s: the target was asked %d times and counted %d effects, want 1 and %d", id, received, got, effects)
			}
		}
		return Proof{
			Control: "an effect whose reply was lost was found by its key and is applied",
			Refusal: "neither a second apply nor the reconciler sent again; nothing found was called not_applied only after lease, send deadline and settle time",
		}, nil
	},
}
