package verify

import (
	"context"

	"github.com/google/uuid"

	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/preview"
)

// between is a store on which something happens between two steps of an apply or a decision. What is nil happens as ever.
type between struct {
	ports
	claim   func(ctx context.Context, c commit.Claim) error
	confirm func(ctx context.Context, k commit.Key, attempt uuid.UUID) error
	decide  func(ctx context.Context, d approvals.RecordedDecision) (preview.Preview, bool, error)
}

// RecordDecision records. See approvals.Store.
func (s between) RecordDecision(ctx context.Context, d approvals.RecordedDecision) (preview.Preview, bool, error) {
	if s.decide != nil {
		return s.decide(ctx, d)
	}
	return s.ports.RecordDecision(ctx, d)
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
