package verify

import (
	"context"
	"errors"

	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/preview"
)

var expiry = Check{
	ID: "expiry", Promise: "A deadline is checked by every guard: nothing is decided or claimed after it, whether or not a sweeper has come by",
	Run: func(ctx context.Context, b *bench) (Proof, error) {
		// Nobody sweeps here, and what is prepared now is late on the other clock.
		p, err := b.prepare(ctx, "expires")
		if err != nil {
			return Proof{}, err
		}
		core, err := b.on(between{ports: b.store, claim: b.later.ClaimApproved})
		if err != nil {
			return Proof{}, err
		}
		if _, err := core.apply(ctx, p); err != nil && !neverSent(err) {
			return Proof{}, err
		}
		if received, _ := b.target.count(b.key(p)); received != 0 {
			return Proof{}, fail("a change whose deadline passed between the look and the claim was sent")
		}
		if c, err := b.status(ctx, p); err != nil || c.Preview.State != preview.Approved {
			return Proof{}, fail("a change whose deadline passed before the claim is %s (%v), want it unclaimed", c.Preview.State, err)
		}
		q, err := b.pending(ctx, "expires")
		if err != nil {
			return Proof{}, err
		}
		vote := approvals.Decision{Approve: true, Digest: q.Digest}
		if _, err := b.tomorrow.approvals.Decide(ctx, approver, q.ID, vote); !errors.Is(err, fault.Expired) {
			return Proof{}, fail("a vote after the approval deadline was told %v, want expired", err)
		}
		// The control: both within their time.
		if _, err := b.approve(ctx, q); err != nil {
			return Proof{}, err
		}
		c, err := b.core.apply(ctx, p)
		if err != nil || c.Status != commit.StatusApplied {
			return Proof{}, fail("a change within its time is %s (%v), want applied", c.Status, err)
		}
		return Proof{
			Control: "within their time a vote counted and an apply was applied",
			Refusal: "after it, with no sweeper, the vote was told expired, and a claim whose deadline passed after the look sent nothing",
		}, nil
	},
}

// neverSent reports whether an apply was told that nothing was claimed and nothing sent.
func neverSent(err error) bool {
	return errors.Is(err, fault.Expired) || errors.Is(err, fault.TargetUnavailable)
}
