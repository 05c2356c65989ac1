package verify

import (
	"context"
	"errors"
	"net/http"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/fault"
)

var targetLock = Check{
	ID: "target-lock", Promise: "While one change of a target is under way or unknown, another one waits: target_busy",
	Run: func(ctx context.Context, b *bench) (Proof, error) {
		const id = "one-at-a-time"
		first, err := b.prepare(ctx, id)
		if err != nil {
			return Proof{}, err
		}
		second, err := b.prepare(ctx, id)
		if err != nil {
			return Proof{}, err
		}
		arrived, goOn := make(chan struct{}), make(chan struct{})
		b.target.script(id, func(w http.ResponseWriter, r *http.Request, do func() int) {
			close(arrived)
			<-goOn
			answer(w, r.Header.Get("Idempotency-Key"), do())
		})
		ended := make(chan error, 1)
		go func() { _, err := b.core.apply(ctx, first); ended <- err }()
		if err := await(ctx, arrived); err != nil {
			close(goOn)
			return Proof{}, err
		}
		_, busy := b.core.apply(ctx, second)
		close(goOn)
		if err := <-ended; err != nil {
			return Proof{}, err
		}
		if !errors.Is(busy, fault.TargetBusy) {
			return Proof{}, fail("a second change of the same target was told %v while the first was being sent, want target_busy", busy)
		}
		if err := b.want(ctx, first, commit.StatusApplied, "after it was let go"); err != nil {
			return Proof{}, err
		}
		if received, _ := b.target.count(b.key(second)); received != 0 {
			return Proof{}, fail("the second change was sent %d times while the first held the target", received)
		}
		return Proof{
			Control: "the first change was applied",
			Refusal: "the second change of the same target was told target_busy while the first was being sent; nothing of it left",
		}, nil
	},
}
