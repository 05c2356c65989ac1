package preview

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
)

// Undo prepares the change that would put a target back to what an earlier change found. It is a new preview like any other,
// through the same policy, permissions and queue, linked to the old one by Reverts. The reason is the caller's. Faults: those
// of Prepare; not_found for a change that the caller may not see; conflict where the earlier change was never begun, or its
// action cannot be reversed.
func (s *Service) Undo(ctx context.Context, who actor.Actor, id ID, reason, key string) (Prepared, error) {
	p, _, err := s.Store.Preview(ctx, who.Tenant, id)
	if err != nil {
		return Prepared{}, err
	}
	if !MayRead(who, p) {
		return Prepared{}, fault.New(fault.NotFound, nil)
	}
	action, ok := s.Actions.Action(p.Action)
	reverser, able := action.Connector.(connector.Reverser)
	switch {
	case !ok || !able:
		return Prepared{}, fault.New(fault.Conflict, nil).WithKey("fault.conflict.not_reversible").WithNext(fault.NextNone)
	case p.State != Claimed:
		return Prepared{}, fault.New(fault.Conflict, nil).WithKey("fault.conflict.nothing_to_undo").WithNext(fault.NextCheckStatus)
	}
	input, err := reverser.Reverse(p.Action, p.Plan.Clone())
	if err != nil {
		return Prepared{}, err
	}
	input["reason"] = reason
	raw, err := json.Marshal(input)
	if err != nil {
		return Prepared{}, fmt.Errorf("writing the input that undoes %s: %w", id, err)
	}
	return s.Prepare(ctx, who, Request{Action: p.Action, Input: raw, Key: key, Reverts: &id})
}
