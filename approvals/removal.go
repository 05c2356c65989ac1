package approvals

import (
	"context"
	"strings"

	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/preview"
)

// RemovalOrder asks to remove a person as an approver, or to restore them.
type RemovalOrder struct {
	// Person is a subject as tokens name it; an issuer and # before it are passed over.
	Person string
	By     actor.Actor
	Reason string
}

// Removed is what a removal answers: the removal, and how many open changes have lost an approval by it.
type Removed struct {
	Removal preview.Removal
	Lost    int
}

// The bounds of a removal's texts, in characters.
const (
	mostPerson   = 300
	leastRemoval = 5
)

// Remove removes a person as an approver of the caller's tenant. When it returns, every claim that rested on their approvals has been made
// or will be refused: a change that is approved and lacks people without them goes back to needs_approval when it is applied. Removing
// somebody again replaces who, why and when. Only a human admin may. Faults: forbidden, invalid_input.
func (s *Service) Remove(ctx context.Context, o RemovalOrder) (Removed, error) {
	o, err := checkRemoval(o, leastRemoval)
	if err != nil {
		return Removed{}, err
	}
	return s.Store.RemoveApprover(ctx, o)
}

// Restore ends a removal: what the person has approved in a change's present round counts again. Nobody restores themselves. Faults:
// forbidden, invalid_input, not_found.
func (s *Service) Restore(ctx context.Context, o RemovalOrder) error {
	o, err := checkRemoval(o, 0)
	if err != nil {
		return err
	}
	if actor.SamePerson(o.Person, o.By.Person()) {
		return fault.New(fault.Forbidden, nil).WithKey("fault.forbidden.restore_self")
	}
	restored, err := s.Store.RestoreApprover(ctx, o)
	if err == nil && !restored {
		err = fault.New(fault.NotFound, nil).WithKey("fault.not_found.removal").WithNext(fault.NextNone)
	}
	return err
}

// Removals lists who was removed in the caller's tenant, by name. Faults: forbidden.
func (s *Service) Removals(ctx context.Context, who actor.Actor) ([]preview.Removal, error) {
	if !who.May(actor.ReadAll) {
		return nil, notReviewing(who)
	}
	return s.Store.RemovedApprovers(ctx, who.Tenant)
}

func notReviewing(who actor.Actor) error {
	if who.Kind != actor.Human {
		return humansOnly()
	}
	return fault.New(fault.Forbidden, nil).WithKey("fault.forbidden.reviewers_only")
}

func checkRemoval(o RemovalOrder, least int) (RemovalOrder, error) {
	switch {
	case o.By.Kind != actor.Human:
		return o, humansOnly()
	case !o.By.May(actor.RemoveApprover):
		return o, fault.New(fault.Forbidden, nil).WithKey("fault.forbidden.admins_approvers")
	}
	o.Person = strings.TrimSpace(actor.SubjectOf(o.Person))
	if err := preview.CheckText("/person", o.Person, 1, mostPerson); err != nil {
		return o, err
	}
	return o, preview.CheckText("/reason", o.Reason, least, maxText)
}

// removed is the refusal of somebody who was removed.
func removed(r preview.Removal) error {
	return fault.New(fault.Forbidden, fault.Args{"by": r.By, "reason": r.Reason}).WithKey("fault.forbidden.removed").
		WithData(map[string]any{"removed": r})
}
