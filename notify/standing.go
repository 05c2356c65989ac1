package notify

import (
	"slices"
	"time"

	"github.com/cutonce/cutonce/approvals"
	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
)

const (
	// staleAfter bounds how late something is told: an event that was not told in a day, because nothing ran or the receiver was down, is
	// found in the console's history.
	staleAfter = 24 * time.Hour
	// graceFor is how long the service looks for itself before operators are told of an unknown outcome. A look that says that no machine
	// can tell ends it early.
	graceFor = 2 * time.Minute
	// lookAgain is how long an item waits in between.
	lookAgain = 10 * time.Second
)

// Stale reports whether what was at one time is no longer told at another.
func Stale(at, now time.Time) bool { return now.Sub(at) > staleAfter }

func dropped(why string) Told { return Told{Dropped: why} }

// standing says whether an item still holds, by the change as it is now, and concerns this receiver.
func standing(i Item, c commit.Change, r Receiver) Told {
	if Stale(i.At, c.Now) {
		return dropped("it is more than a day old")
	}
	if superseded(i, c) {
		return dropped("something later of the kind is told instead")
	}
	switch i.Kind() {
	case ApprovalWanted, Expiring:
		return asked(c, r)
	case Decided:
		return decided(i, c, r)
	case OutcomeUnknown:
		return unknown(i, c)
	case Settled:
		return settled(i, c, r)
	}
	return dropped("this version tells nobody of it")
}

// superseded reports whether a later event of the change gives rise to the same kind of message.
func superseded(i Item, c commit.Change) bool {
	return i.Kind() != Expiring && slices.ContainsFunc(c.Events, func(e commit.Event) bool { return e.Seq > i.Seq && told[e.Kind] == i.Kind() })
}

// asked drops what waits no longer, and whoever cannot do anything about it.
func asked(c commit.Change, r Receiver) Told {
	if c.Status != commit.StatusPending {
		return dropped("it waits for nobody any more")
	}
	if r.Everything {
		return Told{}
	}
	if c.Preview.Ruling.Confirm {
		if r.Requester {
			return Told{}
		}
		return dropped("only whoever asked for it can act")
	}
	if r.Requester || !seats(missing(c.Preview), r.Groups) {
		return dropped("nobody of the receiver's groups is missing")
	}
	return Told{}
}

// missing is who must still approve.
func missing(p preview.Preview) policy.Requirement {
	var votes []preview.Vote
	for _, v := range p.Votes {
		if p.Counts(v) {
			votes = append(votes, v)
		}
	}
	return approvals.Tally(p.Ruling, votes).Missing
}

func seats(needs policy.Requirement, groups []string) bool {
	return slices.ContainsFunc(needs, func(s policy.Seats) bool {
		return slices.ContainsFunc(s.AnyOf, func(g string) bool { return slices.Contains(groups, g) })
	})
}

// decided tells those who were asked, and whoever asked, what was decided, as long as it stands.
func decided(i Item, c commit.Change, r Receiver) Told {
	approved := i.Event == "approved" || i.Event == "confirmed"
	stands := map[commit.Status]bool{
		commit.StatusRejected: i.Event == "rejected", commit.StatusExpired: i.Event == "expired",
		commit.StatusApproved: approved, commit.StatusApplying: approved, commit.StatusUnknown: approved, commit.StatusApplied: approved,
		commit.StatusNotApplied: approved, commit.StatusPartlyApplied: approved,
	}
	switch {
	case !stands[c.Status]:
		return dropped("it does not stand any more")
	case i.Event == "expired" && c.Preview.RequestedAt.IsZero():
		return dropped("nobody was asked")
	case !r.Everything && !r.Requester && !seats(c.Preview.Ruling.Needs, r.Groups):
		return dropped("nobody of the receiver's groups was asked")
	}
	return Told{}
}

// unknown tells operators once no machine can tell, or once the service has looked long enough.
func unknown(i Item, c commit.Change) Told {
	if c.Status != commit.StatusUnknown {
		return dropped("the outcome is known by now")
	}
	handedOver := slices.ContainsFunc(c.Executions, func(e commit.Execution) bool { return e.NeedsOperator })
	if !handedOver && c.Now.Sub(i.At) < graceFor {
		return Told{Wait: lookAgain}
	}
	return Told{}
}

// settled tells operators only of what they may have been asked for, and of contradictions.
func settled(i Item, c commit.Change, r Receiver) Told {
	applied := c.Status == commit.StatusApplied || c.Status == commit.StatusPartlyApplied
	switch {
	case !applied && c.Status != commit.StatusNotApplied, i.Event == "applied" && !applied, i.Event == "contradicted" && !applied,
		i.Event == "not_applied" && applied && c.Status != commit.StatusPartlyApplied:
		return dropped("it does not stand any more")
	case r.Everything, r.Requester, wasUnknown(i, c), contradicted(c):
		return Told{}
	}
	return dropped("it was never unknown")
}

func wasUnknown(i Item, c commit.Change) bool {
	return slices.ContainsFunc(c.Events, func(e commit.Event) bool { return e.Seq < i.Seq && told[e.Kind] == OutcomeUnknown })
}

func contradicted(c commit.Change) bool {
	return slices.ContainsFunc(c.Executions, func(e commit.Execution) bool { return e.Contradicted })
}
