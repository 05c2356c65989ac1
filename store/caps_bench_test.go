package store_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/cutonce/cutonce/preview"
)

// BenchmarkPrepareUnderCaps prepares changes that the policy allows, eight at a time: without a cap, with a cap of its own for each
// target, and with one cap for all, whose ledger everybody waits for.
//
//	go test ./store -run '^$' -bench UnderCaps -benchtime 1000x
func BenchmarkPrepareUnderCaps(b *testing.B) {
	const cap = "  - {name: room, actions: [text_change], field: daily_budget, per: %s, window: month, limit: {JPY: 1000000000}}\n"
	for _, bench := range []struct{ name, caps string }{
		{"none", "  []\n"}, {"a-cap-each", fmt.Sprintf(cap, "target")}, {"one-hot-cap", fmt.Sprintf(cap, "tenant")},
	} {
		b.Run(bench.name, func(b *testing.B) {
			r := capRig(b, "allow", bench.caps)
			var n atomic.Int64
			b.SetParallelism(4)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					got, err := r.previews.Prepare(b.Context(), agent("bot"), preview.Request{Action: "text_change", Input: input(fmt.Sprintf("t%d", n.Add(1)), "100")})
					if err != nil || got.Preview.State != preview.Approved {
						b.Errorf("got %s, %v", got.Preview.State, err)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "prepares/s")
		})
	}
}
