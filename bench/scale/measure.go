package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cutonce/cutonce/internal/target"
)

// warm rounds fill caches and prepare statements on both sides and are not counted.
const warm = 20

// table holds every duration by side and call.
type table struct {
	took [2][][]time.Duration
}

// measure lets the sides take turns, and the other one begin every other time.
func (s *stage) measure(ctx context.Context, rounds int) (*table, error) {
	t := &table{}
	for n := range t.took {
		t.took[n] = make([][]time.Duration, len(measured))
	}
	for n := range rounds + warm {
		for turn := range 2 {
			which := (n + turn) % 2
			campaign := target.PlainJPY(which*target.PlainCount/2 + n%(target.PlainCount/2))
			took, err := s.sides[which].round(ctx, s.tokens, campaign, n)
			if err != nil {
				return nil, fmt.Errorf("round %d: %w", n, err)
			}
			if n < warm {
				continue
			}
			for call, d := range took {
				t.took[which][call] = append(t.took[which][call], d)
			}
		}
	}
	return t, nil
}

func quantile(of []time.Duration, q float64) float64 {
	sorted := slices.Sorted(slices.Values(of))
	return float64(sorted[int(q*float64(len(sorted)-1))].Microseconds()) / 1000
}

func (t *table) print(n int) {
	fmt.Printf("\n%-20s %21s   %21s   %s\n", "ms", "empty  p50    p95", fmt.Sprintf("%d  p50    p95", n), "ratio of p50")
	worst := 0.0
	for call, name := range measured {
		e, f := t.took[empty][call], t.took[full][call]
		ratio := quantile(f, 0.5) / quantile(e, 0.5)
		fmt.Printf("%-20s %14.2f %6.2f   %14.2f %6.2f   %.2f\n", name, quantile(e, 0.5), quantile(e, 0.95), quantile(f, 0.5), quantile(f, 0.95), ratio)
		if call < promised {
			worst = max(worst, ratio)
		}
	}
	fmt.Printf("\n%d rounds, the sides taking turns call by call round; the first %d rows are the promise\n", len(t.took[empty][0]), promised)
	fmt.Printf("scale: worst ratio %.2f (≤ 1.2)\n", worst)
}
