package commit

import (
	"context"
	"time"

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

	// Settles says that this statement is the last one needed; With names who has said the same before, and Seen is how many
	// statements there were. Resolve sets them.
	Settles bool
	With    []string
	Seen    int
}

const (
	leastStatement = 5
	mostStatement  = 2000
)

// Resolve settles an unknown outcome by a person's word, once the target was asked and could not tell. Only a human operator may,
// never the requester. Repeating the same statement changes nothing; a contradictory one is a conflict that names the first. "Not
// applied" is heard only once a late effect is no longer to be expected (Execution.SettleAt). Where the action asks for two
// operators, the first one's word is a proposal and the outcome stays unknown: see hear. Faults: not_found, forbidden,
// invalid_input, conflict.
func (s *Service) Resolve(ctx context.Context, r Resolution) (Change, error) {
	r.Tenant = r.By.Tenant
	c, err := s.forOperator(ctx, r.By, r.ID, actor.Resolve)
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
	if c, e, err = s.lookFirst(ctx, c, r.Key); err != nil {
		return c, err
	}
	if e.StateAt(c.Now) != Unknown {
		return s.alreadySettled(c, e, r)
	}
	return s.hearAndRecord(ctx, c, e, r)
}

// lookFirst asks the target once more before a person's word counts: proof beats a statement, and a mistaken "it did not
// happen" would let the change be made a second time. A target that cannot tell leaves the word to the person.
func (s *Service) lookFirst(ctx context.Context, c Change, k Key) (Change, Execution, error) {
	if err := s.markLapsed(ctx); err != nil {
		return c, Execution{}, err
	}
	if err := s.probe(ctx, k); err != nil {
		return c, Execution{}, err
	}
	return s.loadItem(ctx, k)
}

// loadItem reads a change for an operator, and one item of it.
func (s *Service) loadItem(ctx context.Context, k Key) (Change, Execution, error) {
	c, _, err := s.Store.Load(ctx, k.Tenant, k.ID, true)
	if err != nil {
		return c, Execution{}, err
	}
	c = s.withKeys(c)
	e, err := execution(c, k.Item)
	return c, e, err
}

// withKeys adds what the target calls each item, so that a person can search the target's own log for it.
func (s *Service) withKeys(c Change) Change {
	for i := range c.Executions {
		c.Executions[i].Key = IdempotencyKey(s.Secret, c.Preview.Tenant, c.Preview.ID, c.Executions[i].Item)
	}
	return c
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
	said, settled := saying(r.Applied), e.StateAt(c.Now)
	switch {
	case settled == said:
		return c, nil
	case settled == Applied && e.Evidence != ByStatement:
		return c, fault.New(fault.Conflict, nil).WithKey("fault.conflict.found").WithNext(fault.NextNone)
	case settled == NotApplied && e.ResolvedBy == "":
		return c, fault.New(fault.Conflict, nil).WithKey("fault.conflict.looked_up").WithNext(fault.NextContactOperator)
	case settled == Applied || settled == NotApplied:
		return c, fault.New(fault.Conflict, fault.Args{"by": e.ResolvedBy, "reason": e.ResolvedWhy}).
			WithKey("fault.conflict.resolved." + string(settled)).WithNext(fault.NextContactOperator)
	}
	return c, fault.New(fault.Conflict, fault.Args{"status": string(c.Status)}).WithKey("fault.conflict.decided")
}

// Probe looks at the target now, for an operator. The answer is the change after the look. A change that a look-up or a person
// called not applied can be looked at again: proof of the effect then contradicts it, openly.
func (s *Service) Probe(ctx context.Context, who actor.Actor, id preview.ID) (Change, error) {
	c, err := s.forOperator(ctx, who, id, actor.Probe)
	if err != nil {
		return Change{}, err
	}
	if !c.WorthALook() {
		return c, fault.New(fault.Conflict, fault.Args{"status": string(c.Status)}).WithKey("fault.conflict.decided").
			WithNext(fault.NextCheckStatus)
	}
	if err := s.markLapsed(ctx); err != nil {
		return c, err
	}
	if err := s.probe(ctx, Key{Tenant: who.Tenant, ID: id}); err != nil {
		return c, err
	}
	fresh, _, err := s.Store.Load(ctx, who.Tenant, id, true)
	return s.withKeys(fresh), err
}

// WorthALook reports whether looking at the target may still tell something: the outcome is unknown, or was called not applied by
// a look-up or a person, or by an answer of the target, which may have been to a second delivery.
func (c Change) WorthALook() bool {
	if c.Status != StatusNotApplied {
		return c.Status == StatusUnknown
	}
	e := c.Executions[0]
	return e.Reason == LookedUp || e.Reason == ByOperator || e.Evidence == ByReceipt
}

// forOperator loads a change for a person who holds a power over what is not settled.
func (s *Service) forOperator(ctx context.Context, who actor.Actor, id preview.ID, power actor.Power) (Change, error) {
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
	case !who.May(power):
		return Change{}, forbid("fault.forbidden.operators_only")
	case c.Preview.Requester.Involves(who.Person()):
		return Change{}, forbid("fault.forbidden.own_change")
	}
	return s.withKeys(c), nil
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
