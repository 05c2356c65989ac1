package policy_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/cutonce/cutonce/internal/money"
	"github.com/cutonce/cutonce/policy"
)

const (
	exposureHead = "version: 1\nzone: Asia/Tokyo\ndefault: {require: [{any_of: [people]}]}\ncaps:\n" + capBody +
		"  - {name: half, actions: [budget_change], field: daily_budget, per: target, window: week, limit: {percent: 50}}\n" +
		"  - {name: won_only, actions: [budget_change], field: daily_budget, per: account, window: day, limit: {KRW: 100}}\n"
	exposureRule = "rules:\n  - name: the-rule\n    actions: [budget_change]\n    when: %q\n    then: %s\n"
)

func exposed(when, then string) string { return exposureHead + fmt.Sprintf(exposureRule, when, then) }

func krw(minor int64) money.Amount { return money.Amount{Minor: minor, Currency: "KRW"} }

// totals of daily: of 1,000,000, 600,000 applied, 100,000 reserved, 50,000 unknown, and 300,000 asked for by others.
func totals() []policy.Exposure {
	return []policy.Exposure{{
		Cap: "daily", Per: "tenant", Window: "day", Limit: krw(1_000_000), Applied: krw(600_000), Reserved: krw(100_000), Unknown: krw(50_000),
		Pending: krw(300_000), Asked: krw(100_000),
	}}
}

func TestRulesLookAtWhatChangesAddUpTo(t *testing.T) {
	t.Parallel()
	facts := budget("KRW", 200_000, 300_000)
	facts.Exposure = totals()
	for when, want := range map[string]bool{
		"exposure.daily.applied.krw == krw(600000)":                                                    true,
		"exposure.daily.reserved.krw + exposure.daily.unknown.krw == krw(150000)":                      true,
		"exposure.daily.pending.krw > krw(300000)":                                                     false,
		"exposure.daily.left.krw == krw(250000)":                                                       true,
		"exposure.daily.limit.krw == krw(1000000) && exposure.daily.limit.known":                       true,
		"exposure.daily.left.krw - exposure.daily.pending.krw < krw(0)":                                true,
		"exposure.daily.unknown.is_zero":                                                               false,
		"exposure.daily.applied.currency == 'KRW'":                                                     true,
		"after.daily_budget.krw - before.daily_budget.krw + exposure.daily.applied.krw <= krw(700000)": true,
		"exposure.daily.applied.usd > usd('0.00')":                                                     false, // there is none in dollars
		"has(exposure.daily.applied.usd) || exposure.daily.applied.krw > krw(0)":                       true,
		"has(exposure.half)":              false,
		"exposure.half.left.krw > krw(0)": false, // nobody has asked for its totals
		"action == 'budget_change' && (exposure.daily.applied.krw * 2 > exposure.daily.limit.krw || 1>2)": true,
	} {
		p := parse(t, exposed(when, "allow"))
		if got := p.Evaluate(facts).Verdict == policy.Allow; got != want || !p.UsesExposure() {
			t.Errorf("%s: got %t (uses exposure %t), want %t", when, got, p.UsesExposure(), want)
		}
	}
	if parse(t, capHead+capBody).UsesExposure() {
		t.Error("a policy whose rules do not look at totals says that it needs them")
	}
}

func TestTotalsAreExactAndOfOneCurrency(t *testing.T) {
	t.Parallel()
	for when, want := range map[string]string{
		"exposure.daily.applied.krw > usd('5.00')":                         "money(KRW), money(USD)",
		"exposure.daily.applied.krw > exposure.daily.applied.usd":          "money(KRW), money(USD)",
		"exposure.daily.applied.krw + exposure.daily.pending.usd > krw(1)": "money(KRW), money(USD)",
		"exposure.daily.applied.krw > 1000":                                "money(KRW), int",
		"exposure.daily.applied.krw == 1000.0":                             "money(KRW), double",
		"exposure.weekly.applied.krw > krw(1)":                             "there is no such cap",
		"exposure.daily.used.krw > krw(1)":                                 "undefined field 'used'",
		"exposure.daily.applied > krw(1)":                                  "name a field of a total",
		"exposure.daily == exposure.daily":                                 "name a field of a cap",
		"exposure.won_only.applied.usd > usd('1.00')":                      "has no limit in USD",
		"exposure.daily.applied.jpy > jpy(1)":                              "has no limit in JPY",
		"exposure.daily.applied.text == 'x'":                               "undefined field 'text'",
	} {
		_, err := policy.Parse("test.yaml", []byte(exposed(when, "deny")))
		if err == nil || !strings.Contains(err.Error(), want) && !strings.Contains(err.Error(), "no matching overload") && !strings.Contains(err.Error(), "name a field") {
			t.Errorf("%s: got %v, want %s", when, err, want)
		}
	}
	refused(t, exposed("exposure.daily.applied.krw > usd('5.00')", "deny"), "money(KRW), money(USD)", "rule the-rule")
	refused(t, exposed("exposure.weekly.applied.krw > krw(1)", "deny"), "exposure.weekly: there is no such cap")
	refused(t, exposed("exposure.won_only.applied.usd > usd('1.00')", "deny"), "the cap won_only has no limit in USD")
}

// Without totals rules fail closed: an allow is not met, a require is, and a deny asks people and says so.
func TestRulesAboutTotalsThatNobodyKnowsFailClosed(t *testing.T) {
	t.Parallel()
	facts := budget("KRW", 200_000, 300_000)
	for then, want := range map[string]policy.Verdict{"allow": policy.Require, "deny": policy.Require, "{require: [{any_of: [cfo]}]}": policy.Require} {
		got := parse(t, exposed("exposure.daily.left.krw >= krw(0)", then)).Evaluate(facts)
		if got.Verdict != want || then == "deny" && len(got.Warnings) != 1 {
			t.Errorf("%s: got %s, %v, want %s", then, got.Verdict, got.Warnings, want)
		}
	}
	facts.Action = "deployment_rollback"
	if got := parse(t, exposed("exposure.daily.left.krw >= krw(0)", "deny")).Evaluate(facts); len(got.Warnings) != 0 {
		t.Errorf("another action: got %v, want a rule that does not concern it", got.Warnings)
	}
}

func TestARulingShowsTheTotalsThatItSaw(t *testing.T) {
	t.Parallel()
	facts := budget("KRW", 200_000, 300_000)
	facts.Exposure = totals()
	got := parse(t, exposed("exposure.daily.left.krw < krw(300000) && exposure.half.applied.known == false", "deny")).Evaluate(facts)
	if diff := cmp.Diff(map[string]string{"exposure.daily.left": "250,000 KRW", "exposure.half.applied": "missing"}, got.Saw); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What is counted does not depend on what the change takes: a decrease is ruled on by the same totals.
func TestEveryCapThatMeasuresAChangeIsAskedFor(t *testing.T) {
	t.Parallel()
	p := parse(t, exposed("exposure.daily.left.krw >= krw(0)", "allow"))
	names := func(f policy.Facts) (all []string) {
		for _, c := range p.Counted(f) {
			all = append(all, fmt.Sprint(c.Cap, " ", c.Minor))
		}
		return all
	}
	for name, tc := range map[string]struct {
		facts policy.Facts
		want  []string
	}{
		"a raise":          {budget("KRW", 1, 3), []string{"daily 2", "half 2", "won_only 2"}},
		"a decrease":       {budget("KRW", 3, 1), []string{"daily 0", "half 0", "won_only 0"}},
		"dollars":          {budget("USD", 1, 3), []string{"daily 2", "half 2"}},
		"a third currency": {budget("EUR", 1, 3), []string{"half 2"}},
	} {
		if diff := cmp.Diff(tc.want, names(tc.facts)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestLeftMayBeLessThanNothingAndNeverWraps(t *testing.T) {
	t.Parallel()
	e := policy.Exposure{Limit: krw(5), Applied: krw(7), Reserved: krw(1), Unknown: krw(2)}
	if left, err := e.Left(); err != nil || left != krw(-5) {
		t.Errorf("got %s, %v, want -5", left, err)
	}
	e.Applied, e.Limit = krw(9_000_000_000_000_000_000), krw(-9_000_000_000_000_000_000)
	if left, err := e.Left(); err == nil {
		t.Errorf("got %s, want an error", left)
	}
}

func TestCasesSetTheExposure(t *testing.T) {
	t.Parallel()
	p := parse(t, exposureHead+`rules:
  - {name: nearly-full, actions: [budget_change], when: "exposure.daily.left.krw - exposure.daily.pending.krw < krw(100000)", then: {require: [{any_of: [cfo]}]}}
  - {name: rest, when: "true", then: allow}
`)
	cases, err := policy.Cases(fstest.MapFS{"a.test.yaml": {Data: []byte(`
cases:
  - name: room
    action: budget_change
    before: {daily_budget: KRW 1000}
    after: {daily_budget: KRW 2000}
    exposure: {daily: {applied: KRW 800000, unknown: KRW 50000}}
    expect: {verdict: allow, rule: rest}
  - name: what others wait for counts
    action: budget_change
    before: {daily_budget: KRW 1000}
    after: {daily_budget: KRW 2000}
    exposure: {daily: {applied: KRW 800000, unknown: KRW 50000, pending: KRW 100000}}
    expect: {verdict: require, rule: nearly-full}
  - name: another limit
    action: budget_change
    before: {daily_budget: KRW 1000}
    after: {daily_budget: KRW 2000}
    exposure: {daily: {limit: KRW 900000, reserved: KRW 850000}}
    expect: {verdict: require, rule: nearly-full}
  - name: a cap that does not count it
    action: budget_change
    before: {daily_budget: EUR 1000.00}
    after: {daily_budget: EUR 2000.00}
    exposure: {daily: {applied: EUR 1.00}}
    expect: {verdict: require}
`)}})
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range cases {
		_, differs := p.Try(c)
		if wrong := i == len(cases)-1; len(differs) > 0 != wrong {
			t.Errorf("%s: got %v", c.Name, differs)
		}
	}
	for text, want := range map[string]string{
		"{daily: {applied: 5}}": "is an amount",
		"{daily: {}}":           "at least one",
		"{daily: {applied: KRW 5, pending: USD 5.00}}": "another total in KRW",
		"{daily: {aplied: KRW 5}}":                     "aplied",
		"{daily: {applied: unknown}}":                  "is an amount",
	} {
		_, err := policy.Cases(fstest.MapFS{"a.test.yaml": {Data: []byte("cases:\n  - {name: x, action: a, exposure: " + text + ", expect: {verdict: allow}}\n")}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}
