package rollback

import (
	"context"
	"fmt"
	"slices"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/httptarget"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/visible"
)

// The verbs of the platform's permissions.
const (
	mayRead     = "read"
	mayRollBack = "rollback"
)

// nobody is the reason of a no where the call has no human behind it.
const nobody = "no_human_known"

// Authorize asks the platform whether the human behind the call may roll back here. Preparing asks for the same right as
// applying: a preview that could never be applied would only waste an approver's time.
func (c *Connector) Authorize(ctx context.Context, who actor.Actor, _ connector.Verb, target connector.Target) (connector.Permission, error) {
	at, err := c.owns(target)
	if err != nil {
		return connector.Permission{}, err
	}
	return c.permission(ctx, who, at, mayRollBack)
}

func (c *Connector) permission(ctx context.Context, who actor.Actor, at place, verb string) (connector.Permission, error) {
	human := who.HumanName()
	if human == "" {
		return connector.Permission{Reason: nobody}, nil
	}
	return c.platform.permission(ctx, human, at, verb)
}

// permission asks whether a person may do something in a place.
func (p *platform) permission(ctx context.Context, user string, at place, verb string) (connector.Permission, error) {
	query := at.query()
	query.Set("user", user)
	query.Set("verb", verb)
	d, refused, err := p.Get(ctx, "/v1/permissions", query)
	if err != nil {
		return connector.Permission{}, err
	}
	if refused != nil {
		return connector.Permission{}, refused.Unavailable()
	}
	allowed, ok := d["allowed"].(bool)
	if !ok {
		return connector.Permission{}, httptarget.Unavailable(fmt.Errorf("the platform's permission answer says neither yes nor no"), 0)
	}
	reason, _ := d["reason"].(string)
	return connector.Permission{Allowed: allowed, Reason: reason}, nil
}

// allowRead refuses whoever may not see a place.
func (c *Connector) allowRead(ctx context.Context, who actor.Actor, at place) error {
	permission, err := c.permission(ctx, who, at, mayRead)
	if err != nil {
		return err
	}
	if !permission.Allowed {
		return fault.New(fault.Forbidden, fault.Args{"reason": visible.Text(permission.Reason)})
	}
	return nil
}

// services are the names of all services that a person may see in an environment.
func (p *platform) services(ctx context.Context, user, environment string) ([]string, error) {
	d, refused, err := p.Get(ctx, "/v1/services", map[string][]string{"user": {user}})
	if err != nil {
		return nil, err
	}
	if refused != nil {
		return nil, refused.Unavailable()
	}
	items, err := d.List("services")
	if err != nil {
		return nil, httptarget.Unavailable(err, 0)
	}
	var names []string
	for _, item := range items {
		var name string
		if err := item.Texts(map[string]*string{"name": &name}); err != nil {
			return nil, httptarget.Unavailable(err, 0)
		}
		if environments, _ := item["environments"].([]any); slices.Contains(environments, any(environment)) {
			names = append(names, name)
		}
	}
	return names, nil
}

// similar are the services in the same environment whose names could be taken for this one's, as far as the human behind
// the call may see them: the others they cannot hit.
func (c *Connector) similar(ctx context.Context, who actor.Actor, at place) ([]string, error) {
	human := who.HumanName()
	if human == "" {
		return nil, nil
	}
	names, err := c.platform.services(ctx, human, at.environment)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == at.service || !visible.Confusable(name, at.service) }), nil
}
