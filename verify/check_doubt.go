package verify

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/google/uuid"

	"github.com/cutonce/cutonce/commit"
)

var doubt = Check{
	ID: "commit-in-doubt", Promise: "A claim whose acknowledgement was lost is confirmed by a second durable write before anything is sent",
	Run: func(ctx context.Context, b *bench) (Proof, error) {
		p, err := b.prepare(ctx, "doubt-claimed")
		if err != nil {
			return Proof{}, err
		}
		var confirmed atomic.Int32
		confirm := func(ctx context.Context, k commit.Key, attempt uuid.UUID) error {
			if received, _ := b.target.count(b.key(p)); received != 0 {
				return fail("the send left before the claim was confirmed")
			}
			confirmed.Add(1)
			return b.store.ConfirmClaim(ctx, k, attempt)
		}
		lost := between{ports: b.store, confirm: confirm, claim: func(ctx context.Context, c commit.Claim) error {
			return errors.Join(b.store.ClaimApproved(ctx, c), fmt.Errorf("%w: the acknowledgement was lost", commit.ErrInDoubt))
		}}
		core, err := b.on(lost)
		if err != nil {
			return Proof{}, err
		}
		c, err := core.apply(ctx, p)
		if err != nil || c.Status != commit.StatusApplied || confirmed.Load() == 0 {
			return Proof{}, fail("a claim that was made and not acknowledged ended %s (%v) after %d confirmations, want applied after one", c.Status, err, confirmed.Load())
		}
		if err := b.wantEffects(p, 1, "after it"); err != nil {
			return Proof{}, err
		}
		// The other case of the same doubt: it was never made.
		q, err := b.prepare(ctx, "doubt-never-claimed")
		if err != nil {
			return Proof{}, err
		}
		core, err = b.on(between{ports: b.store, claim: func(context.Context, commit.Claim) error { return commit.ErrInDoubt }})
		if err != nil {
			return Proof{}, err
		}
		if c, err = core.apply(ctx, q); err != nil && !neverSent(err) {
			return Proof{}, err
		}
		if received, _ := b.target.count(b.key(q)); received != 0 || c.Status != commit.StatusApproved {
			return Proof{}, fail("a claim that was never made was sent %d times and is %s, want nothing sent and approved", received, c.Status)
		}
		return Proof{
			Control: "a claim that was made, and whose acknowledgement was lost, was confirmed and then sent, once",
			Refusal: "a claim in doubt that was never made sent nothing",
		}, nil
	},
}
