package preview

import "slices"

// State is where a preview stands before and at its claim. What happens after the claim is the execution's state.
type State string

// The states. Each comment says who moves next.
const (
	// NeedsApproval: the requester, by asking for approval.
	NeedsApproval State = "needs_approval"
	// Pending: the approvers.
	Pending State = "pending"
	// Approved: the requester, by applying.
	Approved State = "approved"
	// Denied by policy: nobody.
	Denied State = "denied"
	// Rejected by a person: nobody.
	Rejected State = "rejected"
	// Canceled by its requester: nobody.
	Canceled State = "canceled"
	// Expired: nobody; prepare again.
	Expired State = "expired"
	// Claimed: the service; the execution says the rest.
	Claimed State = "claimed"
)

// States lists every state in the order of the tables.
func States() []State {
	return []State{NeedsApproval, Pending, Approved, Denied, Rejected, Canceled, Expired, Claimed}
}

// Initial are the states a preview may be born in.
func Initial() []State { return []State{NeedsApproval, Approved, Denied} }

// Transitions is the one table of legal moves. It is rendered as rows in Postgres, which a trigger enforces, and as the
// diagram of ARCHITECTURE.md; a test compares the three. What was never approved becomes claimed only by an effect that is found
// after a restore from a backup, which has forgotten the approval.
func Transitions() map[State][]State {
	return map[State][]State{
		NeedsApproval: {Pending, Canceled, Expired, Claimed},
		Pending:       {Approved, Rejected, Canceled, Expired, NeedsApproval, Claimed},
		Approved:      {Claimed, NeedsApproval, Rejected, Canceled, Expired},
		Claimed:       {Approved},
	}
}

// Open reports whether the change can still be decided, applied, canceled or run out of time.
func (s State) Open() bool { return s == NeedsApproval || s == Pending || s == Approved }

// Final reports whether nothing can follow.
func (s State) Final() bool { return len(Transitions()[s]) == 0 }

// CanBecome reports whether the move is legal.
func (s State) CanBecome(next State) bool { return slices.Contains(Transitions()[s], next) }

// Standing is whether an approval still holds when the policy is asked again at apply.
type Standing string

// The standings.
const (
	// Stands: it may be applied.
	Stands Standing = "stands"
	// NeedsMore: the rules became stricter than the votes at hand; it goes back to needs_approval.
	NeedsMore Standing = "needs_more"
	// DeniedNow: the policy denies it; the preview keeps its state until its clock ends.
	DeniedNow Standing = "denied"
)
