package policy_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/cutonce/cutonce/policy"
)

func casesOf(text string) ([]policy.Case, error) {
	return policy.Cases(fstest.MapFS{"a.test.yaml": {Data: []byte(text)}})
}

func TestACaseSaysEveryThingARuleCanLookAt(t *testing.T) {
	t.Parallel()
	p, err := policy.Parse("p.yaml", []byte(`
version: 1
zone: Asia/Tokyo
caps: [{name: daily, actions: [budget_change], field: budget, per: tenant, window: day, limit: {EUR: 9000}}]
calendars: {year-end: [{from: "2026-12-28", to: "2027-01-03"}]}
default: {require: [{any_of: [people]}]}
rules:
  - name: every-thing
    when: >-
      input.count == 3 && input.deep.list[1] == "b" && target.id == "1001" && before.budget.eur == eur("25000.00")
      && change.budget == percent(10) && after.label.text == "USD 5" && impact.delta.kwd == kwd("1.234") && impact.days.count == 7
      && !impact.lost.known && "lookalike" in warnings && reversible && requester.on_behalf_of == "mika" && "ads" in requester.groups
      && now.during("year-end") && now.time == "00:30"
    then: confirm
    risk: high
    message: {en: All., ja: 全部。}
`))
	if err != nil {
		t.Fatal(err)
	}
	cases, err := casesOf(`
cases:
  - name: all of it
    action: budget_change
    input: {count: 3, deep: {list: [a, b]}}
    target: {system: ads.example, kind: campaign, id: "1001", name: x}
    before: {budget: EUR 25000.00}
    after: {budget: EUR 27500.00, label: {text: USD 5}}
    impact: {delta: KWD 1.234, days: 7, lost: unknown}
    warnings: [lookalike]
    reversible: true
    requester: {kind: agent, issuer: i, subject: s, on_behalf_of: mika, owner: o, client: c, tenant: t, groups: [ads], roles: [r]}
    now: 2026-12-31T15:30:00Z
    expect: {verdict: require, rule: every-thing, needs: [], confirm: true, abstain: false, risk: high, warnings: [], charges: {daily: EUR 2500.00}, message: {en: All., ja: 全部。}}
  - name: nothing of it
    action: budget_change
    before: {budget: EUR 1}
    after: {budget: EUR 1}
    expect: {verdict: allow, rule: every-thing, risk: high, confirm: true, warnings: [x], charges: {daily: EUR 1}, message: {en: A., ja: あ。}}
`)
	if err != nil {
		t.Fatal(err)
	}
	if _, differences := p.Try(cases[0]); differences != nil {
		t.Errorf("all of it: got %v, want no differences", differences)
	}
	got, differences := p.Try(cases[1])
	want := []policy.Difference{
		{What: "verdict", Expected: "allow", Got: "require"},
		{What: "rule", Expected: "every-thing", Got: "default"},
		{What: "risk", Expected: "high", Got: "none"},
		{What: "confirm", Expected: "true", Got: "false"},
		{What: "warnings", Expected: "x", Got: ""},
		{What: "message.en", Expected: "A.", Got: ""},
		{What: "message.ja", Expected: "あ。", Got: ""},
		{What: "charges", Expected: "daily 1.00 EUR", Got: ""},
	}
	if diff := cmp.Diff(want, differences); diff != "" {
		t.Errorf("%+v (-want +got):\n%s", got, diff)
	}
}

func TestCasesAreReadStrictly(t *testing.T) {
	t.Parallel()
	const whole = "cases:\n  - {name: a, action: x, expect: {verdict: deny}}\n"
	if _, err := casesOf(whole); err != nil {
		t.Fatalf("control: %v", err)
	}
	for name, tc := range map[string]struct{ text, want string }{
		"an unknown key":           {strings.Replace(whole, "action: x", "action: x, inptu: {}", 1), "inptu"},
		"an unknown expectation":   {strings.Replace(whole, "verdict: deny", "verdict: deny, rules: x", 1), "rules"},
		"no verdict":               {strings.Replace(whole, "verdict: deny", "rule: x", 1), "verdict is"},
		"a verdict that is none":   {strings.Replace(whole, "deny", "denied", 1), "verdict is"},
		"no action":                {strings.Replace(whole, "action: x, ", "", 1), "action is missing"},
		"no name":                  {strings.Replace(whole, "name: a, ", "", 1), "case 1 has no name"},
		"a second case":            {whole + "  - {name: a, action: x, expect: {verdict: deny}}\n", "second case"},
		"no cases":                 {"cases: []\n", "there are no cases"},
		"a key without a value":    {strings.Replace(whole, "action: x", "action: x, before:", 1), "has no value"},
		"too many decimals":        {strings.Replace(whole, "action: x", "action: x, before: {b: JPY 1.50}", 1), "is no amount"},
		"grouped digits":           {strings.Replace(whole, "action: x", `action: x, before: {b: "USD 1,000"}`, 1), "is no amount"},
		"no currency of this name": {strings.Replace(whole, "action: x", "action: x, before: {b: XYZ 5}", 1), "is no amount"},
		"a floating-point number":  {strings.Replace(whole, "action: x", "action: x, before: {b: 1.5}", 1), "is no value"},
		"a figure of text":         {strings.Replace(whole, "action: x", "action: x, impact: {b: many}", 1), "impact: b is"},
		"no time":                  {strings.Replace(whole, "action: x", "action: x, now: yesterday", 1), "is no time"},
		"no kind of requester":     {strings.Replace(whole, "action: x", "action: x, requester: {kind: robot}", 1), "kind is"},
		"no risk":                  {strings.Replace(whole, "verdict: deny", "verdict: deny, risk: low", 1), "risk is"},
		"half a message":           {strings.Replace(whole, "verdict: deny", "verdict: deny, message: {en: a}", 1), "both en and ja"},
	} {
		_, err := casesOf(tc.text)
		if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "a.test.yaml") {
			t.Errorf("%s: got %v, want an error that names the file and says %q", name, err, tc.want)
		}
	}
}

// Cases lie beside the policy: they change nothing about it, and a policy cannot hide under such a name.
func TestCasesAreNoPartOfThePolicy(t *testing.T) {
	t.Parallel()
	rules := &fstest.MapFile{Data: []byte(with("  - {name: a, when: \"true\", then: allow}\n"))}
	alone, err := policy.Load(fstest.MapFS{"p.yaml": rules})
	if err != nil {
		t.Fatal(err)
	}
	cases := &fstest.MapFile{Data: []byte("cases:\n  - {name: a, action: x, expect: {verdict: deny}}\n")}
	beside, err := policy.Load(fstest.MapFS{"p.yaml": rules, "p.test.yaml": cases})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := beside.Version(), alone.Version(); got != want {
		t.Errorf("version: got %s, want %s", got, want)
	}
	_, err = policy.Load(fstest.MapFS{"p.yaml": rules, "more.test.yaml": {Data: []byte("version: 1\nrules: []\n")}})
	if err == nil || !strings.Contains(err.Error(), "more.test.yaml") {
		t.Errorf("a policy under the name of cases: got %v, want a refusal that names it", err)
	}
}
