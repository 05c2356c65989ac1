package policy

import (
	"encoding/json"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/examples/policies"
	"github.com/cutonce/cutonce/internal/money"
)

func raise(t testing.TB, before, after int64) Facts {
	t.Helper()
	value := func(minor int64) connector.Value {
		a, err := money.FromMinor(minor, "KRW")
		if err != nil {
			t.Fatal(err)
		}
		return connector.Money(a)
	}
	return Facts{
		Action: "budget_change",
		Plan:   connector.Plan{Changes: []connector.Change{{Field: "daily_budget", Before: value(before), After: value(after)}}},
	}
}

func TestTheShippedRulesAreFarBelowTheCostLimit(t *testing.T) {
	t.Parallel()
	p, err := Load(policies.FS)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range p.rules {
		facts := raise(t, 1, 6_000_000)
		facts.Input = connector.Input{"environment": "production"}
		_, details, err := r.program.Eval(&scope{facts: facts})
		if err != nil {
			t.Fatalf("%s: %v", r.name, err)
		}
		if got := *details.ActualCost(); got == 0 || got > costLimit/100 {
			t.Errorf("%s: got cost %d, want above 0 and at most %d", r.name, got, costLimit/100)
		}
	}
}

func TestConcurrentCallersGetTheSameRuling(t *testing.T) {
	t.Parallel()
	p, err := Load(policies.FS)
	if err != nil {
		t.Fatal(err)
	}
	facts := raise(t, 200_000, 320_000)
	want := p.Evaluate(facts)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				if diff := cmp.Diff(want, p.Evaluate(facts)); diff != "" {
					t.Errorf("ruling (-want +got):\n%s", diff)
					return
				}
			}
		})
	}
	group.Wait()
}

// BenchmarkCostLimit is the longest that one rule can take.
func BenchmarkCostLimit(b *testing.B) {
	p, err := Parse("bench.yaml", []byte(`
version: 1
default: {require: [{any_of: [people]}]}
rules: [{name: costly, when: "input.l.all(a, input.l.all(b, input.l.all(c, a + b + c >= 0)))", then: deny}]
`))
	if err != nil {
		b.Fatal(err)
	}
	list := make([]any, 100)
	for i := range list {
		list[i] = json.Number("1")
	}
	for b.Loop() {
		if got := p.Evaluate(Facts{Input: connector.Input{"l": list}}); got.Warnings[0].Code != WarnError {
			b.Fatalf("got %v, want %s", got.Warnings, WarnError)
		}
	}
}
