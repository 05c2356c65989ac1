package policy_test

import (
	"testing"

	"github.com/cutonce/cutonce/examples/policies"
	"github.com/cutonce/cutonce/policy"
)

// BenchmarkEvaluate is the shipped policy on an ordinary change: it runs inside every prepare and every apply.
func BenchmarkEvaluate(b *testing.B) {
	p, err := policy.Load(policies.FS)
	if err != nil {
		b.Fatal(err)
	}
	facts := budget("KRW", 200_000, 320_000)
	b.ReportAllocs()
	for b.Loop() {
		if got := p.Evaluate(facts); got.Verdict != policy.Require {
			b.Fatalf("got %s, want require", got.Verdict)
		}
	}
}

// BenchmarkParse is what a start costs.
func BenchmarkParse(b *testing.B) {
	text := []byte(one("change.daily_budget <= percent(50)", "allow"))
	for b.Loop() {
		if _, err := policy.Parse("bench.yaml", text); err != nil {
			b.Fatal(err)
		}
	}
}
