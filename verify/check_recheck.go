package verify

import (
	"context"
	"errors"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/fault"
)

var recheck = Check{
	ID: "recheck", Promise: "The rules are asked again at apply; what moves between that look and the claim refuses the claim",
	Run: func(ctx context.Context, b *bench) (Proof, error) {
		p, err := b.prepare(ctx, "recheck-stricter")
		if err != nil {
			return Proof{}, err
		}
		b.rules.set(true)
		_, err = b.core.apply(ctx, p)
		b.rules.set(false)
		if !errors.Is(err, fault.ApprovalRequired) {
			return Proof{}, fail("an apply under rules that became stricter was told %v, want approval_required", err)
		}
		if err := b.want(ctx, p, commit.StatusNeedsApproval, "under stricter rules"); err != nil {
			return Proof{}, err
		}
		q, err := b.prepare(ctx, "recheck-epoch")
		if err != nil {
			return Proof{}, err
		}
		err = b.claim(ctx, b.store, q, func(c *commit.Claim) { c.Epochs.Policy-- })
		if !errors.Is(err, commit.ErrEpochsMoved) {
			return Proof{}, fail("a claim that rests on an older policy was told %v, want a refusal", err)
		}
		c, err := b.core.apply(ctx, q)
		if err != nil || c.Status != commit.StatusApplied {
			return Proof{}, fail("under unchanged rules the change is %s (%v), want applied", c.Status, err)
		}
		return Proof{
			Control: "under unchanged rules an approved change was applied",
			Refusal: "under stricter rules it went back for approval, and a claim on a policy that had been replaced was refused",
		}, nil
	},
}
