package rollback

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/visible"
)

// perPage is how many deployments one page of deployments_find shows.
const perPage = 20

// Find lists deployments, the newest first, as far as the human behind the call may read them: the platform filters by its
// own permissions. Whoever asks for one environment that they may not read is told so.
func (c *Connector) Find(ctx context.Context, who actor.Actor, tool string, input connector.Input) (connector.Page, error) {
	if tool != FindName {
		return connector.Page{}, fmt.Errorf("there is no tool %q here", tool)
	}
	s := search{
		place:  place{service: input.Text("service"), environment: input.Text("environment")},
		status: input.Text("status"), cursor: input.Text("cursor"), user: who.HumanName(), limit: perPage,
	}
	if s.user == "" {
		return connector.Page{}, fault.New(fault.Forbidden, fault.Args{"reason": nobody})
	}
	if s.place.service != "" && s.place.environment != "" {
		if err := c.visit(ctx, who, s.place); err != nil {
			return connector.Page{}, err
		}
	}
	found, err := c.platform.list(ctx, s)
	if err != nil {
		return connector.Page{}, err
	}
	page := connector.Page{Items: make([]map[string]any, 0, len(found.deployments)), NextCursor: found.next, Total: found.total}
	for _, d := range found.deployments {
		page.Items = append(page.Items, item(d))
	}
	page.Warnings = pairs(found.deployments)
	return page, nil
}

// visit makes sure that a place is there and may be read.
func (c *Connector) visit(ctx context.Context, who actor.Actor, at place) error {
	if !isName(at.service) || !isName(at.environment) {
		return fault.New(fault.InvalidInput, nil).WithField("/service", "rollback.field.service", nil)
	}
	if _, err := c.platform.environment(ctx, at); err != nil {
		return err
	}
	return c.allowRead(ctx, who, at)
}

func item(d deployment) map[string]any {
	out := map[string]any{
		"id": d.ID, "service": d.place.service, "environment": d.place.environment, "version": d.Version, "commit": d.Commit,
		"author": d.Author, "time": d.At.UTC().Format(time.RFC3339), "contains_migration": d.Migration, "status": d.Status,
	}
	if d.isRollback() {
		out["activates"] = d.Activates
	}
	return out
}

// pairs warns of services among those shown that could be taken for each other.
func pairs(shown []deployment) []connector.Message {
	var names []string
	for _, d := range shown {
		if !slices.Contains(names, d.place.service) {
			names = append(names, d.place.service)
		}
	}
	slices.Sort(names)
	var all []connector.Message
	for i, a := range names {
		for _, b := range names[i+1:] {
			if len(all) < mostNamed && visible.Confusable(a, b) {
				all = append(all, connector.Say("rollback.find.similar", connector.Args{"a": a, "b": b}))
			}
		}
	}
	return all
}
