package commit_test

import (
	"slices"
	"testing"
	"time"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/preview"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func at(s commit.State, lease time.Duration) commit.Execution {
	return commit.Execution{State: s, LeaseUntil: now.Add(lease)}
}

func TestStatusOfAPreview(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		state    preview.State
		deadline time.Duration
		want     commit.Status
	}{
		{preview.NeedsApproval, 1, commit.StatusNeedsApproval},
		{preview.NeedsApproval, 0, commit.StatusExpired},
		{preview.Pending, 1, commit.StatusPending},
		{preview.Pending, 0, commit.StatusExpired},
		{preview.Approved, 1, commit.StatusApproved},
		{preview.Approved, 0, commit.StatusExpired},
		{preview.Approved, -time.Hour, commit.StatusExpired},
		{preview.Denied, -time.Hour, commit.StatusDenied},
		{preview.Rejected, -time.Hour, commit.StatusRejected},
		{preview.Canceled, -time.Hour, commit.StatusCanceled},
		{preview.Expired, time.Hour, commit.StatusExpired},
		// After the claim the preview's own clock says nothing.
		{preview.Claimed, -time.Hour, commit.StatusApplying},
	} {
		p := preview.Preview{State: tc.state, Deadline: now.Add(tc.deadline)}
		if got := commit.StatusOf(p, nil, now); got != tc.want {
			t.Errorf("%s, deadline in %s: got %s, want %s", tc.state, tc.deadline, got, tc.want)
		}
	}
}

func TestStatusOfExecutions(t *testing.T) {
	t.Parallel()
	live, lapsed := at(commit.Applying, 1), at(commit.Applying, 0)
	applied, not := at(commit.Applied, -time.Hour), at(commit.NotApplied, -time.Hour)
	unknown, unsent := at(commit.Unknown, -time.Hour), at(commit.NotSent, -time.Hour)
	for _, tc := range []struct {
		name string
		all  []commit.Execution
		want commit.Status
	}{
		{"a live lease", []commit.Execution{live}, commit.StatusApplying},
		{"a lapsed lease, at once", []commit.Execution{lapsed}, commit.StatusUnknown},
		{"unknown", []commit.Execution{unknown}, commit.StatusUnknown},
		{"applied", []commit.Execution{applied}, commit.StatusApplied},
		{"not applied", []commit.Execution{not}, commit.StatusNotApplied},
		{"any applying wins", []commit.Execution{unknown, applied, live, not}, commit.StatusApplying},
		{"an item to be sent again is applying", []commit.Execution{applied, unsent}, commit.StatusApplying},
		{"else any unknown", []commit.Execution{applied, lapsed, not}, commit.StatusUnknown},
		{"all applied", []commit.Execution{applied, applied, applied}, commit.StatusApplied},
		{"none applied", []commit.Execution{not, not}, commit.StatusNotApplied},
		{"some applied", []commit.Execution{applied, not, applied}, commit.StatusPartlyApplied},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p := preview.Preview{State: preview.Claimed}
			if got := commit.StatusOf(p, tc.all, now); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			back := slices.Clone(tc.all)
			slices.Reverse(back)
			if got := commit.StatusOf(p, back, now); got != tc.want {
				t.Errorf("in reverse: got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestWhatIsFinalStaysFinal(t *testing.T) {
	t.Parallel()
	if next := commit.Transitions()[commit.Applied]; len(next) != 0 {
		t.Errorf("applied may become %v, want nothing", next)
	}
	if next := commit.Transitions()[commit.NotApplied]; !slices.Equal(next, []commit.State{commit.Applied}) {
		t.Errorf("not_applied may become %v, want applied alone (contradicted)", next)
	}
}

func TestIdempotencyKeyIsConstantAndItsOwn(t *testing.T) {
	t.Parallel()
	id, other := preview.NewID(), preview.NewID()
	secret := []byte("secret")
	key := commit.IdempotencyKey(secret, "acme", id, 0)
	if got := commit.IdempotencyKey(secret, "acme", id, 0); got != key {
		t.Errorf("got %s the second time, want %s", got, key)
	}
	for name, another := range map[string]string{
		"tenant": commit.IdempotencyKey(secret, "acm", id, 0), "preview": commit.IdempotencyKey(secret, "acme", other, 0),
		"item": commit.IdempotencyKey(secret, "acme", id, 1), "secret": commit.IdempotencyKey([]byte("other"), "acme", id, 0),
	} {
		if another == key {
			t.Errorf("another %s has the same key", name)
		}
	}
}
