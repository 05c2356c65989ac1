package rollback

import (
	"context"
	"errors"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/httptarget"
)

var errNoHistory = errors.New("this platform finds no rollback by request key")

// Lookup asks the platform for the rollback that carries our key. Found and absent rest on that mark alone.
func (c *Connector) Lookup(ctx context.Context, plan connector.Plan, call connector.Call) (connector.Finding, error) {
	s, err := c.readPlan(plan)
	if err != nil {
		return connector.Finding{}, err
	}
	return c.about(s, call).Lookup(ctx)
}

// about is what can be asked about a send: the platform's history by our key, and what runs in the environment now.
func (c *Connector) about(s sent, call connector.Call) httptarget.Case {
	return httptarget.Case{
		Version: s.plan.Version, Noun: "environment", Value: "build",
		Mark: func(ctx context.Context) (*connector.Receipt, error) { return c.marked(ctx, s, call) },
		Now: func(ctx context.Context) (httptarget.Standing, error) {
			now, err := c.platform.environment(ctx, s.at)
			if err != nil {
				return httptarget.Standing{}, err
			}
			return httptarget.Standing{Reading: c.reading(now), Ours: now.current.build() == s.to}, nil
		},
	}
}

// marked is the effect that carries our key, nil if the history is there and has none. An effect under our key that is not
// what was sent is an error: then nothing about it is certain.
func (c *Connector) marked(ctx context.Context, s sent, call connector.Call) (*connector.Receipt, error) {
	if c.cfg.NoLookup {
		return nil, errNoHistory
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
	return &connector.Receipt{Evidence: found[0].evidence(), Version: found[0].deploymentID}, nil
}

// effect is one rollback in the platform's history.
type effect struct {
	id, at, from, to, deploymentID string
	place                          place
	onBehalfOf                     string
	// times is how many rollbacks carry the key; more than one is a fault of the platform that is never hidden.
	times int
}

// effects reads what a request key rolled back, anywhere: an effect in another environment under our key must be seen.
func (p *platform) effects(ctx context.Context, key string) ([]effect, error) {
	entries, err := p.Marked(ctx, "/v1/rollbacks", "rollbacks", key)
	if err != nil {
		return nil, err
	}
	found := make([]effect, 0, len(entries))
	for _, entry := range entries {
		e, err := readEffect(entry)
		if err != nil {
			return nil, err
		}
		found = append(found, e)
	}
	return found, nil
}

func readEffect(d httptarget.Document) (effect, error) {
	var e effect
	err := d.Texts(map[string]*string{
		"change_id": &e.id, "time": &e.at, "service": &e.place.service, "environment": &e.place.environment,
		"from_deployment_id": &e.from, "to_deployment_id": &e.to, "deployment_id": &e.deploymentID,
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
