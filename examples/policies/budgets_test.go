package policies_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/examples/policies"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/money"
	"github.com/cutonce/cutonce/policy"
)

var update = flag.Bool("update", false, "rewrite the golden rulings")

func load(t testing.TB) *policy.Policy {
	t.Helper()
	p, err := policy.Load(policies.FS)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return p
}

func change(currency money.Currency, before, after int64) policy.Facts {
	return policy.Facts{
		Action: "budget_change",
		Plan: connector.Plan{Changes: []connector.Change{{
			Field:  "daily_budget",
			Before: connector.Money(money.Amount{Minor: before, Currency: currency}),
			After:  connector.Money(money.Amount{Minor: after, Currency: currency}),
		}}},
		Requester: actor.Actor{Tenant: "acme", Kind: actor.Agent, Subject: "agent-7"},
	}
}

// cases are in minor units: USD 5000.00 is 500000.
var cases = []struct {
	name  string
	facts policy.Facts
	want  policy.Verdict
	rule  string
}{
	{"KRW a decrease", change("KRW", 200_000, 150_000), policy.Allow, "small-change"},
	{"KRW to zero", change("KRW", 200_000, 0), policy.Allow, "small-change"},
	{"KRW exactly +50 %", change("KRW", 200_000, 300_000), policy.Allow, "small-change"},
	{"KRW one won more than +50 %", change("KRW", 200_000, 300_001), policy.Require, "large-raise"},
	{"KRW +60 %", change("KRW", 200_000, 320_000), policy.Require, "large-raise"},
	{"KRW from zero", change("KRW", 0, 1), policy.Require, "from-zero"},
	{"KRW exactly the ceiling", change("KRW", 4_000_000, 5_000_000), policy.Allow, "small-change"},
	{"KRW above the ceiling", change("KRW", 4_000_000, 5_000_001), policy.Deny, "ceiling"},
	{"KRW from zero above the ceiling", change("KRW", 0, 5_000_001), policy.Deny, "ceiling"},
	{"KRW down to above the ceiling", change("KRW", 9_000_000, 8_000_000), policy.Allow, "small-change"},
	{"JPY small, far above the ceiling's number of dollars", change("JPY", 20_000, 25_000), policy.Allow, "small-change"},
	{"JPY exactly the ceiling", change("JPY", 400_000, 500_000), policy.Allow, "small-change"},
	{"JPY above the ceiling", change("JPY", 400_000, 500_001), policy.Deny, "ceiling"},
	{"KRW +50.0001 %", change("KRW", 1_000_000, 1_500_001), policy.Require, "large-raise"},
	{"USD exactly +50 %", change("USD", 80_00, 120_00), policy.Allow, "small-change"},
	{"USD one cent more than +50 %", change("USD", 80_00, 120_01), policy.Require, "large-raise"},
	{"USD exactly the ceiling", change("USD", 4_000_00, 5_000_00), policy.Allow, "small-change"},
	{"USD above the ceiling", change("USD", 4_000_00, 5_000_01), policy.Deny, "ceiling"},
	{"EUR small, without a ceiling", change("EUR", 80_00, 81_00), policy.Require, "no-ceiling"},
	{"nothing known", policy.Facts{Action: "budget_change"}, policy.Require, "large-raise"},
	{"another action", policy.Facts{Action: "something_else"}, policy.Require, "default"},
}

func TestTheShippedPolicyRules(t *testing.T) {
	t.Parallel()
	p := load(t)
	var golden strings.Builder
	for _, tc := range cases {
		got := p.Evaluate(tc.facts)
		if got.Verdict != tc.want || got.Rule != tc.rule {
			t.Errorf("%s: got %s by %s, want %s by %s", tc.name, got.Verdict, got.Rule, tc.want, tc.rule)
		}
		if got.Version != p.Version() {
			t.Errorf("%s: got version %s, want %s", tc.name, got.Version, p.Version())
		}
		golden.WriteString(render(t, tc.name, got))
	}
	compare(t, filepath.Join("testdata", "rulings.golden"), golden.String())
}

func render(t *testing.T, name string, r policy.Ruling) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n  %s by %s\n", name, r.Verdict, r.Rule)
	for _, s := range r.Needs {
		fmt.Fprintf(&b, "  needs %d of %s\n", s.Count, strings.Join(s.AnyOf, ", "))
	}
	for _, lang := range slices.Sorted(maps.Keys(r.Texts)) {
		fmt.Fprintf(&b, "  %s: %s\n", lang, r.Texts[lang])
	}
	for _, key := range slices.Sorted(maps.Keys(r.Saw)) {
		fmt.Fprintf(&b, "  saw %s = %s\n", key, r.Saw[key])
	}
	for _, w := range r.Warnings {
		raw, err := json.Marshal(w)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "  warning %s\n", raw)
	}
	return b.String() + "\n"
}

func compare(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func TestAnAgentIsToldHowToAsk(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"en": "A person must approve this. Use the approval request tool (approval_request).",
		"ja": "担当者の承認が必要です。承認リクエストツール（approval_request）を使ってください。",
	}
	p := load(t)
	for _, tc := range cases {
		if tc.want != policy.Require {
			continue
		}
		if diff := cmp.Diff(want, p.Evaluate(tc.facts).Texts); diff != "" {
			t.Errorf("%s: texts (-want +got):\n%s", tc.name, diff)
		}
	}
}

func TestTheShippedPolicyIsAboutActionsThatExist(t *testing.T) {
	t.Parallel()
	if err := load(t).CheckActions([]string{"budget_change", "deployment_rollback"}); err != nil {
		t.Error(err)
	}
}
