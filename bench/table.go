package main

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// table collects the cells and prints their medians.
type table struct {
	o     options
	cells map[place][]result
}

// place is a cell's place in the table.
type place struct {
	who     string
	clients int
}

func newTable(o options) *table { return &table{o: o, cells: map[place][]result{}} }

// describe says on what all of it runs.
func (t *table) describe(ctx context.Context, conn *pgx.Conn) error {
	var version, settings string
	err := conn.QueryRow(ctx, `
select current_setting('server_version'), string_agg(name || '=' || setting, ' ' order by name) from pg_settings
where name in ('fsync', 'synchronous_commit', 'full_page_writes', 'shared_buffers', 'wal_sync_method', 'checkpoint_timeout', 'max_wal_size')`).Scan(&version, &settings)
	fmt.Printf("%s, %d cores, %s; Postgres %s: %s\n", time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), runtime.Version(), version, settings)
	return err
}

// rounds lets the contenders take turns. 8 clients, on which the ratios rest, are measured in every round, the others in every
// second one.
func (t *table) rounds(ctx context.Context, crews []*crew, m *meter) error {
	for round := range t.o.rounds {
		for _, clients := range t.o.clients {
			if clients != 8 && len(t.o.clients) > 1 && round%2 == 1 {
				continue
			}
			var said []string
			for _, c := range crews {
				if t.o.only != "" && !slices.Contains(strings.Split(t.o.only, ","), c.name()) {
					continue
				}
				r, err := c.measure(ctx, m, clients, t.o.length)
				if err != nil {
					return err
				}
				p := place{c.name(), clients}
				t.cells[p] = append(t.cells[p], r)
				said = append(said, fmt.Sprintf("%s %.0f", c.name(), r.rate))
			}
			fmt.Printf("round %d, %2d clients, cycles/s: %s\n", round+1, clients, strings.Join(said, ", "))
		}
	}
	return nil
}

func median(of []float64) float64 {
	if len(of) == 0 {
		return 0
	}
	slices.Sort(of)
	return of[len(of)/2]
}

// of is the median of one number over a cell's rounds.
func (t *table) of(who string, clients int, number func(result) float64) float64 {
	var all []float64
	for _, r := range t.cells[place{who, clients}] {
		all = append(all, number(r))
	}
	return median(all)
}

// ratio is the median over the rounds of what one made beside what the other made in the same round.
func (t *table) ratio(who, beside string) float64 {
	a, b := t.cells[place{who, 8}], t.cells[place{beside, 8}]
	var all []float64
	for n := range min(len(a), len(b)) {
		all = append(all, a[n].rate/b[n].rate)
	}
	return median(all)
}

func rate(r result) float64 { return r.rate }

// rows are the contenders in the order of the table.
var rows = []struct{ who, what string }{
	{"bare", "(a) the same commits in pgx alone"},
	{"stripped", "    … on tables without guards"},
	{"api", "(b) cutonce, JSON API"},
	{"mcp", "(c) cutonce, the agent over MCP"},
	{"dbos", "(d) DBOS Transact Go 1.8.0"},
	{"ctrlrun", "CTRLRun's 16 commits, rebuilt"},
}

func (t *table) print() {
	fmt.Printf("\n%-36s", "cycles/s")
	for _, clients := range t.o.clients {
		fmt.Printf("%10s", fmt.Sprintf("%d clients", clients))
	}
	fmt.Printf("%12s%10s%10s%10s%10s%10s%10s\n", "commits", "WAL", "CPU", "postgres", "service", "target", "clients")
	for _, row := range rows {
		if !t.measured(row.who) {
			continue
		}
		fmt.Printf("%-36s", row.what)
		for _, clients := range t.o.clients {
			fmt.Printf("%10.0f", t.of(row.who, clients, rate))
		}
		t.printCosts(row.who)
	}
	fmt.Printf("%-36s%*s\n\n", "", 10*len(t.o.clients)+12+60, "per cycle, at 8 clients")
	t.printService()
	for _, r := range []struct{ name, who, beside string }{
		{"api", "api", "bare"}, {"mcp", "mcp", "bare"}, {"api_stripped", "api", "stripped"}, {"mcp_stripped", "mcp", "stripped"}, {"dbos", "api", "dbos"}, {"ctrlrun", "api", "ctrlrun"},
	} {
		if t.measured(r.who) && t.measured(r.beside) {
			fmt.Printf("ratio_%s=%.2f\n", r.name, t.ratio(r.who, r.beside))
		}
	}
}

func (t *table) measured(who string) bool { return len(t.cells[place{who, 8}]) > 0 }

func (t *table) printCosts(who string) {
	cpu := func(process string) float64 { return t.of(who, 8, func(r result) float64 { return r.cpu[process] }) }
	total := t.of(who, 8, func(r result) (sum float64) {
		for ms := range maps.Values(r.cpu) {
			sum += ms
		}
		return sum
	})
	fmt.Printf("%12.1f%8.1fkB%8.2fms%8.2fms%8.2fms%8.2fms%8.2fms\n", t.of(who, 8, func(r result) float64 { return r.commits }),
		t.of(who, 8, func(r result) float64 { return r.wal / 1000 }), total, cpu("postgres"), cpu("serve"), cpu("target"), cpu("clients"))
}

// printService tells what the service adds to the target's own time, and what it allocates.
func (t *table) printService() {
	ms := func(d func(result) time.Duration, who string, clients int) float64 {
		return t.of(who, clients, func(r result) float64 { return float64(d(r)) / float64(time.Millisecond) })
	}
	for _, who := range []string{"api", "mcp"} {
		for _, clients := range t.o.clients {
			if len(t.cells[place{who, clients}]) == 0 {
				continue
			}
			added := func(p func(result) time.Duration) float64 {
				return ms(func(r result) time.Duration { return p(r) - r.own }, who, clients)
			}
			fmt.Printf("apply over %s, %2d clients: adds p50 %.1f ms, p99 %.1f ms to the target's own %.2f ms; the service allocates %.0f objects, %.0f kB a cycle\n",
				who, clients, added(func(r result) time.Duration { return r.p50 }), added(func(r result) time.Duration { return r.p99 }),
				ms(func(r result) time.Duration { return r.own }, who, clients), t.of(who, clients, func(r result) float64 { return r.allocs }),
				t.of(who, clients, func(r result) float64 { return r.allocBytes / 1000 }))
		}
	}
	fmt.Println()
}
