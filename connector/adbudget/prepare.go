package adbudget

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/canon"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/money"
)

// Prepare reads the campaign and those whose names come near it, and computes the change. It sends nothing.
func (c *Connector) Prepare(ctx context.Context, _ actor.Actor, action string, input connector.Input) (connector.Plan, connector.Impact, error) {
	fail := func(err error) (connector.Plan, connector.Impact, error) {
		return connector.Plan{}, connector.Impact{}, err
	}
	if action != ActionName {
		return fail(fmt.Errorf("there is no action %q here", action))
	}
	want, err := readAsk(input)
	if err != nil {
		return fail(err)
	}
	now, err := c.platform.campaign(ctx, want.campaignID)
	if err != nil {
		return fail(err)
	}
	// From here on the target is known, so the service can ask whether the caller may be told what is wrong with it.
	read := connector.Plan{Target: c.target(now)}
	alike, err := c.similar(ctx, now)
	if err != nil {
		return read, connector.Impact{}, err
	}
	if err := want.against(now, alike); err != nil {
		return read, connector.Impact{}, err
	}
	plan, err := c.plan(now, want.budget)
	if err != nil {
		return read, connector.Impact{}, err
	}
	return plan, measure(now, want.budget, alike), nil
}

// against holds the ask up to the campaign. A wrong campaign comes first: what else is wrong with it does not matter.
func (a ask) against(now campaign, alike similarity) error {
	switch {
	case a.expects && a.expectName != now.Name:
		return a.wrongName(now, alike)
	case !now.live():
		return fault.New(fault.InvalidInput, nil).WithKey("adbudget.campaign_removed").
			WithField("/campaign_id", "adbudget.field.campaign_removed", fault.Args{"name": now.Name})
	case a.budget.Currency != now.Budget.Currency:
		return a.wrongCurrency(now)
	case !a.expects && alike.needsName():
		return a.nameNeeded(now, alike)
	case a.budget == now.Budget:
		return fault.New(fault.InvalidInput, nil).WithKey("adbudget.no_change").
			WithField("/"+a.field, "adbudget.field.no_change", fault.Args{"amount": now.Budget})
	}
	return nil
}

// wrongName says what the ID really is, and which IDs have the name that was meant.
func (a ask) wrongName(now campaign, alike similarity) error {
	f := fault.New(fault.ExpectMismatch, fault.Args{"expected": a.expectName, "found": now.Name})
	args := fault.Args{"expected": a.expectName, "found": now.Name, "id": now.ID}
	meant := alike.named(a.expectName)
	if len(meant) == 0 {
		f.WithField("/expect_campaign_name", "adbudget.field.expect_mismatch", args)
	} else {
		args["ids"] = joinIDs(meant)
		f.WithField("/campaign_id", "adbudget.field.expect_other_id", args)
	}
	return f.WithData(map[string]any{"campaign": shown(now), "meant": shownAll(meant)})
}

func (a ask) wrongCurrency(now campaign) error {
	right := fieldFor(now.Budget.Currency)
	if right == "" {
		return fault.New(fault.InvalidInput, nil).WithKey("adbudget.currency_unsupported").
			WithField("/campaign_id", "adbudget.field.currency_unsupported", fault.Args{"currency": string(now.Budget.Currency)})
	}
	args := fault.Args{"currency": string(now.Budget.Currency), "field": right}
	return fault.New(fault.CurrencyMismatch, args).WithField("/"+a.field, "adbudget.field.currency", args)
}

// nameNeeded asks for the name where an ID could have been mistaken for its neighbour's.
func (a ask) nameNeeded(now campaign, alike similarity) error {
	f := fault.New(fault.InvalidInput, nil).WithKey("adbudget.name_needed")
	if len(alike.found) == 0 {
		f.WithField("/expect_campaign_name", "adbudget.field.name_needed_unchecked", fault.Args{"compared": int64(alike.compared)})
	} else {
		f.WithField("/expect_campaign_name", "adbudget.field.name_needed", fault.Args{"names": joinNames(alike.found), "id": now.ID})
	}
	return f.WithData(map[string]any{"lookalikes": shownAll(alike.found)})
}

// shown is a campaign as data for machines.
func shown(c campaign) map[string]any { return map[string]any{"id": c.ID, "name": c.Name} }

func shownAll(all []campaign) []any {
	out := make([]any, 0, len(all))
	for _, c := range all {
		out = append(out, shown(c))
	}
	return out
}

// plan is the exact request. Its path holds the ID that the platform returned, not the caller's spelling.
func (c *Connector) plan(now campaign, budget money.Amount) (connector.Plan, error) {
	body, err := canon.Marshal(map[string]any{"daily_budget": budget.Decimal(), "currency": string(budget.Currency)})
	if err != nil {
		return connector.Plan{}, fmt.Errorf("writing the request: %w", err)
	}
	return connector.Plan{
		Target:  c.target(now),
		Version: now.ETag,
		Request: connector.Request{
			Method: http.MethodPatch, Path: "/v1/campaigns/" + url.PathEscape(now.ID), Body: json.RawMessage(body), Precondition: now.ETag,
		},
		Changes: []connector.Change{{Field: FieldBudget, Before: connector.Money(now.Budget), After: connector.Money(budget)}},
	}, nil
}

func (c *Connector) target(now campaign) connector.Target {
	return connector.Target{System: c.cfg.System, Kind: Kind, ID: now.ID, Name: now.Name}
}

// Read reads the campaign now.
func (c *Connector) Read(ctx context.Context, target connector.Target) (connector.Reading, error) {
	if err := c.owns(target); err != nil {
		return connector.Reading{}, err
	}
	now, err := c.platform.campaign(ctx, target.ID)
	if err != nil {
		return connector.Reading{}, err
	}
	return c.reading(now), nil
}

func (c *Connector) reading(now campaign) connector.Reading {
	return connector.Reading{
		Target:  c.target(now),
		Version: now.ETag,
		Values: map[string]connector.Value{
			FieldBudget: connector.Money(now.Budget), "status": connector.Text(now.Status), "name": connector.Text(now.Name),
		},
	}
}

func (c *Connector) owns(target connector.Target) error {
	if target.System != c.cfg.System || target.Kind != Kind || target.ID == "" {
		return fmt.Errorf("the target %s is not of this platform", target.Key())
	}
	return nil
}

// Authorize asks the platform whether the human behind the call may change this campaign. Preparing asks for the same right
// as applying: a preview that could never be applied would only waste an approver's time.
func (c *Connector) Authorize(ctx context.Context, who actor.Actor, _ connector.Verb, target connector.Target) (connector.Permission, error) {
	if err := c.owns(target); err != nil {
		return connector.Permission{}, err
	}
	human := who.HumanName()
	if human == "" {
		return connector.Permission{Reason: "no_human_known"}, nil
	}
	return c.platform.permission(ctx, human, target.ID, "write")
}

// Reverse is the input that would put the budget back. The caller may replace its reason with a person's own.
func (c *Connector) Reverse(action string, plan connector.Plan) (map[string]any, error) {
	if err := c.owns(plan.Target); err != nil {
		return nil, err
	}
	if action != ActionName || len(plan.Changes) != 1 {
		return nil, fmt.Errorf("this plan is not one of %s", ActionName)
	}
	before := plan.Changes[0].Before.Amount
	if before == nil || before.Minor < 1 || fieldFor(before.Currency) == "" {
		return nil, fault.New(fault.InvalidInput, nil).WithKey("adbudget.not_reversible")
	}
	return map[string]any{
		"campaign_id":             plan.Target.ID,
		fieldFor(before.Currency): json.Number(before.Decimal()),
		"expect_campaign_name":    plan.Target.Name,
		"reason":                  "undo",
	}, nil
}
