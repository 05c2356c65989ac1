package web_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/adbudget"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/money"
	"github.com/cutonce/cutonce/internal/target"
)

// abroad is the ad platform's connector in another currency: the same minor units are so many cents or fils.
type abroad struct {
	*adbudget.Connector
	currency money.Currency
}

// Prepare names the currency wherever the plan and the impact speak of money.
func (a abroad) Prepare(ctx context.Context, who actor.Actor, action string, in connector.Input) (connector.Plan, connector.Impact, error) {
	plan, impact, err := a.Connector.Prepare(ctx, who, action, in)
	if err != nil {
		return plan, impact, err
	}
	for i := range plan.Changes {
		plan.Changes[i].Before.Amount, plan.Changes[i].After.Amount = a.of(plan.Changes[i].Before.Amount), a.of(plan.Changes[i].After.Amount)
	}
	for i := range impact.Figures {
		impact.Figures[i].Amount = a.of(impact.Figures[i].Amount)
	}
	a.reword(impact.Summary.Args)
	a.reword(impact.Reversal.Args)
	for _, w := range impact.Warnings {
		a.reword(w.Args)
	}
	return plan, impact, nil
}

func (a abroad) reword(args connector.Args) {
	for name, value := range args {
		if amount, ok := value.(money.Amount); ok {
			args[name] = *a.of(&amount)
		}
	}
}

func (a abroad) of(amount *money.Amount) *money.Amount {
	if amount == nil {
		return nil
	}
	return &money.Amount{Minor: amount.Minor, Currency: a.currency}
}

// TestHeadToHead07_WhatThePersonSees: target, before and after, difference, percentage, agent and expiry, exactly as the currency is
// written, in the queue's row, on the page and in the sentence of the API.
func TestHeadToHead07_WhatThePersonSees(t *testing.T) {
	t.Parallel()
	for currency, tc := range map[money.Currency]struct {
		minor                         int64
		before, after, delta, percent string
	}{
		"EUR": {2_500_000, "200.00 EUR", "25,000.00 EUR", "+24,800.00 EUR", "+12400%"},
		"JPY": {5_000, "20,000 JPY", "5,000 JPY", "-15,000 JPY", "-75%"},
		"KWD": {1_234, "20.000 KWD", "1.234 KWD", "-18.766 KWD", "-93.83%"},
	} {
		t.Run(string(currency), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(r *rig) {
				r.front = func(c *adbudget.Connector) connector.Connector { return abroad{c, currency} }
				r.rules = "version: 1\ndefault: {require: [{any_of: [ads-approvers]}]}\nrules: []\n"
			})
			id := r.prepare(target.CampaignAutumnSearch, fmt.Sprint(tc.minor), "Weekend sale", "秋の特価_検索")
			r.ask(id, "please")
			c := r.status(id)
			expires := c.Preview.Deadline.UTC().Format(time.RFC3339)[:16]
			kim := r.as("kim")
			page := kim.get("/changes/" + id.String() + "/review?lang=en").Find("main")
			row := kim.get("/?lang=en").Find("li.card")
			for name, shown := range map[string]string{"row": row.Text(), "page": page.Text()} {
				for _, want := range []string{"秋の特価_検索", tc.before, tc.after, tc.delta, tc.percent, "dev-agent"} {
					if !strings.Contains(shown, want) {
						t.Errorf("%s: got %q, want it to say %s", name, strings.Join(strings.Fields(shown), " "), want)
					}
				}
			}
			for name, part := range map[string]interface{ Html() (string, error) }{"row": row, "page": page} {
				if html, err := part.Html(); err != nil || !strings.Contains(strings.ReplaceAll(html, " ", "T"), expires) {
					t.Errorf("%s: got %v, want it to expire at %s", name, err, expires)
				}
			}
			body := answer.Writer{Texts: r.texts.In("en"), Detailed: true}.Of(answer.OpApprovalRequest, c, false, nil)
			said := body.Change.Summary
			for _, want := range []string{"秋の特価_検索", tc.before, tc.after, strings.TrimSuffix(tc.percent, "%")} {
				if !strings.Contains(said, want) {
					t.Errorf("API: got %q, want it to say %s", said, want)
				}
			}
			if got := body.Change.RequestedBy.Name; got != "dev-agent" {
				t.Errorf("API: got %s, want the agent", got)
			}
			if body.Change.ExpiresAt == nil || !body.Change.ExpiresAt.Equal(c.Preview.Deadline) {
				t.Errorf("API: got %v, want %s", body.Change.ExpiresAt, c.Preview.Deadline)
			}
		})
	}
}
