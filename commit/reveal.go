package commit

import (
	"context"

	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/preview"
)

// Reveal gives a change to somebody who is to be shown the values of its sensitive fields, once it is durably on record that they are:
// who and which fields, never the values. It moves nothing, and what was approved stays approved. Faults: not_found, forbidden, and
// conflict where nothing is hidden. When an error is returned, nothing may be shown.
func (s *Service) Reveal(ctx context.Context, who actor.Actor, id preview.ID) (Change, error) {
	c, err := s.visible(ctx, who, id, false)
	if err != nil {
		return Change{}, err
	}
	if !preview.MayReveal(who, c.Preview) {
		return Change{}, fault.New(fault.Forbidden, nil).WithKey("fault.forbidden.reveal")
	}
	fields := c.Preview.Plan.SensitiveFields()
	if len(fields) == 0 {
		return Change{}, fault.New(fault.Conflict, nil).WithKey("fault.conflict.nothing_hidden").WithNext(fault.NextNone)
	}
	recorded, err := s.Store.Revealed(ctx, who.Tenant, id, who, fields)
	switch {
	case err != nil:
		return Change{}, err
	case !recorded:
		return Change{}, fault.New(fault.NotFound, nil)
	}
	return s.Status(ctx, who, id, 0, true)
}
