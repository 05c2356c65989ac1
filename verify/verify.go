// Package verify holds the guarantees up against a user's own configuration: their database, policy, secret and clocks.
//
// The promise: every check has a positive control (the thing works when it should) beside the refusal that it is about, so
// that a check cannot pass on a system that refuses everything; what could not be shown is N-A with its reason and never
// counts as a pass. It works in a schema of its own that is made for the run and dropped at its end, and changes no row
// of the real tables. Nothing is sent to the user's targets: a counting target of the run's own stands in, over real HTTP on
// loopback, so that the sender is exercised too.
//
// It does not promise what only a kill shows (the crash suites do that), nor anything about the user's targets (that is
// `cutonce connector test`). While it runs it shares the database's advisory locks with the service: a claim of the service may wait
// for it for some milliseconds.
//
// Time is moved, not waited for: where a deadline must pass, the same statements run once more on a database clock that is
// far ahead (see scratch). So the configured clocks are checked as they are, but for the few that a run has to sit through.
//
// Start at Run. A check is one small file (check_*.go) and one line in Checks; bench.go is what a check works with.
package verify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/policy"
)

// Config is what a run holds the guarantees up against.
type Config struct {
	// URL is the configured database. Its role must be allowed to make a schema.
	URL      string
	PoolSize int32
	// AllowUnsafe says that the user waived durability.
	AllowUnsafe bool
	Rules       *policy.Policy
	Secret      []byte
	Clocks      connector.Clocks
	SendMargin  time.Duration
	// Tokens judge tokens as the doors do.
	Tokens Tokens
	// Now times the checks; nothing that is checked rests on it.
	Now func() time.Time
	Log *slog.Logger
}

// Check is one guarantee.
type Check struct {
	ID string
	// Promise is the guarantee in a sentence.
	Promise string
	// Run shows it, or returns why it could not be shown (notApplicable) or does not hold (any other error).
	Run func(ctx context.Context, b *bench) (Proof, error)
}

// Proof is what a check has seen.
type Proof struct {
	// Control is what worked because it should.
	Control string `json:"control"`
	// Refusal is what was refused, or did not happen, because it must not.
	Refusal string `json:"refusal"`
}

// Status is how a check ended.
type Status string

// The ends of a check. NotApplicable never counts as a pass.
const (
	Pass          Status = "PASS"
	Fail          Status = "FAIL"
	NotApplicable Status = "N-A"
)

// Result is one check's end.
type Result struct {
	ID      string        `json:"id"`
	Promise string        `json:"promise"`
	Status  Status        `json:"status"`
	Reason  string        `json:"reason,omitempty"`
	Took    time.Duration `json:"-"`
	Seconds float64       `json:"seconds"`
	Proof
}

// CheckError says why a check did not pass.
type CheckError struct {
	Status Status
	Reason string
}

// Error gives the reason.
func (e *CheckError) Error() string { return e.Reason }

// fail says that a guarantee does not hold.
func fail(format string, args ...any) error {
	return &CheckError{Status: Fail, Reason: fmt.Sprintf(format, args...)}
}

// notApplicable says why a guarantee could not be shown.
func notApplicable(format string, args ...any) error {
	return &CheckError{Status: NotApplicable, Reason: fmt.Sprintf(format, args...)}
}

// Run runs the checks in their order, one after another, and tells each result to seen as it comes. An error means that the
// run as a whole could not be made (*CannotError) or was cut off (ctx); what was made is gone again either way.
func Run(ctx context.Context, cfg Config, checks []Check, seen func(Result)) (r Report, err error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	began := cfg.Now()
	b, err := newBench(ctx, cfg)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, b.close(ctx)) }()
	r.Clocks, r.Notes = b.shown(), b.scratch.notes
	for _, c := range checks {
		result := one(ctx, cfg, b, c)
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		if strayed := b.scratch.strayed.Load(); strayed != nil {
			return r, strayed // what the check has seen is of no worth
		}
		r.Results = append(r.Results, result)
		seen(result)
	}
	r.Took = cfg.Now().Sub(began)
	return r, nil
}

// longest bounds one check, so that a guard whose absence makes something wait for ever shows as a failure.
const longest = 20 * time.Second

func one(ctx context.Context, cfg Config, b *bench, c Check) Result {
	began := cfg.Now()
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	r := Result{ID: c.ID, Promise: c.Promise, Status: Pass}
	proof, err := contained(ctx, b, c)
	r.Proof = proof
	var known *CheckError
	switch {
	case err == nil:
	case errors.As(err, &known):
		r.Status, r.Reason = known.Status, known.Reason
	default:
		r.Status, r.Reason = Fail, "unexpected: "+err.Error()
	}
	r.Took = cfg.Now().Sub(began)
	r.Seconds = r.Took.Round(time.Millisecond).Seconds()
	return r
}

// contained turns a defect in a check into its failure: the other checks still have something to say.
func contained(ctx context.Context, b *bench, c Check) (p Proof, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fail("the check panicked: %v", v)
		}
	}()
	return c.Run(ctx, b)
}

// Pick returns the named checks in their order, all if none is named. The error names those that do not exist.
func Pick(ids []string) ([]Check, error) {
	all := Checks()
	if len(ids) == 0 {
		return all, nil
	}
	var picked []Check
	var known []string
	for _, c := range all {
		known = append(known, c.ID)
		if slices.Contains(ids, c.ID) {
			picked = append(picked, c)
		}
	}
	for _, id := range ids {
		if !slices.Contains(known, id) {
			return nil, fmt.Errorf("there is no check %q; there are: %s", id, strings.Join(known, ", "))
		}
	}
	return picked, nil
}
