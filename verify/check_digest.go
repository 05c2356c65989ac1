package verify

import (
	"context"
	"errors"

	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/canon"
	"github.com/cutonce/cutonce/internal/fault"
)

var digest = Check{
	ID: "digest", Promise: "What was shown is what is approved is what is sent: one digest, compared at the vote and at the claim",
	Run: func(ctx context.Context, b *bench) (Proof, error) {
		p, err := b.pending(ctx, "digest")
		if err != nil {
			return Proof{}, err
		}
		other := canon.Sum([]byte("something else was on the screen"))
		_, err = b.core.approvals.Decide(ctx, approver, p.ID, approvals.Decision{Approve: true, Digest: other})
		if !errors.Is(err, fault.DigestMismatch) {
			return Proof{}, fail("a vote with another digest was told %v, want digest_mismatch", err)
		}
		if p, err = b.approve(ctx, p); err != nil {
			return Proof{}, err
		}
		err = b.claim(ctx, b.store, p, func(c *commit.Claim) { c.Digest = other })
		if !errors.Is(err, commit.ErrNotClaimed) {
			return Proof{}, fail("a claim with another digest was told %v, want no claim", err)
		}
		id := p.ID.UUID()
		for _, forged := range []struct{ code, what, sql string }{
			{"23514", "a document changed by SQL", `update previews set document = document || '\x20', audit_seq = audit_seq + 1 where id = $1`},
			{"CU002", "a document and its digest changed by SQL", `update previews set document = document || '\x20',
				digest = sha256(document || '\x20'), audit_seq = audit_seq + 1 where id = $1`},
		} {
			if err := b.refusedSQL(ctx, forged.code, forged.what, forged.sql, id); err != nil {
				return Proof{}, err
			}
		}
		c, err := b.core.apply(ctx, p)
		if err != nil {
			return Proof{}, err
		}
		if c.Status != commit.StatusApplied {
			return Proof{}, fail("the approved change is %s after apply, want applied", c.Status)
		}
		return Proof{
			Control: "the vote and the claim with the digest that was shown counted, and the change was applied",
			Refusal: "a vote and a claim with another digest, and a row rewritten by SQL with and without its digest, were refused",
		}, nil
	},
}
