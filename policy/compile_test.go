package policy_test

import (
	"encoding/json"
	"testing"

	"github.com/cutonce/cutonce/policy"
)

func TestWhatDoesNotCompile(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ when, want string }{
		"won with dollars":            {`after.daily_budget.krw > usd("5.00")`, "money(KRW), money(USD)"},
		"won with dollars, equal":     {`after.daily_budget.krw == usd("5.00")`, "_==_"},
		"won with dollars, unequal":   {`krw(5) != usd("5.00")`, "_!=_"},
		"won with dollars, in":        {`krw(5) in [usd("5.00")]`, "@in"},
		"won with dollars, list":      {`[krw(5), usd("5.00")].size() > 1`, "expected type"},
		"won with dollars, if":        {`(action == "x" ? krw(5) : usd("5.00")) == krw(5)`, "_?_:_"},
		"won plus yen":                {`krw(5) + jpy(5) == krw(10)`, "_+_"},
		"amount with a number":        {`after.daily_budget.krw > 5000000`, "money(KRW), int"},
		"amount with a percentage":    {`after.daily_budget.krw > percent(5)`, "percent"},
		"amount with an input":        {`after.daily_budget.krw == input.new_daily_budget_krw`, "money"},
		"amount unequal to an input":  {`input.new_daily_budget_krw != after.daily_budget.krw`, "money"},
		"amount among inputs":         {`after.daily_budget.krw in input.list`, "money"},
		"amount hidden":               {`dyn(after.daily_budget.krw) == dyn(usd("1.00"))`, "dyn"},
		"change with an amount":       {`change.daily_budget > krw(5)`, "percent"},
		"change with a number":        {`change.daily_budget > 50`, "percent"},
		"dollars without decimals":    {`after.daily_budget.usd > usd(5000)`, "usd"},
		"won with decimals":           {`after.daily_budget.krw > krw("1.50")`, "krw"},
		"too many decimals":           {`after.daily_budget.usd > usd("1.505")`, `"1.505"`},
		"an amount that is no number": {`after.daily_budget.usd > usd("a lot")`, `"a lot"`},
		"an amount from the input":    {`after.daily_budget.usd > usd(string(input.limit))`, "written out"},
		"a percentage from the input": {`change.daily_budget > percent(int(input.limit))`, "written out"},
		"a float":                     {`1.5 < 2.0`, "floating-point"},
		"a float made":                {`double(5) > double(4)`, "floating-point"},
		"a percentage with a float":   {`change.daily_budget > percent(12.5)`, "percent"},
		"a percentage in words":       {`change.daily_budget > percent("half")`, `"half"`},
		"a percentage as exponent":    {`change.daily_budget > percent("1e9")`, `"1e9"`},
		"unknown variable":            {`policy == "x"`, "policy"},
		"unknown currency":            {`after.daily_budget.xyz > krw(5)`, "xyz"},
		"currency in capitals":        {`after.daily_budget.KRW > krw(5)`, "KRW"},
		"unknown field of requester":  {`requester.approved_by == "me"`, "approved_by"},
		"unknown field of target":     {`target.policy == "x"`, "policy"},
		"a text where none can be":    {`impact.delta.text == "x"`, "text"},
		"the whole field":             {`before.daily_budget == after.daily_budget`, "name a field"},
		"the whole change":            {`before == before`, "name a field"},
		"not a condition":             {`after.daily_budget.krw`, "true or false"},
		"an untyped condition":        {`input.ok`, "true or false"},
		"not CEL":                     {`after.daily_budget.krw >`, "Syntax error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused(t, one(tc.when, "deny"), "test.yaml", "rule the-rule", "line 5", tc.want)
		})
	}
}

func TestACompileErrorNamesThePlace(t *testing.T) {
	t.Parallel()
	refused(t, one(`true && after.daily_budget.krw > usd("1.00")`, "deny"), "rule the-rule (line 5): when: 1:32: ")
	refused(t, one(`true && 1.5 < 2.0`, "deny"), "rule the-rule (line 5): when: 1:9: ")
}

func TestWhatCompilesAndHolds(t *testing.T) {
	t.Parallel()
	krw, usd, kwd := budget("KRW", 200_000, 320_000), budget("USD", 10_000, 12_050), budget("KWD", 1_000, 1_001)
	krw.Input["n"], krw.Input["ok"] = json.Number("42"), true
	for when, tc := range map[string]struct {
		of   string
		want bool
	}{
		`after.daily_budget.krw == krw(320000)`:                                  {"KRW", true},
		`after.daily_budget.krw != krw(320000)`:                                  {"KRW", false},
		`after.daily_budget.krw - before.daily_budget.krw == krw(120000)`:        {"KRW", true},
		`before.daily_budget.krw * 2 > after.daily_budget.krw`:                   {"KRW", true},
		`krw(1) + krw(2) <= krw(3) && krw(1) - krw(2) == krw(-1)`:                {"KRW", true},
		`after.daily_budget.krw in [krw(1), krw(320000)]`:                        {"KRW", true},
		`(currency == "KRW" ? after.daily_budget.krw : krw(0)) == krw(320000)`:   {"KRW", true},
		`after.daily_budget.usd == usd("120.50")`:                                {"USD", true},
		`after.daily_budget.kwd > kwd("1.000")`:                                  {"KWD", true},
		`after.daily_budget.kwd > kwd("1.001")`:                                  {"KWD", false},
		`change.daily_budget == percent(60)`:                                     {"KRW", true},
		`change.daily_budget == percent("20.5")`:                                 {"USD", true},
		`percent("-12.5") < percent(0) && change.daily_budget > percent("59.9")`: {"KRW", true},
		`currency == "KRW" && before.daily_budget.currency == "KRW"`:             {"KRW", true},
		`has(after.daily_budget.krw) && !has(after.daily_budget.usd)`:            {"KRW", true},
		`!has(after.other.krw) && !has(after.other) && !after.other.known`:       {"KRW", true},
		`has(change.daily_budget) && !has(change.other)`:                         {"KRW", true},
		`input.n == 42 && input.ok == true && !has(input.policy)`:                {"KRW", true},
		`input.n > 41 && input.n + 1 == 43`:                                      {"KRW", true},
		`target.kind == "campaign" && target.id == "1001"`:                       {"KRW", true},
		`requester.kind == "agent" && "ads" in requester.groups`:                 {"KRW", true},
		`requester.on_behalf_of == "mika@example.com" && !has(requester.owner)`:  {"KRW", true},
		`requester.roles.size() == 0 && requester.tenant == "acme"`:              {"KRW", true},
		`action == "budget_change" && !reversible && warnings.size() == 0`:       {"KRW", true},
	} {
		given := map[string]policy.Facts{"KRW": krw, "USD": usd, "KWD": kwd}[tc.of]
		if got := holds(t, when, given); got != tc.want {
			t.Errorf("%s: got %v, want %v", when, got, tc.want)
		}
	}
}
