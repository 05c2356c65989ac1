package connector

import (
	"errors"
	"fmt"

	"github.com/cutonce/cutonce/internal/visible"
)

// Class is what an error of Execute proves.
type Class string

// The classes. Unknown is the default: only the other three are proofs.
const (
	ClassApplied Class = "applied"
	ClassNotSent Class = "not_sent"
	ClassRefused Class = "refused"
	ClassDrifted Class = "drifted"
	ClassUnknown Class = "unknown"
)

// NotSentError proves that no byte of the request left.
type NotSentError struct{ Cause error }

// Error is for logs.
func (e *NotSentError) Error() string { return fmt.Sprintf("nothing was sent: %v", e.Cause) }

// Unwrap gives the cause.
func (e *NotSentError) Unwrap() error { return e.Cause }

// NotSent wraps the proof that no byte left.
func NotSent(cause error) error { return &NotSentError{Cause: cause} }

// RejectedError proves that the target definitely refused and changed nothing. Reason is the target's words, redacted.
type RejectedError struct {
	Reason string
	Status int
}

// Error is for logs.
func (e *RejectedError) Error() string {
	return fmt.Sprintf("the target refused (%d): %s", e.Status, e.Reason)
}

// Rejected makes the proof of a refusal. Hidden characters of the target's words are made visible and the length is bounded.
func Rejected(status int, reason string) error {
	const most = 300
	if r := []rune(reason); len(r) > most {
		reason = string(r[:most]) + "…"
	}
	return &RejectedError{Reason: visible.Text(reason), Status: status}
}

// DriftedError proves that the target refused because it is no longer at the plan's version.
type DriftedError struct{ Now *Reading }

// Error is for logs.
func (e *DriftedError) Error() string { return "the target moved" }

// Classify says what an error of Execute proves. A proof that is wrapped in something else still counts; a panic, a context
// error or anything else does not.
func Classify(err error) Class {
	var notSent *NotSentError
	var refused *RejectedError
	var drifted *DriftedError
	switch {
	case err == nil:
		return ClassApplied
	case errors.As(err, &notSent):
		return ClassNotSent
	case errors.As(err, &refused):
		return ClassRefused
	case errors.As(err, &drifted):
		return ClassDrifted
	}
	return ClassUnknown
}
