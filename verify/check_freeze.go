package verify

import (
	"context"
	"errors"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/fault"
)

var freeze = Check{
	ID: "freeze", Promise: "Once a freeze has returned, nothing that it covers is claimed or sent, whatever was looked at before it",
	Run: func(ctx context.Context, b *bench) (Proof, error) {
		order := commit.FreezeOrder{Kind: commit.FreezeAction, Name: noteAction, By: person("operator"), Reason: "a verification run"}
		set := func(ctx context.Context) error { _, err := b.core.commits.Freeze(ctx, order); return err }
		lift := func() error { return b.core.commits.Lift(context.WithoutCancel(ctx), order) }
		p, err := b.prepare(ctx, "frozen")
		if err != nil {
			return Proof{}, err
		}
		if err := set(ctx); err != nil {
			return Proof{}, err
		}
		_, told := b.core.apply(ctx, p)
		claimed := b.claim(ctx, b.store, p, nil)
		if err := lift(); err != nil {
			return Proof{}, err
		}
		switch {
		case !errors.Is(told, fault.Frozen):
			return Proof{}, fail("an apply under a freeze was told %v, want frozen", told)
		case !errors.Is(claimed, commit.ErrNotClaimed):
			return Proof{}, fail("a claim under a freeze was told %v, want a refusal", claimed)
		}
		// The freeze comes between the look and the claim.
		core, err := b.on(between{ports: b.store, claim: func(ctx context.Context, c commit.Claim) error {
			if err := set(ctx); err != nil {
				return err
			}
			return b.store.ClaimApproved(ctx, c)
		}})
		if err != nil {
			return Proof{}, err
		}
		_, told = core.apply(ctx, p)
		if err := lift(); err != nil {
			return Proof{}, err
		}
		if received, _ := b.target.count(b.key(p)); received != 0 || !errors.Is(told, fault.Frozen) {
			return Proof{}, fail("an apply that was frozen after its look was told %v and sent %d times, want frozen and nothing sent", told, received)
		}
		c, err := b.core.apply(ctx, p)
		if err != nil || c.Status != commit.StatusApplied {
			return Proof{}, fail("once the freeze was lifted the change is %s (%v), want applied", c.Status, err)
		}
		return Proof{
			Control: "once the freeze was lifted the same change was applied",
			Refusal: "under it an apply was told frozen, a claim was refused by the statement itself, and a freeze between look and claim sent nothing",
		}, b.wantEffects(p, 1, "after it")
	},
}
