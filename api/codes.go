package api

import (
	"errors"
	"net/http"

	"github.com/cutonce/cutonce/internal/fault"
)

// statuses is the one table from codes to HTTP statuses; docs/errors.md and openapi.yaml say the same, and a test compares
// them. 422 is kept for a reused idempotency key alone, as clients of the Idempotency-Key draft expect.
var statuses = map[fault.Code]int{
	fault.InvalidInput:        http.StatusBadRequest,
	fault.InvalidNumber:       http.StatusBadRequest,
	fault.CurrencyMismatch:    http.StatusBadRequest,
	fault.ExpectMismatch:      http.StatusBadRequest,
	fault.NotFound:            http.StatusNotFound,
	fault.Forbidden:           http.StatusForbidden,
	fault.Unauthenticated:     http.StatusUnauthorized,
	fault.InsufficientScope:   http.StatusForbidden,
	fault.PolicyDenied:        http.StatusForbidden,
	fault.ApprovalRequired:    http.StatusConflict,
	fault.Rejected:            http.StatusConflict,
	fault.Expired:             http.StatusGone,
	fault.Canceled:            http.StatusConflict,
	fault.DigestMismatch:      http.StatusConflict,
	fault.Drifted:             http.StatusConflict,
	fault.TargetBusy:          http.StatusConflict,
	fault.TargetRefused:       http.StatusConflict,
	fault.TargetUnavailable:   http.StatusServiceUnavailable,
	fault.OutcomeUnknown:      http.StatusGatewayTimeout,
	fault.IdempotencyConflict: http.StatusUnprocessableEntity,
	fault.InProgress:          http.StatusConflict,
	fault.Conflict:            http.StatusConflict,
	fault.Frozen:              http.StatusLocked,
	fault.ExposureExceeded:    http.StatusForbidden,
	fault.RateLimited:         http.StatusTooManyRequests,
	fault.TooManyOpen:         http.StatusConflict,
	fault.TooLarge:            http.StatusRequestEntityTooLarge,
	fault.Internal:            http.StatusInternalServerError,
}

// Status is the HTTP status of a code.
func Status(code fault.Code) int { return statuses[code] }

// misfit is a refusal of HTTP itself (405, 415) whose status says more than its code's.
type misfit struct {
	status int
	error
}

func (m misfit) Unwrap() error { return m.error }

func withStatus(status int, f *fault.Fault) error { return misfit{status: status, error: f} }

// statusOf is the status of a refusal. An internal fault that may be retried (the sign-in service cannot be reached, say) is
// a 503, so that machines between us and the caller see it as passing.
func statusOf(code fault.Code, err error) int {
	var m misfit
	switch {
	case errors.As(err, &m):
		return m.status
	case code == fault.Internal && fault.From(err).Retryable:
		return http.StatusServiceUnavailable
	}
	return statuses[code]
}
