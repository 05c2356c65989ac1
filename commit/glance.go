package commit

import (
	"context"
	"time"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/preview"
)

// Glance is what a target shows now, beside what its change was prepared on. It proves nothing about an outcome, and an apply looks
// again by itself.
type Glance struct {
	// Moved says that the target is no longer as it was prepared on: an apply would be refused.
	Moved   bool
	Columns []Column
}

// Glance reads a change's target, for whoever decides on it or applies it, and waits no longer than within. Faults: not_found,
// target_unavailable.
func (s *Service) Glance(ctx context.Context, who actor.Actor, p preview.Preview, within time.Duration) (Glance, error) {
	if !preview.MayRead(who, p) {
		return Glance{}, fault.New(fault.NotFound, nil)
	}
	action, ok := s.Actions.Action(p.Action)
	if !ok {
		return Glance{}, staleAction()
	}
	reading, err := promptly(ctx, s, within, func(ctx context.Context) (connector.Reading, error) {
		return action.Connector.Read(ctx, p.Plan.Target)
	})
	if err != nil {
		return Glance{}, fault.New(fault.TargetUnavailable, nil).Because(err)
	}
	return Glance{Moved: p.Plan.Moved(reading), Columns: Columns(p.Plan, reading.Values)}, nil
}

// promptly is prompt without its grace: a person waits for the page.
func promptly[T any](ctx context.Context, s *Service, within time.Duration, call func(context.Context) (T, error)) (out T, err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	type answer struct {
		out T
		err error
	}
	answered := make(chan answer, 1)
	go func() {
		defer cancel()
		out, err := contained(s, func() (T, error) { return call(ctx) })
		answered <- answer{out, err}
	}()
	select {
	case a := <-answered:
		return a.out, a.err
	case <-ctx.Done():
		return out, ctx.Err()
	}
}

// WhyNotApply is nil if nothing of ours stands in the way of an apply by this caller now, else the refusal that Apply would give them: what
// they lack, a freeze, or the policy. After approval_required Apply also sends the change back for approval; this moves nothing. The
// target's own permissions and whether the target is held are asked at Apply, which asks all of this anew.
func (s *Service) WhyNotApply(ctx context.Context, who actor.Actor, id preview.ID) error {
	c, epochs, err := s.Store.Load(ctx, who.Tenant, id, false)
	if err != nil {
		return err
	}
	if err := s.mayApply(who, "", c); err != nil {
		return err
	}
	if c.Status != StatusApproved {
		return refusal(c)
	}
	if _, err := s.served(c, epochs); err != nil {
		return err
	}
	standing, ruling, err := s.Recheck.Standing(ctx, c.Preview, c.Now)
	switch {
	case err != nil || standing == preview.Stands:
		return err
	case standing == preview.DeniedNow:
		return deniedNow(ruling)
	}
	return wantsMore(c.Preview)
}
