package commit

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/preview"
)

// Resolution is an operator's statement about an unknown outcome.
type Resolution struct {
	Key
	By      actor.Actor
	Applied bool
	// Reason is why the operator says so; Evidence is what they looked at (a ticket, a log line, a screenshot's address).
	Reason, Evidence string
}

const (
	leastStatement = 5
	mostStatement  = 2000
)

// Resolve settles an unknown outcome by a person's word. Only a human operator may, never the requester. Repeating the same
// statement changes nothing; a contradictory one is a conflict that names the first. "Not applied" is heard only once a late
// effect is no longer to be expected (contract §3). Faults: not_found, forbidden, invalid_input, conflict.
func (s *Service) Resolve(ctx context.Context, r Resolution) (Change, error) {
	r.Tenant = r.By.Tenant
	c, err := s.forOperator(ctx, r.By, r.ID)
	if err != nil {
		return Change{}, err
	}
	if err := checkStatements(r); err != nil {
		return c, err
	}
	e, err := execution(c, r.Item)
	if err != nil {
		return c, err
	}
	if e.StateAt(c.Now) != Unknown {
		return s.alreadySettled(c, e, r)
	}
	if !r.Applied && c.Now.Before(e.SettleAt) {
		return c, fault.New(fault.Conflict, fault.Args{"seconds": seconds(e.SettleAt.Sub(c.Now))}).
			WithKey("fault.conflict.too_early").WithNext(fault.NextRetryLater).After(e.SettleAt.Sub(c.Now))
	}
	moved, err := s.Store.Resolve(ctx, r)
	if err != nil {
		return c, err
	}
	fresh, _, err := s.Store.Load(ctx, r.Tenant, r.ID, true)
	if err != nil {
		return c, err
	}
	if moved {
		s.Observe.Settled(c.Preview.Action, fresh.Status)
		return fresh, nil
	}
	e, err = execution(fresh, r.Item)
	if err != nil {
		return fresh, err
	}
	return s.alreadySettled(fresh, e, r)
}

func checkStatements(r Resolution) error {
	all := fault.New(fault.InvalidInput, nil)
	for _, x := range []struct{ path, text string }{{"/reason", r.Reason}, {"/evidence", r.Evidence}} {
		if err := preview.CheckText(x.path, x.text, leastStatement, mostStatement); err != nil {
			all.Fields = append(all.Fields, fault.From(err).Fields...)
		}
	}
	if len(all.Fields) > 0 {
		return all
	}
	return nil
}

// alreadySettled answers a statement about an outcome that is known: the same one is a repetition, another a conflict.
func (s *Service) alreadySettled(c Change, e Execution, r Resolution) (Change, error) {
	said := NotApplied
	if r.Applied {
		said = Applied
	}
	settled := e.StateAt(c.Now)
	switch {
	case settled == said && e.Evidence == ByStatement:
		return c, nil
	case settled == Applied || settled == NotApplied:
		return c, fault.New(fault.Conflict, fault.Args{"by": settledBy(e), "outcome": string(settled), "reason": e.ResolvedWhy}).
			WithKey("fault.conflict.resolved").WithNext(fault.NextNone)
	}
	return c, fault.New(fault.Conflict, fault.Args{"status": string(c.Status)}).WithKey("fault.conflict.decided")
}

func settledBy(e Execution) string {
	if e.ResolvedBy != "" {
		return e.ResolvedBy
	}
	return string(e.Evidence)
}

// Probe looks at the target now, for an operator. The answer is the change after the look.
func (s *Service) Probe(ctx context.Context, who actor.Actor, id preview.ID) (Change, error) {
	c, err := s.forOperator(ctx, who, id)
	if err != nil {
		return Change{}, err
	}
	if c.Status != StatusUnknown {
		return c, fault.New(fault.Conflict, fault.Args{"status": string(c.Status)}).WithKey("fault.conflict.decided").
			WithNext(fault.NextCheckStatus)
	}
	if _, err := s.Store.MarkLapsed(ctx, sweepBatch); err != nil {
		return c, err
	}
	if err := s.probe(ctx, Key{Tenant: who.Tenant, ID: id}); err != nil {
		return c, err
	}
	fresh, _, err := s.Store.Load(ctx, who.Tenant, id, true)
	return fresh, err
}

// forOperator loads a change for a person who may settle it.
func (s *Service) forOperator(ctx context.Context, who actor.Actor, id preview.ID) (Change, error) {
	c, _, err := s.Store.Load(ctx, who.Tenant, id, true)
	if err != nil {
		return Change{}, err
	}
	forbid := func(key string) error { return fault.New(fault.Forbidden, nil).WithKey(key) }
	switch {
	case !preview.MayRead(who, c.Preview):
		return Change{}, fault.New(fault.NotFound, nil)
	case who.Kind != actor.Human:
		return Change{}, forbid("fault.forbidden.humans_only")
	case !who.HasRole(actor.RoleOperator, actor.RoleAdmin):
		return Change{}, forbid("fault.forbidden.operators_only")
	case c.Preview.Requester.Involves(who.Person()):
		return Change{}, forbid("fault.forbidden.own_change")
	}
	return c, nil
}

func execution(c Change, item int) (Execution, error) {
	for _, e := range c.Executions {
		if e.Item == item {
			return e, nil
		}
	}
	return Execution{}, fault.New(fault.Conflict, fault.Args{"status": string(c.Status)}).WithKey("fault.conflict.decided")
}

func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

func newAttemptID() uuid.UUID { return uuid.New() }
