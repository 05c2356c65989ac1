package rollback

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/httptarget"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/canon"
	"github.com/cutonce/cutonce/internal/fault"
)

// Prepare reads the environment, the deployment to go to and what lies in between, and computes the change. It sends
// nothing.
func (c *Connector) Prepare(ctx context.Context, who actor.Actor, action string, input connector.Input) (connector.Plan, connector.Impact, error) {
	if action != ActionName {
		return connector.Plan{}, connector.Impact{}, fmt.Errorf("there is no action %q here", action)
	}
	want, err := readAsk(input)
	if err != nil {
		return connector.Plan{}, connector.Impact{}, err
	}
	now, err := c.platform.environment(ctx, want.at)
	if err != nil {
		return connector.Plan{}, connector.Impact{}, err
	}
	// From here on the target is known, so the service can ask whether the caller may be told what is wrong with it.
	read := connector.Plan{Target: c.target(now.place)}
	seen, err := c.look(ctx, who, want, now)
	if err != nil {
		return read, connector.Impact{}, err
	}
	plan, err := c.plan(now, seen.to)
	if err != nil {
		return read, connector.Impact{}, err
	}
	return plan, measure(seen), nil
}

// sight is all that a change's impact is computed from.
type sight struct {
	now     state
	to      deployment
	between span
	similar []string
}

// look judges the ask against what the platform shows. A wrong idea of what is active comes first: what else is wrong may
// follow from it.
func (c *Connector) look(ctx context.Context, who actor.Actor, want ask, now state) (sight, error) {
	if err := want.againstCurrent(now); err != nil {
		return sight{}, err
	}
	to, err := c.built(ctx, want)
	if err != nil {
		return sight{}, err
	}
	if err := want.againstTo(now, to); err != nil {
		return sight{}, err
	}
	between, err := c.between(ctx, now, to)
	if err != nil {
		return sight{}, err
	}
	similar, err := c.similar(ctx, who, now.place)
	return sight{now: now, to: to, between: between, similar: similar}, err
}

// built is the deployment whose build the caller wants: that of an earlier rollback stands for the one it activated.
func (c *Connector) built(ctx context.Context, want ask) (deployment, error) {
	to, ok, err := c.platform.deployment(ctx, want.to)
	if err == nil && ok && to.isRollback() {
		to, ok, err = c.platform.deployment(ctx, to.Activates)
	}
	switch {
	case err != nil:
		return deployment{}, err
	case !ok || to.place != want.at:
		return deployment{}, want.notFound()
	case to.isRollback():
		return deployment{}, httptarget.Unavailable(fmt.Errorf("a rollback activates another rollback"), 0)
	}
	return to, nil
}

// plan is the exact request. It names the deployment whose build will run, and the one that must still be active.
func (c *Connector) plan(now state, to deployment) (connector.Plan, error) {
	body, err := canon.Marshal(map[string]any{"to_deployment_id": to.ID})
	if err != nil {
		return connector.Plan{}, fmt.Errorf("writing the request: %w", err)
	}
	return connector.Plan{
		Target:  c.target(now.place),
		Version: now.current.ID,
		Request: connector.Request{
			Method: http.MethodPost, Path: rollbackPath(now.place), Body: json.RawMessage(body), Precondition: now.etag,
		},
		Changes: changes(now.current, to),
	}, nil
}

func rollbackPath(at place) string { return at.path() + "/rollback" }

// changes are the fields that become others. Two deployments of one commit differ in nothing but the deployment.
func changes(from, to deployment) []connector.Change {
	all := []connector.Change{{Field: FieldDeployment, Before: connector.Text(from.build()), After: connector.Text(to.ID)}}
	if from.Version != to.Version {
		all = append(all, connector.Change{Field: FieldVersion, Before: connector.Text(from.Version), After: connector.Text(to.Version)})
	}
	if from.Commit != to.Commit {
		all = append(all, connector.Change{Field: FieldCommit, Before: connector.Text(from.Commit), After: connector.Text(to.Commit)})
	}
	return all
}

func (c *Connector) target(at place) connector.Target {
	return connector.Target{System: c.cfg.System, Kind: Kind, ID: at.id(), Name: at.service + " (" + at.environment + ")"}
}

// owns gives the place that a target of ours names.
func (c *Connector) owns(target connector.Target) (place, error) {
	at, ok := placeOf(target.ID)
	if target.System != c.cfg.System || target.Kind != Kind || !ok {
		return place{}, fmt.Errorf("the target %s is not of this platform", target.Key())
	}
	return at, nil
}

// Read reads what runs in the environment now.
func (c *Connector) Read(ctx context.Context, target connector.Target) (connector.Reading, error) {
	at, err := c.owns(target)
	if err != nil {
		return connector.Reading{}, err
	}
	now, err := c.platform.environment(ctx, at)
	if err != nil {
		return connector.Reading{}, err
	}
	return c.reading(now), nil
}

func (c *Connector) reading(now state) connector.Reading {
	return connector.Reading{
		Target:  c.target(now.place),
		Version: now.current.ID,
		Values: map[string]connector.Value{
			FieldDeployment: connector.Text(now.current.build()),
			FieldVersion:    connector.Text(now.current.Version),
			FieldCommit:     connector.Text(now.current.Commit),
		},
	}
}

// Reverse is the input that goes to the deployment that was active before. The caller may replace its reason with a
// person's own.
func (c *Connector) Reverse(action string, plan connector.Plan) (map[string]any, error) {
	at, err := c.owns(plan.Target)
	if err != nil {
		return nil, err
	}
	if action != ActionName || len(plan.Changes) == 0 || plan.Changes[0].Field != FieldDeployment {
		return nil, fmt.Errorf("this plan is not one of %s", ActionName)
	}
	before, after := plan.Changes[0].Before.Text, plan.Changes[0].After.Text
	if before == nil || after == nil || !isID(*before) || !isID(*after) {
		return nil, fault.New(fault.InvalidInput, nil).WithKey("rollback.not_reversible")
	}
	return map[string]any{
		"service":                      at.service,
		"environment":                  at.environment,
		"to_deployment_id":             *before,
		"expect_current_deployment_id": *after,
		"reason":                       "undo",
	}, nil
}
