package policy_test

import (
	"testing"

	"github.com/cutonce/cutonce/policy"
)

// FuzzParse checks that a file is compiled or refused, and that what compiles gives a complete ruling.
func FuzzParse(f *testing.F) {
	f.Add(one(`currency == "KRW" && after.daily_budget.krw > krw(5)`, "deny"))
	f.Add(one(`change.daily_budget <= percent("12.5") || has(input.x)`, "{require: [{any_of: [a], count: 2}]}"))
	f.Add(one(`requester.groups.exists(g, g.startsWith("a"))`, "warn"))
	f.Add("version: 1\ndefault: &d\n  require: [{any_of: [x]}]\nrules: []\n")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := policy.Parse("fuzz.yaml", []byte(text))
		if err != nil {
			return
		}
		got := p.Evaluate(budget("KRW", 1, 2))
		if got.Version != p.Version() || got.Rule == "" || (got.Verdict == policy.Require) != (len(got.Needs) > 0) {
			t.Errorf("got an incomplete ruling %+v", got)
		}
	})
}
