package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/money"
	"github.com/cutonce/cutonce/policy"
)

// budget is a change of a daily budget in minor units of one currency.
func budget(currency money.Currency, before, after int64) policy.Facts {
	return policy.Facts{
		Action: "budget_change",
		Input:  connector.Input{"campaign_id": "1001"},
		Plan: connector.Plan{
			Target: connector.Target{System: "ads.example", Kind: "campaign", ID: "1001", Name: "秋の特価_検索"},
			Changes: []connector.Change{{
				Field:  "daily_budget",
				Before: connector.Money(money.Amount{Minor: before, Currency: currency}),
				After:  connector.Money(money.Amount{Minor: after, Currency: currency}),
			}},
		},
		Requester: actor.Actor{
			Tenant: "acme", Kind: actor.Agent, Issuer: "https://id.example", Subject: "agent-7", For: "mika@example.com",
			Groups: []string{"ads"},
		},
	}
}

// with is a policy of one rule (its body indented as below a list item) whose default asks for "default-people".
func with(body string) string {
	return "version: 1\ndefault: {require: [{any_of: [default-people], count: 1}]}\nrules:\n" + body
}

func one(when, then string) string {
	message := ""
	if then == "warn" {
		message = "\n    message: {en: Look., ja: 見て。}"
	}
	return with(fmt.Sprintf("  - name: the-rule\n    when: %q\n    then: %s%s\n", when, then, message))
}

func parse(t testing.TB, text string) *policy.Policy {
	t.Helper()
	p, err := policy.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatalf("Parse: %v\n%s", err, text)
	}
	return p
}

// holds asks a policy of one allow rule whether the expression holds.
func holds(t *testing.T, when string, facts policy.Facts) bool {
	t.Helper()
	return parse(t, one(when, "allow")).Evaluate(facts).Verdict == policy.Allow
}

func refused(t *testing.T, text string, want ...string) {
	t.Helper()
	_, err := policy.Parse("test.yaml", []byte(text))
	if err == nil {
		t.Fatalf("Parse: got no error, want one with %q\n%s", want, text)
	}
	for _, part := range want {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("Parse: got error %q, want it to contain %q", err, part)
		}
	}
}
