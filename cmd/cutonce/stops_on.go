//go:build stops

package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/preview"
)

// A build with the tag stops, and no release, can be held at named points between its steps, so that a test can kill or freeze
// the process exactly there. The services know nothing of it: the points are before and after what the stores do. CRASH_STOPS
// names the points, CRASH_STOPS_DIR a folder: the first call that reaches a point writes the file POINT.reached there and
// waits for a file POINT.go; later calls pass.
var stops = &stopPoints{
	dir: os.Getenv("CRASH_STOPS_DIR"), names: strings.Split(os.Getenv("CRASH_STOPS"), ","), reached: map[string]bool{},
}

type stopPoints struct {
	dir   string
	names []string

	mu      sync.Mutex
	reached map[string]bool
}

func (s *stopPoints) at(point string) {
	if s.dir == "" || !slices.Contains(s.names, point) || !s.first(point) {
		return
	}
	path := filepath.Join(s.dir, point)
	if err := os.WriteFile(path+".reached", nil, 0o600); err != nil {
		panic(err)
	}
	for {
		if _, err := os.Stat(path + ".go"); err == nil {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (s *stopPoints) first(point string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reached[point] {
		return false
	}
	s.reached[point] = true
	return true
}

type stoppedPreviews struct{ preview.Store }

func stoppingPreviews(s preview.Store) preview.Store { return stoppedPreviews{s} }

func (s stoppedPreviews) Create(ctx context.Context, n preview.New) (preview.Preview, bool, error) {
	stops.at("before-create")
	p, created, err := s.Store.Create(ctx, n)
	stops.at("after-create")
	return p, created, err
}

type stoppedApprovals struct{ approvals.Store }

func stoppingApprovals(s approvals.Store) approvals.Store { return stoppedApprovals{s} }

func (s stoppedApprovals) RecordDecision(ctx context.Context, d approvals.RecordedDecision) (preview.Preview, bool, error) {
	stops.at("before-decision")
	p, moved, err := s.Store.RecordDecision(ctx, d)
	stops.at("after-decision")
	return p, moved, err
}

type stoppedCommits struct{ commit.Store }

func stoppingCommits(s commit.Store) commit.Store { return stoppedCommits{s} }

func (s stoppedCommits) ClaimApproved(ctx context.Context, c commit.Claim) error {
	stops.at("before-claim")
	err := s.Store.ClaimApproved(ctx, c)
	stops.at("after-claim")
	return err
}

func (s stoppedCommits) ConfirmClaim(ctx context.Context, k commit.Key, attempt uuid.UUID) error {
	stops.at("before-confirm")
	err := s.Store.ConfirmClaim(ctx, k, attempt)
	stops.at("after-confirm")
	return err
}

// CheckLease is the last step before the send.
func (s stoppedCommits) CheckLease(
	ctx context.Context, k commit.Key, attempt uuid.UUID, version string, settle time.Duration,
) (commit.LeaseCheck, error) {
	stops.at("before-lease")
	check, err := s.Store.CheckLease(ctx, k, attempt, version, settle)
	stops.at("before-send")
	return check, err
}

// RecordResult is the first step after a send or a probe.
func (s stoppedCommits) RecordResult(ctx context.Context, r commit.Result) (commit.Recorded, error) {
	suffix := ""
	if r.Kind != commit.Send {
		suffix = "-probe"
	}
	stops.at("before-record" + suffix)
	stands, err := s.Store.RecordResult(ctx, r)
	stops.at("after-record" + suffix)
	return stands, err
}

func (s stoppedCommits) BeginProbe(
	ctx context.Context, k commit.Key, attempt uuid.UUID, kind commit.AttemptKind, holdFor, settleFor time.Duration,
) (bool, error) {
	stops.at("before-probe")
	ok, err := s.Store.BeginProbe(ctx, k, attempt, kind, holdFor, settleFor)
	stops.at("after-probe")
	return ok, err
}
