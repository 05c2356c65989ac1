package adbudget

import (
	"context"
	"fmt"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/actor"
)

// perPage is how many campaigns one page of campaigns_find shows.
const perPage = 20

// Find lists campaigns. The page says how many match in all, and warns where two that it shows could be taken for each
// other; a look-alike outside the page is found at prepare.
func (c *Connector) Find(ctx context.Context, _ actor.Actor, tool string, input connector.Input) (connector.Page, error) {
	if tool != FindName {
		return connector.Page{}, fmt.Errorf("there is no tool %q here", tool)
	}
	s := search{query: input.Text("query"), status: input.Text("status"), cursor: input.Text("cursor"), limit: perPage}
	found, err := c.platform.list(ctx, s)
	if err != nil {
		return connector.Page{}, err
	}
	page := connector.Page{Items: make([]map[string]any, 0, len(found.campaigns)), NextCursor: found.next, Total: found.total}
	for _, item := range found.campaigns {
		page.Items = append(page.Items, map[string]any{
			"name": item.Name, "id": item.ID, "daily_budget": item.amount, "currency": item.currency,
			"owner": item.Owner, "status": item.Status,
		})
	}
	page.Warnings = c.pairs(found.campaigns)
	return page, nil
}

// pairs warns of live campaigns among those shown that could be taken for each other.
func (c *Connector) pairs(shown []campaign) []connector.Message {
	var all []connector.Message
	for i, a := range shown {
		for j := i + 1; j < len(shown) && a.live(); j++ {
			b := shown[j]
			if len(all) < mostNamed && b.live() && c.likeness.confusable(a.Name, b.Name) {
				all = append(all, connector.Say("adbudget.find.lookalike", connector.Args{
					"a": a.Name, "a_id": a.ID, "b": b.Name, "b_id": b.ID,
				}))
			}
		}
	}
	return all
}
