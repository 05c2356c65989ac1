// Command crash takes real processes through every failure point of an apply and shows that each has its one right outcome.
//
// It promises, for every row of rows.go and both ways of recovery (the same replica is started again; another replica goes on),
// a real `cutonce serve` that is killed or frozen at that point, a counting platform in another process as the witness of what
// took effect, and the invariants of check.go over everything that the row did. A row that kills nothing at its point has its
// process killed after the outcome, and reads the outcome back. It prints one line for each, and exits with 1 if any fails.
//
// It does not promise that the points are all there are: test/soak looks for others. Start at rows.go, then world.go.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/cutonce/cutonce/internal/pglocal"
	"github.com/cutonce/cutonce/test/fleet"
)

// whole bounds everything.
const whole = 11 * time.Minute

func main() {
	binary := flag.String("binary", "bin/cutonce-stops", "the program to test, built with the tag stops")
	only := flag.String("rows", "", "the rows to run, separated by commas; all of them if empty")
	lanes := flag.Int("lanes", 3, "how many rows run at a time")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, whole)
	defer cancel()
	chosen, err := choose(*only)
	if err == nil {
		err = run(ctx, config{binary: *binary, rows: chosen, lanes: *lanes})
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "crash: %v\n", err)
		os.Exit(1)
	}
}

type config struct {
	binary string
	rows   []row
	lanes  int
}

func choose(names string) ([]row, error) {
	if names == "" {
		return rows, nil
	}
	var chosen []row
	for name := range strings.SplitSeq(names, ",") {
		found := false
		for _, r := range rows {
			if r.name == name {
				chosen, found = append(chosen, r), true
			}
		}
		if !found {
			return nil, fmt.Errorf("there is no row %q", name)
		}
	}
	return chosen, nil
}

func run(ctx context.Context, c config) error {
	binary, err := filepath.Abs(c.binary)
	if err != nil {
		return err
	}
	c.binary = binary
	s := &suite{config: c}
	s.run(ctx)
	fmt.Println(s.verdict())
	if !s.passed() {
		return fmt.Errorf("%d of %d did not hold\n%s", s.of()-s.ok, s.of(), strings.Join(s.failures, "\n")) // the end of a log is what is read
	}
	return nil
}

// clocks are scaled down: a lease lapses and an outcome settles while one waits for it.
func clocks() map[string]string {
	return map[string]string{
		"SEND": "500ms", "LEASE": "1500ms", "SEND_MARGIN": "100ms", "SETTLE": "500ms", "SWEEP": sweep.String(), "PROBE_BASE": "100ms",
	}
}

// sweep is how often a replica looks for what lapsed.
const sweep = 200 * time.Millisecond

func start(ctx context.Context, binary string) (*fleet.Fleet, error) {
	return fleet.Start(ctx, fleet.Config{
		Binary: binary, Clocks: clocks(), Postgres: pglocal.Config{MaxConnections: 250}, // a row has up to five replicas
	})
}
