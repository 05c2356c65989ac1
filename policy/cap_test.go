package policy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/money"
	"github.com/cutonce/cutonce/policy"
)

const capHead = "version: 1\nzone: Asia/Tokyo\ndefault: {require: [{any_of: [people]}]}\nrules:\n  - {name: all, when: \"true\", then: allow}\ncaps:\n"

const capBody = "  - {name: daily, actions: [budget_change], field: daily_budget, per: tenant, window: day, limit: {KRW: 1000000, USD: \"5000.00\"}}\n"

func TestChargesAreTheGrossIncrease(t *testing.T) {
	t.Parallel()
	p := parse(t, capHead+capBody+
		"  - {name: half, actions: [budget_change], field: daily_budget, per: target, window: week, limit: {percent: 12.5}}\n"+
		"  - {name: by_account, actions: [budget_change], field: daily_budget, per: account, window: hour, limit: {KRW: 5}}\n"+
		"  - {name: by_agent, actions: [budget_change], field: daily_budget, per: requester, window: month, limit: {KRW: 5}}\n"+
		"  - {name: other, actions: [deployment_rollback], field: daily_budget, per: tenant, window: day, limit: {KRW: 1}}\n")
	facts := budget("KRW", 200_000, 300_000)
	krw := func(n int64) *int64 { return &n }
	charge := func(name, per, scope, window string, limit *int64, percent string) policy.Charge {
		return policy.Charge{Cap: name, Per: per, Scope: scope, Window: window, Zone: "Asia/Tokyo", Currency: "KRW", Minor: 100_000, Before: 200_000, Limit: limit, Percent: percent}
	}
	half := charge("half", "target", "ads.example|campaign|1001", "week", nil, "12.5")
	want := []policy.Charge{
		charge("daily", "tenant", "", "day", krw(1_000_000), ""), half,
		charge("by_account", "account", "ads.example", "hour", krw(5), ""),
		charge("by_agent", "requester", facts.Requester.ID(), "month", krw(5), ""),
	}
	got := p.Evaluate(facts)
	if diff := cmp.Diff(want, got.Charges); diff != "" || got.Verdict != policy.Allow {
		t.Errorf("a raise: %s (-want +got):\n%s", got.Verdict, diff)
	}
	// A decrease takes nothing. Where percentages are measured it still tells what there was when the window began.
	half.Minor, half.Before = 0, 300_000
	if diff := cmp.Diff([]policy.Charge{half}, p.Evaluate(budget("KRW", 300_000, 200_000)).Charges); diff != "" {
		t.Errorf("a decrease (-want +got):\n%s", diff)
	}
	facts.Action = "something_else"
	if got := p.Evaluate(facts).Charges; got != nil {
		t.Errorf("another action: got %v, want none", got)
	}
}

// What a cap cannot measure goes to people, as with a rule that denies.
func TestACapThatCannotTellAsksPeople(t *testing.T) {
	t.Parallel()
	p := parse(t, capHead+capBody)
	unknown := budget("KRW", 1, 2)
	unknown.Plan.Changes[0].Before = connector.Value{}
	huge := budget("KRW", -9_000_000_000_000_000_000, 9_000_000_000_000_000_000)
	for name, tc := range map[string]struct {
		facts policy.Facts
		value string
	}{
		"a currency without a limit": {budget("EUR", 1, 2), "limit.EUR"},
		"a value that is not known":  {unknown, "change.daily_budget"},
		"no such field":              {policy.Facts{Action: "budget_change"}, "change.daily_budget"},
		"an overflow":                {huge, "change.daily_budget"},
	} {
		got := p.Evaluate(tc.facts)
		want := []connector.Warning{{Code: policy.WarnMissing, Args: connector.Args{"rule": "cap:daily", "value": tc.value}}}
		if got.Verdict != policy.Require || got.Needs.String() != "1 × people" || len(got.Charges) > 0 || !cmp.Equal(want, got.Warnings) {
			t.Errorf("%s: got %+v, want people and a warning about %s", name, got, tc.value)
		}
	}
	if got := p.Evaluate(budget("EUR", 2, 1)); got.Verdict != policy.Allow || got.Charges != nil {
		t.Errorf("a decrease in a currency without a limit: got %+v, want allowed and uncharged", got)
	}
}

func TestCapsAreCheckedAtStart(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ from, to, want string }{
		"no zone":               {"zone: Asia/Tokyo\n", "", "zone"},
		"a name with a hyphen":  {"name: daily", "name: per-day", "cap's name"},
		"no actions":            {"actions: [budget_change]", "actions: []", "actions must name"},
		"no field":              {"field: daily_budget, ", "", "field must name"},
		"per what":              {"per: tenant", "per: person", "per is"},
		"what window":           {"window: day", "window: year", "window is"},
		"no limit":              {", limit: {KRW: 1000000, USD: \"5000.00\"}", "", "limit is missing"},
		"a limit below zero":    {"KRW: 1000000", "KRW: -1", "no amount"},
		"too many decimals":     {"KRW: 1000000", "KRW: 1.5", "no amount"},
		"no currency":           {"KRW: 1000000", "WON: 1", "no amount"},
		"both":                  {"KRW: 1000000", "percent: 50", "not both"},
		"no percentage":         {"{KRW: 1000000, USD: \"5000.00\"}", "{percent: 0}", "no percentage above zero"},
		"percent of a tenant":   {"{KRW: 1000000, USD: \"5000.00\"}", "{percent: 50}", "per target"},
		"an unknown key":        {"window: day", "window: day, windwo: day", "windwo"},
		"a second of that name": {capBody, capBody + capBody, "second cap"},
	} {
		text := strings.Replace(capHead+capBody, tc.from, tc.to, 1)
		if text == capHead+capBody {
			t.Fatalf("%s: nothing was spoilt", name)
		}
		refused(t, text, tc.want)
	}
	p := parse(t, capHead+capBody)
	if err := p.CheckActions([]string{"other"}); err == nil || !strings.Contains(err.Error(), "cap daily") {
		t.Errorf("an action that does not exist: got %v, want a refusal that names the cap", err)
	}
	if other := parse(t, capHead+strings.Replace(capBody, "1000000", "1000001", 1)); other.Version() == p.Version() {
		t.Error("another limit: got the same version, want another")
	}
}

func TestExceededDenies(t *testing.T) {
	t.Parallel()
	e := &policy.Exceeded{Cap: "daily", Limit: money.Amount{Minor: 5, Currency: "KRW"}}
	got := e.Ruling(policy.Ruling{Verdict: policy.Allow, Rule: "r", Version: "v", Risk: policy.RiskHigh, Texts: map[string]string{"en": "Fine."}})
	if diff := cmp.Diff(policy.Ruling{Verdict: policy.Deny, Rule: "cap:daily", Version: "v", Risk: policy.RiskHigh, Exceeded: e}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
