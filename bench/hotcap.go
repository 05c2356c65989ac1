package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
)

// onlyHotCap is the word of -only for the measurement of declared caps, which has contenders of its own.
const onlyHotCap = "hotcap"

// capped is the service under a policy with a cap, over its JSON API.
type capped struct {
	*service
	label string
	meter *meter
}

func (c capped) name() string { return c.label }

// capText is a policy file beside the benchmark's own. The limit is never met: what is measured is asking.
func capText(per string) string {
	return "version: 1\nzone: Asia/Tokyo\ncaps:\n  - {name: spend, actions: [budget_change], field: daily_budget, per: " + per +
		", window: month, limit: {JPY: 9000000000}}\n"
}

// hotCap measures 8 clients whose changes all count against one cap, beside 8 whose changes have a cap each, and 8 without any.
func hotCap(ctx context.Context, o options, dir, binary, address string) error {
	databases, err := makeDatabases(ctx, address, "none", "own", "hot")
	if err != nil {
		return err
	}
	var crews []*crew
	for _, one := range []struct{ label, caps string }{{"none", ""}, {"own", capText("target")}, {"hot", capText("tenant")}} {
		place := filepath.Join(dir, one.label)
		if err := os.Mkdir(place, 0o700); err != nil {
			return err
		}
		s, err := startStage(ctx, place, binary, databases[one.label], one.caps)
		if err != nil {
			return err
		}
		defer s.stop()
		m, err := newMeter(ctx, databases[one.label], s)
		if err != nil {
			return err
		}
		defer m.admin.Close(context.WithoutCancel(ctx))
		c := &crew{contender: capped{&service{stage: s, applies: &samples{}}, one.label, m}}
		defer c.close(context.WithoutCancel(ctx))
		crews = append(crews, c)
	}
	return o.hotRounds(ctx, crews, databases["hot"])
}

func (o options) hotRounds(ctx context.Context, crews []*crew, hot string) error {
	t := newTable(o)
	for round := range o.rounds {
		var said []string
		for _, c := range crews {
			who := c.contender.(capped)
			r, err := c.measure(ctx, who.meter, 8, o.length)
			if err != nil {
				return err
			}
			t.cells[place{who.label, 8}] = append(t.cells[place{who.label, 8}], r)
			said = append(said, fmt.Sprintf("%s %.0f", who.label, r.rate))
		}
		fmt.Printf("round %d, 8 clients, cycles/s: %s\n", round+1, strings.Join(said, ", "))
	}
	reserved, err := reservations(ctx, hot)
	if err != nil {
		return err
	}
	fmt.Printf("\ncycles/s at 8 clients: no cap %.0f, a cap for each client %.0f, one cap for all %.0f (%d changes counted in it)\n",
		t.of("none", 8, rate), t.of("own", 8, rate), t.of("hot", 8, rate), reserved)
	fmt.Printf("ratio_hotcap=%.2f\nratio_owncap=%.2f\n", t.ratio("hot", "own"), t.ratio("own", "none"))
	return nil
}

// reservations counts what the one cap has counted: a policy whose cap is not asked would look fast.
func reservations(ctx context.Context, url string) (n int, err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, err
	}
	defer conn.Close(ctx)
	if err := conn.QueryRow(ctx, `select count(*) from cap_reservations`).Scan(&n); err != nil {
		return 0, err
	}
	if n == 0 {
		return 0, errors.New("the cap has counted nothing")
	}
	return n, nil
}
