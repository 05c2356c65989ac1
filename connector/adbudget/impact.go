package adbudget

import (
	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/money"
)

// measure computes what the change does. It takes nothing from the caller but the new amount.
func measure(now campaign, after money.Amount, alike similarity) connector.Impact {
	i := connector.Impact{
		Summary:    summary(now, after),
		Figures:    figures(now.Budget, after, alike),
		Warnings:   warnings(now, after, alike),
		Reversible: now.Budget.Minor > 0,
		Reversal:   connector.Say("adbudget.reversal", connector.Args{"before": now.Budget}),
	}
	if !i.Reversible {
		i.Reversal = connector.Say("adbudget.reversal.none", nil)
	}
	return i
}

// summary is the change in one sentence. Names are as the platform has them; whoever shows them makes them visible.
func summary(now campaign, after money.Amount) connector.Message {
	args := connector.Args{"campaign": now.Name, "id": now.ID, "before": now.Budget, "after": after}
	if now.Budget.Minor == 0 {
		return connector.Say("adbudget.summary.from_zero", args)
	}
	args["percent"] = signed(after.Minor-now.Budget.Minor, now.Budget.Minor)
	if after.Minor < now.Budget.Minor {
		return connector.Say("adbudget.summary.lower", args)
	}
	return connector.Say("adbudget.summary.raise", args)
}

func figures(before, after money.Amount, alike similarity) []connector.Figure {
	delta := money.Amount{Minor: after.Minor - before.Minor, Currency: after.Currency}
	wasMonth, wasRounded := monthly(before)
	isMonth, isRounded := monthly(after)
	return []connector.Figure{
		{Name: "daily_before", Amount: &before},
		{Name: "daily_after", Amount: &after},
		{Name: "daily_delta", Amount: &delta},
		percentFigure("delta_percent", delta.Minor, before.Minor),
		{Name: "projected_monthly_before", Amount: wasMonth, Rounded: wasRounded},
		{Name: "projected_monthly_after", Amount: isMonth, Rounded: isRounded},
		{Name: "projected_monthly_delta", Amount: difference(isMonth, wasMonth), Rounded: wasRounded || isRounded},
		{Name: "lookalikes", Count: alike.count()},
	}
}

// difference is that of the two amounts shown, so that a reader's own sum comes out.
func difference(a, b *money.Amount) *money.Amount {
	if a == nil || b == nil {
		return nil
	}
	d, err := a.Sub(*b)
	if err != nil {
		return nil
	}
	return &d
}

// warnings are what is unusual, the most likely mistake first.
func warnings(now campaign, after money.Amount, alike similarity) []connector.Warning {
	all := []connector.Warning{}
	add := func(unusual bool, code string, args connector.Args) {
		if unusual {
			all = append(all, connector.Warning{Code: code, Args: args})
		}
	}
	disguised := alike.disguised(now)
	add(len(alike.found) > 0, "lookalike", connector.Args{"names": joinNames(alike.found), "count": int64(len(alike.found))})
	add(len(disguised) > 0, "confusable_name", connector.Args{"names": joinNames(disguised), "count": int64(len(disguised))})
	add(!alike.whole, "lookalikes_unchecked", connector.Args{"compared": int64(alike.compared)})
	add(now.Budget.Minor == 0, "from_zero", connector.Args{"after": after})
	add(now.Status == statusPaused, "paused_campaign", nil)
	add(large(now.Budget.Minor, after.Minor), "large_raise", connector.Args{"before": now.Budget, "after": after})
	return all
}

// large is a raise to more than double: the size at which a slip (a zero too many, another currency's amount) begins.
func large(before, after int64) bool { return before > 0 && after-before > before }
