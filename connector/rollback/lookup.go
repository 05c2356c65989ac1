package rollback

import (
	"context"
	"errors"
	"fmt"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/fault"
)

var errNoHistory = errors.New("this platform finds no rollback by request key")

// Lookup asks the platform for the rollback that carries our key. Found and absent rest on that mark alone. What runs now
// goes along for the operator; it never proves an effect, but it can cast doubt on an "absent": a history that is empty while
// the environment has moved to our very build may merely be late.
func (c *Connector) Lookup(ctx context.Context, plan connector.Plan, call connector.Call) (connector.Finding, error) {
	s, err := c.readPlan(plan)
	if err != nil {
		return connector.Finding{}, err
	}
	mine, historyErr := c.marked(ctx, s, call)
	now, readErr := c.platform.environment(ctx, s.at)
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
	case readErr == nil && now.current.ID != plan.Version && now.current.build() == s.to:
		finding.Evidence = map[string]any{"history": "empty", "environment": "at_our_build"}
	case readErr == nil, errors.Is(readErr, fault.NotFound):
		finding.Found, finding.Evidence = connector.EffectAbsent, map[string]any{"history": "empty"}
	default:
		finding.Evidence = map[string]any{"history": "empty", "environment": "not_readable"}
	}
	return finding, nil
}

// effect is one rollback in the platform's history.
type effect struct {
	id, at, from, to, deploymentID, key string
	place                               place
	onBehalfOf                          string
	// times is how many rollbacks carry the key; more than one is a fault of the platform that is never hidden.
	times int
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
		if e.place != s.at || e.to != s.to {
			return nil, errors.New("the platform's history has something else under our key")
		}
	}
	found[0].times = len(found)
	return &found[0], nil
}

// effects reads what a request key rolled back, anywhere: an effect in another environment under our key must be seen. The
// answer proves something only if every entry carries that key.
func (p *platform) effects(ctx context.Context, key string) ([]effect, error) {
	d, refused, err := p.get(ctx, "/v1/rollbacks", map[string][]string{"key": {key}})
	if err != nil {
		return nil, err
	}
	if refused != nil {
		return nil, refused.unavailable()
	}
	items, err := d.list("rollbacks")
	if err != nil {
		return nil, err
	}
	found := make([]effect, 0, len(items))
	for _, item := range items {
		e, err := readEffect(item)
		if err != nil {
			return nil, err
		}
		if e.key != key {
			return nil, fmt.Errorf("the platform's history answered about another key")
		}
		found = append(found, e)
	}
	return found, nil
}

func readEffect(d document) (effect, error) {
	var e effect
	err := d.texts(map[string]*string{
		"change_id": &e.id, "time": &e.at, "service": &e.place.service, "environment": &e.place.environment,
		"from_deployment_id": &e.from, "to_deployment_id": &e.to, "deployment_id": &e.deploymentID, "key": &e.key,
	})
	e.onBehalfOf, _ = d["on_behalf_of"].(string)
	return e, err
}

// evidence is what is kept and shown to operators. More than one effect is said openly.
func (e effect) evidence() map[string]any {
	out := map[string]any{
		"change_id": e.id, "time": e.at, "from": e.from, "activates": e.to, "deployment_id": e.deploymentID,
	}
	if e.onBehalfOf != "" {
		out["on_behalf_of"] = e.onBehalfOf
	}
	if e.times > 1 {
		out["effects"] = int64(e.times)
	}
	return out
}
