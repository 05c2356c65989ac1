package commit

import (
	"context"
	"time"

	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
)

// ProposalFor is how long one operator's word waits for a second one where the action asks for two. A trigger counts the same hour.
// After that it is on record and no longer stands, so that a first word that nobody will confirm is no dead end.
const ProposalFor = time.Hour

// Statement is what one operator has said of an outcome.
type Statement struct {
	Person   string    `json:"person"`
	Name     string    `json:"name"`
	Applied  bool      `json:"applied"`
	Reason   string    `json:"reason"`
	Evidence string    `json:"evidence"`
	At       time.Time `json:"at"`
}

// Standing is the statement that waits for another operator's at time now, nil if there is none.
func (e Execution) Standing(now time.Time) *Statement {
	n := len(e.Statements)
	if e.Resolvers < 2 || n == 0 || e.StateAt(now) != Unknown || !now.Before(e.Statements[n-1].At.Add(ProposalFor)) {
		return nil
	}
	return &e.Statements[n-1]
}

// hearing is what becomes of a statement.
type hearing string

const (
	settles     hearing = "settles"
	proposes    hearing = "proposes"
	repeats     hearing = "repeats"
	contradicts hearing = "contradicts"
)

// hear decides what a statement is. One operator is enough unless the action asks for two. Then the first word is a proposal, which
// its author may correct; another operator who says the same settles the outcome, and one who says otherwise contradicts it.
func hear(e Execution, person string, applied bool, now time.Time) hearing {
	first := e.Standing(now)
	switch {
	case e.Resolvers < 2:
		return settles
	case first == nil:
		return proposes
	case !actor.SamePerson(first.Person, person) && first.Applied == applied:
		return settles
	case !actor.SamePerson(first.Person, person):
		return contradicts
	case first.Applied == applied:
		return repeats
	}
	return proposes
}

// hearAndRecord records a statement about an unknown outcome, hearing it anew if somebody else spoke meanwhile.
func (s *Service) hearAndRecord(ctx context.Context, c Change, e Execution, r Resolution) (Change, error) {
	for range epochRetries {
		heard := hear(e, r.By.Person(), r.Applied, c.Now)
		switch heard {
		case repeats:
			return c, nil
		case contradicts:
			return c, contradicted(*e.Standing(c.Now))
		}
		r.Settles, r.Seen, r.With = heard == settles, e.stated(), nil
		if first := e.Standing(c.Now); first != nil && r.Settles {
			r.With = []string{first.Name}
		}
		moved, err := s.Store.Resolve(ctx, r)
		if err != nil {
			return c, err
		}
		if c, e, err = s.loadItem(ctx, r.Key); err != nil {
			return c, err
		}
		switch {
		case moved && r.Settles:
			s.Observe.Settled(c.Preview.Tenant, c.Preview.Action, c.Status)
			return c, nil
		case moved:
			return c, nil
		case e.StateAt(c.Now) != Unknown:
			return s.alreadySettled(c, e, r)
		}
	}
	return c, fault.New(fault.Conflict, nil).WithNext(fault.NextRetryLater)
}

// stated is how many statements there are. Where one is enough, the first one settles.
func (e Execution) stated() int { return len(e.Statements) }

func contradicted(first Statement) error {
	return fault.New(fault.Conflict, fault.Args{"by": first.Name, "reason": first.Reason}).
		WithKey("fault.conflict.proposed." + string(saying(first.Applied))).WithNext(fault.NextContactOperator)
}

// saying is the state that a statement says the execution is in.
func saying(applied bool) State {
	if applied {
		return Applied
	}
	return NotApplied
}
