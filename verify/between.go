package verify

import (
	"context"

	"github.com/google/uuid"

	"github.com/cutonce/cutonce/commit"
)

// between is a store on which something happens between two steps of an apply. What is nil happens as ever.
type between struct {
	ports
	claim   func(ctx context.Context, c commit.Claim) error
	confirm func(ctx context.Context, k commit.Key, attempt uuid.UUID) error
}

// ClaimApproved claims. See commit.Store.
func (s between) ClaimApproved(ctx context.Context, c commit.Claim) error {
	if s.claim != nil {
		return s.claim(ctx, c)
	}
	return s.ports.ClaimApproved(ctx, c)
}

// ConfirmClaim confirms. See commit.Store.
func (s between) ConfirmClaim(ctx context.Context, k commit.Key, attempt uuid.UUID) error {
	if s.confirm != nil {
		return s.confirm(ctx, k, attempt)
	}
	return s.ports.ConfirmClaim(ctx, k, attempt)
}
