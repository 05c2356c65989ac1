package verify

import (
	"context"
	"errors"
	"net/http"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/fault"
)

var neverLeft = Check{
	ID: "never-left", Promise: "Only a proof is called “nothing was sent”; then the approval is kept, and the target's refusal is final",
	Run: func(ctx context.Context, b *bench) (Proof, error) {
		const id = "never-left"
		p, err := b.prepare(ctx, id)
		if err != nil {
			return Proof{}, err
		}
		// A sender to an address where nothing listens: the connection is refused before a byte.
		closed := *b.conn
		closed.base = "http://127.0.0.1:1"
		if _, err := closed.Execute(ctx, p.Plan, connector.Call{Key: b.key(p)}); connector.Classify(err) != connector.ClassNotSent {
			return Proof{}, fail("a refused connection is classified %s, want not_sent", connector.Classify(err))
		}
		b.target.script(id, func(w http.ResponseWriter, r *http.Request, _ func() int) { refuse(w, r.Header.Get("Idempotency-Key")) })
		c, err := b.core.apply(ctx, p)
		if err != nil || c.Status != commit.StatusNotApplied || c.Executions[0].Reason != commit.Refused {
			return Proof{}, fail("a documented refusal is %s (%v), want not_applied: refused", c.Status, err)
		}
		// Nothing can be read before the send: it never leaves, and the same approval is applied afterwards.
		q, err := b.prepare(ctx, id)
		if err != nil {
			return Proof{}, err
		}
		b.target.mute(id, true)
		c, err = b.core.apply(ctx, q)
		b.target.mute(id, false)
		if !errors.Is(err, fault.TargetUnavailable) || c.Status != commit.StatusApproved {
			return Proof{}, fail("a send that never left is %s (%v), want approved and target_unavailable", c.Status, err)
		}
		if received, _ := b.target.count(b.key(q)); received != 0 {
			return Proof{}, fail("what was called never sent arrived at the target")
		}
		if c, err = b.core.apply(ctx, q); err != nil || c.Status != commit.StatusApplied {
			return Proof{}, fail("applied again after it never left, the change is %s (%v), want applied", c.Status, err)
		}
		return Proof{
			Control: "after a send that never left, the same approval was applied, once",
			Refusal: "a refused connection is not_sent, a documented refusal is not_applied, and neither is called anything else",
		}, b.wantEffects(q, 1, "after it")
	},
}
