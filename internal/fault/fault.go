// Package fault is the one vocabulary for everything that can go wrong on purpose.
//
// Domain code returns a *Fault; every transport renders the same one. Anything that is not a Fault is internal: its text
// never leaves the process. A Fault carries no sentence, only a catalogue key and arguments, so that the same refusal reads
// in the caller's language on every door. Start at New and at the Codes table.
package fault

import (
	"errors"
	"fmt"
	"maps"
	"time"
)

// Code is a stable, documented name of a refusal (docs/errors.md). Codes are matched with errors.Is.
type Code string

// Error makes a Code usable as the target of errors.Is.
func (c Code) Error() string { return string(c) }

// The codes. Each has its kind, default next step and HTTP status in docs/errors.md.
const (
	InvalidInput        Code = "invalid_input"
	InvalidNumber       Code = "invalid_number"
	CurrencyMismatch    Code = "currency_mismatch"
	ExpectMismatch      Code = "expect_mismatch"
	NotFound            Code = "not_found"
	Forbidden           Code = "forbidden"
	Unauthenticated     Code = "unauthenticated"
	InsufficientScope   Code = "insufficient_scope"
	PolicyDenied        Code = "policy_denied"
	ApprovalRequired    Code = "approval_required"
	Rejected            Code = "rejected"
	Expired             Code = "expired"
	Canceled            Code = "canceled"
	DigestMismatch      Code = "digest_mismatch"
	Drifted             Code = "drifted"
	TargetBusy          Code = "target_busy"
	TargetRefused       Code = "target_refused"
	TargetUnavailable   Code = "target_unavailable"
	OutcomeUnknown      Code = "outcome_unknown"
	IdempotencyConflict Code = "idempotency_conflict"
	InProgress          Code = "in_progress"
	Conflict            Code = "conflict"
	Frozen              Code = "frozen"
	ExposureExceeded    Code = "exposure_exceeded"
	RateLimited         Code = "rate_limited"
	TooManyOpen         Code = "too_many_open"
	TooLarge            Code = "too_large"
	Internal            Code = "internal"
)

// Kind groups codes by whose move it is: the caller's input, the business, or the machinery.
type Kind string

// The kinds of a code.
const (
	Validation Kind = "validation"
	Business   Kind = "business"
	System     Kind = "system"
)

// Next is the step that the caller should take.
type Next string

// The steps. NextNone means that there is nothing left to do.
const (
	NextApply           Next = "apply"
	NextRequestApproval Next = "request_approval"
	NextAwaitApproval   Next = "await_approval"
	NextCheckStatus     Next = "check_status"
	NextPrepareAgain    Next = "prepare_again"
	NextFixInput        Next = "fix_input"
	NextRetryLater      Next = "retry_later"
	NextGetPermission   Next = "get_permission"
	NextContactOperator Next = "contact_operator"
	NextNone            Next = "none"
)

// Rule is what a code always means: its kind, its usual next step, and whether the same call may be repeated.
// Retryable is true only where nothing can have been sent to a target.
type Rule struct {
	Kind      Kind
	Next      Next
	Retryable bool
}

var rules = map[Code]Rule{
	InvalidInput:        {Validation, NextFixInput, false},
	InvalidNumber:       {Validation, NextFixInput, false},
	CurrencyMismatch:    {Validation, NextFixInput, false},
	ExpectMismatch:      {Validation, NextFixInput, false},
	NotFound:            {Business, NextFixInput, false},
	Forbidden:           {Business, NextGetPermission, false},
	Unauthenticated:     {Business, NextGetPermission, false},
	InsufficientScope:   {Business, NextGetPermission, false},
	PolicyDenied:        {Business, NextNone, false},
	ApprovalRequired:    {Business, NextRequestApproval, false},
	Rejected:            {Business, NextNone, false},
	Expired:             {Business, NextPrepareAgain, false},
	Canceled:            {Business, NextPrepareAgain, false},
	DigestMismatch:      {Business, NextFixInput, false},
	Drifted:             {Business, NextPrepareAgain, false},
	TargetBusy:          {Business, NextRetryLater, true},
	TargetRefused:       {Business, NextPrepareAgain, false},
	TargetUnavailable:   {System, NextRetryLater, true},
	OutcomeUnknown:      {System, NextCheckStatus, false},
	IdempotencyConflict: {Validation, NextFixInput, false},
	InProgress:          {Business, NextCheckStatus, false},
	Conflict:            {Business, NextCheckStatus, false},
	Frozen:              {Business, NextContactOperator, false},
	ExposureExceeded:    {Business, NextContactOperator, false},
	RateLimited:         {System, NextRetryLater, true},
	TooManyOpen:         {Business, NextRetryLater, true},
	TooLarge:            {Validation, NextFixInput, false},
	Internal:            {System, NextContactOperator, false},
}

// Codes returns every code with its rule, for the tables of the transports and for docs/errors.md.
func Codes() map[Code]Rule { return maps.Clone(rules) }

// Args fill the placeholders of a catalogue text. Values are strings, integers, times, or types with a String method.
type Args map[string]any

// Field is one thing wrong with one place of the input. Path is a JSON pointer ("/new_daily_budget_krw").
type Field struct {
	Path string
	Key  string
	Args Args
}

// Fault is one refusal. Key names its sentence in the catalogue.
type Fault struct {
	Code       Code
	Key        string
	Args       Args
	Fields     []Field
	Next       Next
	Retryable  bool
	RetryAfter time.Duration
	// Scopes is every scope that the call needs, for insufficient_scope only.
	Scopes []string
	// Data is extra structure for machines (the three columns of a drift, say), already safe to show.
	Data map[string]any

	cause error
}

// New makes a Fault with its code's usual next step. The sentence's key is "fault." + code unless WithKey changes it.
func New(code Code, args Args) *Fault {
	rule, ok := rules[code]
	if !ok {
		panic("fault: unknown code " + string(code))
	}
	return &Fault{Code: code, Key: "fault." + string(code), Args: args, Next: rule.Next, Retryable: rule.Retryable}
}

// WithKey chooses a more precise sentence.
func (f *Fault) WithKey(key string) *Fault { f.Key = key; return f }

// WithNext overrides the code's usual next step.
func (f *Fault) WithNext(next Next) *Fault { f.Next = next; return f }

// WithField adds one faulty place of the input.
func (f *Fault) WithField(path, key string, args Args) *Fault {
	f.Fields = append(f.Fields, Field{Path: path, Key: key, Args: args})
	return f
}

// WithData adds structure for machines.
func (f *Fault) WithData(data map[string]any) *Fault { f.Data = data; return f }

// After says when the call may be repeated.
func (f *Fault) After(d time.Duration) *Fault { f.RetryAfter = d; return f }

// Because keeps the cause for logs. It is never shown to a caller.
func (f *Fault) Because(err error) *Fault { f.cause = err; return f }

// Error is for logs only; transports render Key and Args instead.
func (f *Fault) Error() string {
	if f.cause != nil {
		return fmt.Sprintf("%s (%s): %v", f.Code, f.Key, f.cause)
	}
	return fmt.Sprintf("%s (%s)", f.Code, f.Key)
}

// Unwrap gives logs the cause.
func (f *Fault) Unwrap() error { return f.cause }

// Is matches a Fault against a Code.
func (f *Fault) Is(target error) bool {
	code, ok := target.(Code)
	return ok && code == f.Code
}

// From returns err's Fault, or the internal fault (with err kept for the log) if it is none. An error that says of itself that
// it is passing, and that repeating the call is safe, becomes an internal fault that may be retried.
func From(err error) *Fault {
	var f *Fault
	if errors.As(err, &f) {
		return f
	}
	var p interface{ Passing() bool }
	if errors.As(err, &p) && p.Passing() {
		passing := New(Internal, nil).WithKey("fault.internal.passing").WithNext(NextRetryLater).After(2 * time.Second)
		passing.Retryable = true
		return passing.Because(err)
	}
	return New(Internal, nil).Because(err)
}

// CodeOf returns the code of err, and Internal for anything that is not a Fault.
func CodeOf(err error) Code { return From(err).Code }
