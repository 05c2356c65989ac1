package preview

import (
	"context"
	"errors"
	"fmt"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/canon"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/intake"
	"github.com/cutonce/cutonce/policy"
)

// Request is a call of prepare. Input is the action's input as JSON, without the idempotency key.
type Request struct {
	Action string
	Input  []byte
	// Key makes the call repeatable: same key and input, same preview. Scoped to tenant, caller and action.
	Key string
	// Reverts is the preview that this one undoes, nil if none.
	Reverts *ID
}

// Prepared is the answer: the preview, and whether it had been prepared before.
type Prepared struct {
	Preview  Preview
	Replayed bool
}

// Prepare reads the target, computes the impact, asks the policy, and stores all of it under one digest. Nothing is sent.
//
// A denied change is stored too and returned without an error: the transports say policy_denied. Faults: invalid_input and
// its kin, not_found, insufficient_scope, forbidden, target_unavailable, idempotency_conflict, rate_limited, too_many_open. When an error is returned,
// nothing was stored.
func (s *Service) Prepare(ctx context.Context, who actor.Actor, r Request) (Prepared, error) {
	action, ok := s.Actions.Action(r.Action)
	if !ok {
		return Prepared{}, fault.New(fault.NotFound, nil).WithKey("fault.not_found.action")
	}
	if err := RequireScopes(who, action.Scopes...); err != nil {
		return Prepared{}, err
	}
	if err := CheckText("/idempotency_key", r.Key, 0, maxKey); err != nil {
		return Prepared{}, err
	}
	input, err := s.read(r.Action, r.Input)
	if err != nil {
		return Prepared{}, err
	}
	q, err := replayQuery(who, r, action, input)
	if err != nil {
		return Prepared{}, err
	}
	if q.Key != "" {
		earlier, err := s.Store.FindReplay(ctx, q)
		if err != nil {
			return Prepared{}, fmt.Errorf("looking for an earlier preview: %w", err)
		}
		if earlier != nil {
			return replayed(*earlier, q)
		}
	}
	return s.prepareNew(ctx, who, r, action, input, q)
}

func (s *Service) prepareNew(
	ctx context.Context, who actor.Actor, r Request, action connector.Registered, input connector.Input, q ReplayQuery,
) (Prepared, error) {
	if s.Limit != nil {
		if err := s.Limit(who, action.Name); err != nil {
			return Prepared{}, err
		}
	}
	content, err := s.plan(ctx, who, action, input)
	if err != nil {
		return Prepared{}, err
	}
	if r.Reverts != nil {
		content.Reverts = r.Reverts.String()
	}
	n, err := s.compose(ctx, who, action, content, q)
	if err != nil {
		return Prepared{}, err
	}
	p, created, err := s.Store.Create(ctx, n)
	if err != nil {
		return Prepared{}, notStored(err)
	}
	if !created {
		return replayed(p, q)
	}
	return Prepared{Preview: p}, nil
}

func notStored(err error) error {
	var crowd *TooManyOpen
	switch {
	case errors.Is(err, ErrKeyRetired):
		return fault.New(fault.IdempotencyConflict, nil).WithKey("fault.idempotency_conflict.retired")
	case errors.As(err, &crowd):
		return crowd.fault()
	}
	return fmt.Errorf("storing the preview: %w", err)
}

// replayed answers a repeated call. The same key with another input is refused before anything else is said.
func replayed(p Preview, q ReplayQuery) (Prepared, error) {
	hash, err := inputHash(p.Action, p.ActionVersion, p.Input)
	if err != nil {
		return Prepared{}, err
	}
	if hash != q.InputHash {
		return Prepared{}, fault.New(fault.IdempotencyConflict, nil)
	}
	return Prepared{Preview: p, Replayed: true}, nil
}

func (s *Service) read(tool string, raw []byte) (connector.Input, error) {
	value, err := intake.Read(raw, s.MaxInput)
	if err != nil {
		return nil, err
	}
	if err := s.schemas[tool].Check(value); err != nil {
		return nil, err
	}
	input, ok := value.(map[string]any)
	if !ok {
		return nil, fault.New(fault.InvalidInput, nil).WithField("", "field.type", fault.Args{"want": "object", "got": "other"})
	}
	return input, nil
}

// plan asks the connector, and the target's permission system before anything about the target is shown.
func (s *Service) plan(ctx context.Context, who actor.Actor, action connector.Registered, input connector.Input) (Content, error) {
	plan, impact, prepErr := action.Connector.Prepare(ctx, who, action.Name, input)
	if plan.Target.ID != "" {
		if err := s.authorize(ctx, who, action, plan.Target); err != nil {
			return Content{}, err
		}
	}
	if prepErr != nil {
		return Content{}, s.unavailable(ctx, action.Name, prepErr)
	}
	return Content{Input: input, Plan: plan, Impact: impact}, nil
}

func (s *Service) authorize(ctx context.Context, who actor.Actor, action connector.Registered, target connector.Target) error {
	permission, err := action.Connector.Authorize(ctx, who, connector.VerbPrepare, target)
	if err != nil {
		return s.unavailable(ctx, action.Name, err)
	}
	if !permission.Allowed {
		return NotPermitted(who, action.System, permission)
	}
	return nil
}

// NotPermitted is the refusal by a target's own permission system. It names the human and the system, not the target: who may
// not touch it may not learn what it is called.
func NotPermitted(who actor.Actor, system string, p connector.Permission) error {
	return fault.New(fault.Forbidden, fault.Args{"user": who.HumanName(), "system": system, "reason": p.Reason}).
		WithKey("fault.forbidden.target")
}

// unavailable passes a fault on and turns anything else into target_unavailable: nothing was sent, so trying again is safe.
func (s *Service) unavailable(ctx context.Context, tool string, err error) error {
	var known *fault.Fault
	if errors.As(err, &known) {
		return err
	}
	s.Log.WarnContext(ctx, "the target did not answer", "tool", tool, "error", err)
	return fault.New(fault.TargetUnavailable, nil).Because(err)
}

func (s *Service) compose(ctx context.Context, who actor.Actor, action connector.Registered, content Content, q ReplayQuery) (New, error) {
	facts := policy.Facts{Action: action.Name, Input: content.Input, Plan: content.Plan, Impact: content.Impact, Requester: who}
	if s.Policy.UsesTime() {
		now, err := s.Store.Now(ctx)
		if err != nil {
			return New{}, fmt.Errorf("reading the database's time: %w", err)
		}
		facts.Now = now
	}
	if s.Policy.UsesExposure() {
		var err error
		if facts.Exposure, err = s.Store.Exposure(ctx, who.Tenant, ID{}, s.Policy.Counted(facts)); err != nil {
			return New{}, fmt.Errorf("reading what changes add up to: %w", err)
		}
	}
	ruling := s.Policy.Evaluate(facts)
	document, err := document(who, action.Action, content)
	if err != nil {
		return New{}, fmt.Errorf("writing the preview's document: %w", err)
	}
	p := Preview{
		ID: NewID(), Tenant: who.Tenant, Action: action.Name, ActionVersion: action.Version, Requester: who,
		Document: document, Digest: canon.Sum(document), Content: content, State: stateFor(ruling), Ruling: ruling, Round: 1,
	}
	clocks := action.Clocks.Or(s.Clocks)
	return New{Preview: p, Caller: q.Caller, Key: q.Key, InputHash: q.InputHash, LiveFor: clocks.PreviewTTL, MaxOpen: s.MaxOpen}, nil
}

func stateFor(r Ruling) State {
	switch r.Verdict {
	case policy.Allow:
		return Approved
	case policy.Deny:
		return Denied
	}
	return NeedsApproval
}

func replayQuery(who actor.Actor, r Request, action connector.Registered, input connector.Input) (ReplayQuery, error) {
	hash, err := inputHash(action.Name, action.Version, input)
	return ReplayQuery{Tenant: who.Tenant, Caller: who.ID(), Action: action.Name, Key: r.Key, InputHash: hash}, err
}
