package store_test

import (
	"context"

	"github.com/cutonce/cutonce/commit"
)

// The points of an apply at which a test can hold it.
const (
	beforeClaim  = "before-claim"
	afterClaim   = "after-claim"
	beforeRecord = "before-record"
	// beforeFinding is before the record of a look-up, beforeResolve before that of an operator's word.
	beforeFinding = "before-finding"
	beforeResolve = "before-resolve"
)

// pausing is a store that calls at before and after its steps, so that a test can hold an apply between two of them without
// the services knowing.
type pausing struct {
	commit.Store
	at func(point string)
}

func (s pausing) pause(point string) {
	if s.at != nil {
		s.at(point)
	}
}

func (s pausing) ClaimApproved(ctx context.Context, c commit.Claim) error {
	s.pause(beforeClaim)
	err := s.Store.ClaimApproved(ctx, c)
	s.pause(afterClaim)
	return err
}

func (s pausing) RecordResult(ctx context.Context, r commit.Result) (commit.Recorded, error) {
	if r.Kind == commit.Send {
		s.pause(beforeRecord)
	} else {
		s.pause(beforeFinding)
	}
	return s.Store.RecordResult(ctx, r)
}

func (s pausing) Resolve(ctx context.Context, r commit.Resolution) (bool, error) {
	s.pause(beforeResolve)
	return s.Store.Resolve(ctx, r)
}
