package adbudget

import (
	"context"
	"errors"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/httptarget"
)

var errNoHistory = errors.New("this platform keeps no history by request key")

// Lookup asks the platform's change history for our key. Found and absent rest on that mark alone.
func (c *Connector) Lookup(ctx context.Context, plan connector.Plan, call connector.Call) (connector.Finding, error) {
	s, err := c.readPlan(plan)
	if err != nil {
		return connector.Finding{}, err
	}
	return c.about(s, call).Lookup(ctx)
}

// about is what can be asked about a send: the platform's history by our key, and where the campaign stands now.
func (c *Connector) about(s sent, call connector.Call) httptarget.Case {
	return httptarget.Case{
		Version: s.plan.Version, Noun: "campaign", Value: "amount",
		Mark: func(ctx context.Context) (*connector.Receipt, error) { return c.marked(ctx, s, call) },
		Now: func(ctx context.Context) (httptarget.Standing, error) {
			now, err := c.platform.campaign(ctx, s.id)
			if err != nil {
				return httptarget.Standing{}, err
			}
			return httptarget.Standing{Reading: c.reading(now), Ours: now.amount == s.amount}, nil
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
		if e.campaignID != s.id || e.after != s.amount || e.currency != s.currency {
			return nil, errors.New("the platform's history has something else under our key")
		}
	}
	found[0].times = len(found)
	return &connector.Receipt{Evidence: found[0].evidence(), Version: found[0].etag}, nil
}

// effect is one change in the platform's history.
type effect struct {
	id, at, campaignID, after, currency, etag string
	before, onBehalfOf                        string
	// times is how many changes carry the key; more than one is a fault of the platform that is never hidden.
	times int
}

// effects reads what a request key changed.
func (p *platform) effects(ctx context.Context, key string) ([]effect, error) {
	entries, err := p.Marked(ctx, "/v1/changes", "changes", key)
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
		"change_id": &e.id, "time": &e.at, "campaign_id": &e.campaignID, "before": &e.before, "after": &e.after,
		"currency": &e.currency, "etag": &e.etag,
	})
	e.onBehalfOf, _ = d["on_behalf_of"].(string)
	return e, err
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
