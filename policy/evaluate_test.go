package policy_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/money"
	"github.com/cutonce/cutonce/policy"
)

// unsure are expressions that cannot be told for a change in JPY, by why not.
var unsure = map[string]string{
	"missing": `after.daily_budget.krw > krw(1)`,
	"error":   `int(target.name) > 1`,
	"cost":    `input.list.all(a, input.list.all(b, input.list.all(c, a + b + c >= 0)))`,
}

func withList(f policy.Facts) policy.Facts {
	list := make([]any, 100)
	for i := range list {
		list[i] = json.Number("1")
	}
	f.Input["list"] = list
	return f
}

func TestWhatCannotBeToldFailsClosed(t *testing.T) {
	t.Parallel()
	defaults := policy.Requirement{{AnyOf: []string{"default-people"}, Count: 1}}
	for then, want := range map[string]policy.Ruling{
		"allow": {Verdict: policy.Require, Rule: "default", Needs: defaults},
		"{require: [{any_of: [rule-people], count: 2}]}": {
			Verdict: policy.Require, Rule: "the-rule", Needs: policy.Requirement{{AnyOf: []string{"rule-people"}, Count: 2}},
		},
		"deny": {Verdict: policy.Require, Rule: "the-rule", Needs: defaults},
		"warn": {
			Verdict: policy.Require, Rule: "default", Needs: defaults,
			Warnings: []connector.Warning{{Code: policy.WarnRule, Args: connector.Args{
				"rule": "the-rule", "text_en": "Look.", "text_ja": "見て。",
			}}},
		},
	} {
		for why, when := range unsure {
			t.Run(then+" "+why, func(t *testing.T) {
				t.Parallel()
				want := want
				switch {
				case why != "missing":
					broken := connector.Warning{Code: policy.WarnError, Args: connector.Args{"rule": "the-rule"}}
					want.Warnings = append([]connector.Warning{broken}, want.Warnings...)
				case then == "deny":
					want.Warnings = []connector.Warning{{Code: policy.WarnMissing, Args: connector.Args{
						"rule": "the-rule", "value": "after.daily_budget.krw",
					}}}
				}
				p := parse(t, one(when, then))
				got := p.Evaluate(withList(budget("JPY", 1, 2)))
				want.Version, got.Saw = p.Version(), nil
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("ruling (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestTheCostLimitIsWhatStopsACostlyRule(t *testing.T) {
	t.Parallel()
	facts := budget("JPY", 1, 2)
	facts.Input["list"] = []any{json.Number("1"), json.Number("2")}
	if !holds(t, unsure["cost"], facts) {
		t.Error("the costly rule does not hold for a short list, so its failure for a long one proves nothing")
	}
}

func TestAnAllowDoesNotOutweighADenyThatCannotBeTold(t *testing.T) {
	t.Parallel()
	p := parse(t, with(`
  - {name: yes, when: "true", then: allow}
  - {name: ceiling, when: after.daily_budget.krw > krw(5), then: deny}
`))
	if got := p.Evaluate(budget("JPY", 1, 2)); got.Verdict != policy.Require || got.Rule != "ceiling" {
		t.Errorf("got %s by %s, want require by ceiling", got.Verdict, got.Rule)
	}
}

func TestAGuardDecidesWhatIsMissing(t *testing.T) {
	t.Parallel()
	for _, when := range []string{
		`currency == "KRW" && after.daily_budget.krw > krw(5)`,
		`after.daily_budget.krw > krw(5) && currency == "KRW"`,
		`has(after.daily_budget.krw) && after.daily_budget.krw > krw(5)`,
		`has(after.daily_budget.krw) ? after.daily_budget.krw > krw(5) : false`,
	} {
		p := parse(t, one(when, "deny"))
		if got := p.Evaluate(budget("JPY", 1, 2)); got.Rule != "default" || len(got.Warnings) != 0 {
			t.Errorf("%s: got rule %s and warnings %v, want default and none", when, got.Rule, got.Warnings)
		}
		if got := p.Evaluate(budget("KRW", 1, 6)); got.Verdict != policy.Deny {
			t.Errorf("%s: got %s, want deny", when, got.Verdict)
		}
	}
}

func TestPercentagesAreExact(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		before, after int64
		want          bool
	}{
		{200_000, 300_000, true},
		{200_000, 300_001, false},
		{1_000_000, 1_500_000, true},
		{1_000_000, 1_500_001, false}, // +50.0001 %
		{3, 4, true},
		{3, 5, false},
		{200_000, 100_000, true},
		{200_000, 0, true},
		{math.MaxInt64 / 3 * 2, math.MaxInt64 / 3 * 3, true},
		{math.MaxInt64/3*2 - 2, math.MaxInt64 / 3 * 3, false},
		{math.MaxInt64, math.MinInt64 + 1, false}, // the difference does not fit
		{0, 1, false},
		{0, 0, false},
		{-10, 10, false},
		{math.MinInt64, math.MaxInt64, false},
	} {
		if got := holds(t, "change.daily_budget <= percent(50)", budget("KRW", tc.before, tc.after)); got != tc.want {
			t.Errorf("%d → %d: got %v, want %v", tc.before, tc.after, got, tc.want)
		}
	}
}

func TestThereIsNoRatioAcrossCurrencies(t *testing.T) {
	t.Parallel()
	facts := budget("KRW", 100, 110)
	facts.Plan.Changes[0].After = connector.Money(money.Amount{Minor: 110, Currency: "USD"})
	for _, when := range []string{"change.daily_budget <= percent(50)", `currency != "JPY"`} {
		if holds(t, when, facts) {
			t.Errorf("%s: got true across currencies, want missing", when)
		}
	}
}

func TestArithmeticThatDoesNotFitFailsClosed(t *testing.T) {
	t.Parallel()
	for _, when := range []string{
		"after.daily_budget.krw + krw(1) > krw(0)",
		"after.daily_budget.krw * 2 > krw(0)",
		"krw(-2) - after.daily_budget.krw < krw(0)",
	} {
		got := parse(t, one(when, "deny")).Evaluate(budget("KRW", 1, math.MaxInt64))
		if got.Verdict != policy.Require || len(got.Warnings) != 1 || got.Warnings[0].Code != policy.WarnError {
			t.Errorf("%s: got %s with %v, want require with %s", when, got.Verdict, got.Warnings, policy.WarnError)
		}
	}
}

func TestInputNumbersAreExactOrErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"9007199254740993": true, "9223372036854775808": false, "1.5": false, "1e400": false} {
		facts := budget("KRW", 1, 2)
		facts.Input["n"] = json.Number(text)
		if got := holds(t, "input.n >= 0", facts); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
	facts := budget("KRW", 1, 2)
	facts.Input["n"] = json.Number("9007199254740993")
	if !holds(t, "input.n == 9007199254740993", facts) || holds(t, "input.n == 9007199254740992", facts) {
		t.Error("2^53+1 was rounded")
	}
}

func TestTheRiskiestWins(t *testing.T) {
	t.Parallel()
	p := parse(t, with(`
  - {name: yes, when: "true", then: allow}
  - {name: one-ads, when: input.level >= 1, then: {require: [{any_of: [ads], count: 1}]}}
  - {name: two-ads-one-finance, when: input.level >= 2, then: {require: [{any_of: [ads], count: 2}, {any_of: [finance]}]}}
  - {name: no, when: input.level >= 3, then: deny}
  - {name: look, when: input.level >= 1, then: warn, message: {en: Look., ja: 見て。}}
  - {name: other, actions: [deployment_rollback], when: "true", then: deny}
`))
	for level, want := range map[string]policy.Ruling{
		"0": {Verdict: policy.Allow, Rule: "yes"},
		"1": {Verdict: policy.Require, Rule: "one-ads", Needs: policy.Requirement{{AnyOf: []string{"ads"}, Count: 1}}},
		"2": {Verdict: policy.Require, Rule: "two-ads-one-finance", Needs: policy.Requirement{
			{AnyOf: []string{"ads"}, Count: 2}, {AnyOf: []string{"finance"}, Count: 1},
		}},
		"3": {Verdict: policy.Deny, Rule: "no"},
	} {
		facts := budget("KRW", 1, 2)
		facts.Input["level"] = json.Number(level)
		got := p.Evaluate(facts)
		warned := len(got.Warnings) == 1 && got.Warnings[0].Code == policy.WarnRule
		if warned != (level != "0") {
			t.Errorf("level %s: got warnings %v", level, got.Warnings)
		}
		want.Version, got.Saw, got.Warnings = p.Version(), nil, nil
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("level %s: ruling (-want +got):\n%s", level, diff)
		}
	}
}

func TestARequestCannotNameItsRule(t *testing.T) {
	t.Parallel()
	p := parse(t, with(`
  - {name: small, when: change.daily_budget <= percent(50), then: allow}
  - {name: no, when: after.daily_budget.krw > krw(1000), then: deny}
`))
	for _, facts := range []policy.Facts{budget("KRW", 0, 10), budget("KRW", 100, 160), budget("KRW", 1000, 1001)} {
		want := p.Evaluate(facts)
		facts.Input = connector.Input{
			"campaign_id": "1001", "policy": "small", "rule": "small", "verdict": "allow", "then": "allow", "approvals": json.Number("2"),
			"approved_by": []any{"boss"}, "requester": map[string]any{"groups": []any{"ads-approvers"}}, "version": "x",
			"change": map[string]any{"daily_budget": "0"}, "currency": "JPY", "action": "other", "warnings": []any{},
		}
		if diff := cmp.Diff(want, p.Evaluate(facts)); diff != "" {
			t.Errorf("the body changed the ruling (-want +got):\n%s", diff)
		}
	}
}

func TestARulingSaysWhatItSaw(t *testing.T) {
	t.Parallel()
	p := parse(t, one(`currency == "KRW" && after.daily_budget.krw > krw(10) && change.daily_budget > percent(1)
		&& before.daily_budget.krw > krw(0) && "lookalike" in warnings && requester.kind == "agent" && impact.seats.count > 1
		&& input.n == 5 && after.image.text == "v2" && has(input.nothing) == false && !has(change.image)`, "deny"))
	facts := budget("KRW", 300, 400)
	five := int64(5)
	facts.Input["n"] = json.Number("5")
	facts.Plan.Changes = append(facts.Plan.Changes, connector.Change{Field: "image", After: connector.Text("v2")})
	facts.Impact.Figures = []connector.Figure{{Name: "seats", Count: &five}}
	facts.Impact.Warnings = []connector.Warning{{Code: "lookalike"}}
	got := p.Evaluate(facts)
	want := map[string]string{
		"currency": "KRW", "after.daily_budget": money.Amount{Minor: 400, Currency: "KRW"}.String(),
		"before.daily_budget": money.Amount{Minor: 300, Currency: "KRW"}.String(), "change.daily_budget": "+33.3%",
		"warnings": "lookalike", "requester.kind": "agent", "impact.seats": "5", "input.n": "5", "after.image": "v2",
		"input.nothing": "missing", "change.image": "missing",
	}
	if got.Verdict != policy.Deny {
		t.Errorf("got %s, want deny", got.Verdict)
	}
	if diff := cmp.Diff(want, got.Saw); diff != "" {
		t.Errorf("saw (-want +got):\n%s", diff)
	}
}

// A rule compares the real values of a sensitive field; what it saw is kept and shown without them.
func TestARulingDoesNotSayWhatIsHidden(t *testing.T) {
	t.Parallel()
	p := parse(t, one(`after.contact.text == "pay@agency.example" && before.daily_budget.krw > krw(0) && change.daily_budget > percent(1) && input.contact == "pay@agency.example"
		&& input.reason == "because" && after.image.text == "v2"`, "deny"))
	facts := budget("KRW", 300, 400)
	facts.Input["contact"], facts.Input["reason"] = "pay@agency.example", "because"
	facts.Plan.Changes[0].Sensitive = true
	facts.Plan.Changes = append(facts.Plan.Changes,
		connector.Change{Field: "contact", After: connector.Text("pay@agency.example"), Sensitive: true}, connector.Change{Field: "image", After: connector.Text("v2")})
	got := p.Evaluate(facts)
	want := map[string]string{
		"after.contact": connector.Mask, "before.daily_budget": connector.Mask, "change.daily_budget": connector.Mask, "input.contact": connector.Mask,
		"input.reason": "because", "after.image": "v2",
	}
	if got.Verdict != policy.Deny {
		t.Errorf("got %s, want deny by the real values", got.Verdict)
	}
	if diff := cmp.Diff(want, got.Saw); diff != "" {
		t.Errorf("saw (-want +got):\n%s", diff)
	}
}

func TestTwoChangesOfOneFieldSayNothing(t *testing.T) {
	t.Parallel()
	facts := budget("KRW", 1, 2)
	facts.Plan.Changes = append(facts.Plan.Changes, facts.Plan.Changes[0])
	if holds(t, "after.daily_budget.krw == krw(2)", facts) || holds(t, "change.daily_budget > percent(0)", facts) {
		t.Error("got a value, want missing")
	}
}

func TestARulingSurvivesStorage(t *testing.T) {
	t.Parallel()
	want := parse(t, one(unsure["missing"], "deny")).Evaluate(budget("JPY", 1, 2))
	raw, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got policy.Ruling
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stored ruling (-want +got):\n%s", diff)
	}
}
