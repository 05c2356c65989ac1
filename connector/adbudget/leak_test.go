package adbudget_test

import (
	"testing"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/adbudget"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/internal/target"
)

// A refusal tells something about the campaign (its name, its currency), so the service must be able to ask first whether
// the caller may know it.
func TestTheTargetIsNamedBesideARefusal(t *testing.T) {
	t.Parallel()
	_, server := startAds(t, true)
	c := connect(t, adbudget.Config{BaseURL: server.URL})
	input := with(connector.Input{"new_daily_budget_jpy": nil, "new_daily_budget_krw": number("5000")})
	plan, _, err := c.Prepare(t.Context(), sato, adbudget.ActionName, input)
	if got, want := fault.CodeOf(err), fault.CurrencyMismatch; got != want {
		t.Fatalf("got code %s, want %s", got, want)
	}
	if got, want := plan.Target.ID, target.PlainJPY(0); got != want {
		t.Errorf("got target %q, want %q", got, want)
	}
}
