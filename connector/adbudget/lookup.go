package adbudget

import (
	"context"
	"errors"
	"fmt"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/fault"
)

var errNoHistory = errors.New("this platform keeps no history by request key")

// Lookup asks the platform's change history for our key. Found and absent rest on that mark alone. The campaign's present
// values go along for the operator; they never prove an effect, but they can cast doubt on an "absent": a history that is
// empty while the campaign has moved to our very amount may merely be late.
func (c *Connector) Lookup(ctx context.Context, plan connector.Plan, call connector.Call) (connector.Finding, error) {
	s, err := c.readPlan(plan)
	if err != nil {
		return connector.Finding{}, err
	}
	mine, historyErr := c.marked(ctx, s, call)
	now, readErr := c.platform.campaign(ctx, s.id)
	finding := connector.Finding{Found: connector.EffectUnsure}
	if readErr == nil {
		finding.Now = c.reading(now).Values
	}
	switch {
	case historyErr != nil && readErr != nil:
		return connector.Finding{}, fmt.Errorf("looking up: %w", historyErr)
	case historyErr != nil:
		finding.Evidence = map[string]any{"history": "not_available"}
	case mine != nil:
		finding.Found, finding.Evidence = connector.EffectFound, mine.evidence()
	case readErr == nil && now.ETag != plan.Version && now.amount == s.amount:
		finding.Evidence = map[string]any{"history": "empty", "campaign": "at_our_amount"}
	case readErr == nil, errors.Is(readErr, fault.NotFound):
		finding.Found, finding.Evidence = connector.EffectAbsent, map[string]any{"history": "empty"}
	default:
		finding.Evidence = map[string]any{"history": "empty", "campaign": "not_readable"}
	}
	return finding, nil
}

// marked is the effect that carries our key, nil if the history is there and has none. An effect under our key that is not
// what was sent is an error: then nothing about it is certain.
func (c *Connector) marked(ctx context.Context, s sent, call connector.Call) (*effect, error) {
	if c.cfg.NoLookup {
		return nil, errNoHistory
	}
	if call.Key == "" {
		return nil, errors.New("a look-up needs our mark")
	}
	found, err := c.platform.effects(ctx, call.Key)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	for _, e := range found {
		if e.campaignID != s.id || e.after != s.amount || e.currency != s.currency {
			return nil, errors.New("the platform's history has something else under our key")
		}
	}
	found[0].times = len(found)
	return &found[0], nil
}

// evidence is what is kept and shown to operators. More than one effect is said openly.
func (e effect) evidence() map[string]any {
	out := map[string]any{
		"change_id": e.id, "time": e.at, "before": e.before, "after": e.after, "currency": e.currency, "etag": e.etag,
	}
	if e.onBehalfOf != "" {
		out["on_behalf_of"] = e.onBehalfOf
	}
	if e.times > 1 {
		out["effects"] = int64(e.times)
	}
	return out
}
