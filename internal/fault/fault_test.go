package fault_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/cutonce/cutonce/internal/fault"
)

func TestAForeignErrorIsInternal(t *testing.T) {
	t.Parallel()
	f := fault.From(fmt.Errorf("opening: %w", errors.New("secret table")))
	if f.Code != fault.Internal || f.Retryable || f.Next != fault.NextContactOperator {
		t.Errorf("got %+v, want internal, for an operator", f)
	}
}

type outage struct{}

func (outage) Error() string { return "connection refused" }
func (outage) Passing() bool { return true }

func TestAPassingErrorMayBeRetried(t *testing.T) {
	t.Parallel()
	f := fault.From(fmt.Errorf("reading: %w", outage{}))
	if f.Code != fault.Internal || !f.Retryable || f.Next != fault.NextRetryLater || f.RetryAfter <= 0 {
		t.Errorf("got %+v, want internal, to be retried later", f)
	}
}

func TestCodesMatch(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("applying: %w", fault.New(fault.TargetBusy, nil))
	if !errors.Is(err, fault.TargetBusy) || errors.Is(err, fault.Drifted) || fault.CodeOf(err) != fault.TargetBusy {
		t.Errorf("got %s, want target_busy and nothing else", fault.CodeOf(err))
	}
}

// Retryable is true only where nothing can have been sent.
func TestNothingThatMayHaveLeftIsRetryable(t *testing.T) {
	t.Parallel()
	may := map[fault.Code]bool{fault.TargetBusy: true, fault.TargetUnavailable: true, fault.RateLimited: true, fault.TooManyOpen: true}
	for code, rule := range fault.Codes() {
		if rule.Retryable != may[code] {
			t.Errorf("%s: got retryable %t, want %t", code, rule.Retryable, may[code])
		}
	}
}
