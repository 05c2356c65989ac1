package commit

import (
	"time"

	"github.com/cutonce/cutonce/preview"
)

// Status is the one public status of a change, which every transport shows.
type Status string

// The public statuses. Each comment says who moves next.
const (
	// StatusNeedsApproval: the requester, by asking for approval.
	StatusNeedsApproval Status = "needs_approval"
	// StatusPending: the approvers.
	StatusPending Status = "pending"
	// StatusApproved: the requester, by applying.
	StatusApproved Status = "approved"
	// StatusDenied: nobody.
	StatusDenied Status = "denied"
	// StatusRejected: nobody.
	StatusRejected Status = "rejected"
	// StatusCanceled: nobody.
	StatusCanceled Status = "canceled"
	// StatusExpired: nobody; prepare again.
	StatusExpired Status = "expired"
	// StatusApplying: the service.
	StatusApplying Status = "applying"
	// StatusUnknown: the service, then an operator.
	StatusUnknown Status = "unknown"
	// StatusApplied: nobody.
	StatusApplied Status = "applied"
	// StatusNotApplied: nobody, unless proof of the effect turns up.
	StatusNotApplied Status = "not_applied"
	// StatusPartlyApplied (changes of several items only): nobody.
	StatusPartlyApplied Status = "partly_applied"
)

// Statuses lists every public status in the order of a change's life.
func Statuses() []Status {
	return []Status{
		StatusNeedsApproval, StatusPending, StatusApproved, StatusDenied, StatusRejected, StatusCanceled, StatusExpired,
		StatusApplying, StatusUnknown, StatusApplied, StatusNotApplied, StatusPartlyApplied,
	}
}

// State is where an execution stands.
type State string

// The states of an execution.
const (
	// Applying: the sender; after the lease it reads as Unknown.
	Applying State = "applying"
	// NotSent: the requester; the send provably never left and the preview is approved again.
	NotSent State = "not_sent"
	// Unknown: the reconciler, then an operator.
	Unknown State = "unknown"
	// Applied: nobody.
	Applied State = "applied"
	// NotApplied: nobody; only proof of the effect moves it.
	NotApplied State = "not_applied"
)

// States lists every state of an execution.
func States() []State { return []State{Applying, NotSent, Unknown, Applied, NotApplied} }

// Transitions is the one table of legal moves of an execution (see preview.Transitions). What never left is found applied, or called
// unknown, only after a restore from a backup.
func Transitions() map[State][]State {
	return map[State][]State{
		Applying:   {Applied, NotApplied, NotSent, Unknown},
		NotSent:    {Applying, Applied, Unknown},
		Unknown:    {Applied, NotApplied},
		NotApplied: {Applied},
	}
}

// Reason says why a change was not applied, or how an effect is known.
type Reason string

// The reasons of not_applied.
const (
	NeverLeft  Reason = "never_left"
	Refused    Reason = "refused"
	Drifted    Reason = "drifted"
	LookedUp   Reason = "looked_up"
	ByOperator Reason = "resolved"
)

// Evidence says what an outcome rests on.
type Evidence string

// The kinds of evidence.
const (
	ByReceipt   Evidence = "receipt"
	ByLookup    Evidence = "lookup"
	ByReplay    Evidence = "replay"
	ByStatement Evidence = "operator"
	NoneNeeded  Evidence = "none" // nothing left, or the drift check refused: no send took place
)

// StatusOf folds a preview and its executions into the public status at the database's time now. A lapsed deadline reads as
// expired and a lapsed lease as unknown at once, without waiting for any worker.
func StatusOf(p preview.Preview, executions []Execution, now time.Time) Status {
	if p.State != preview.Claimed {
		if p.State.Open() && !now.Before(p.Deadline) {
			return StatusExpired
		}
		return Status(p.State)
	}
	return fold(executions, now)
}

func fold(executions []Execution, now time.Time) Status {
	counts := map[State]int{}
	for _, e := range executions {
		counts[e.StateAt(now)]++
	}
	switch n := len(executions); {
	case counts[Applying] > 0 || counts[NotSent] > 0 || n == 0:
		return StatusApplying
	case counts[Unknown] > 0:
		return StatusUnknown
	case counts[Applied] == n:
		return StatusApplied
	case counts[NotApplied] == n:
		return StatusNotApplied
	}
	return StatusPartlyApplied
}
