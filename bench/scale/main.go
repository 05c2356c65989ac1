// Command scale measures what a million stored previews cost: the same calls at the same moment against two services, one on a
// database that is empty but for a queue, the other on one that holds N changes.
//
// It promises that both are the released program on one durable Postgres, that they take turns call by call, so that a noisy machine is
// noisy for both, and that what is stored is what the service stores: states, decisions, executions, attempts and audit chains that
// verify. The rows are multiplied in SQL from changes that the service itself made. What it does not promise is that the absolute
// numbers hold elsewhere: the ratios are the result.
//
// Start at run; load.sql is what is stored, calls.go what is measured.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"time"

	"github.com/cutonce/cutonce/internal/pglocal"
)

type options struct {
	binary string
	n      int
	rounds int
	// keep leaves the cluster's folder, and kept is the address of one that was left and runs again.
	keep bool
	kept string
}

func main() {
	var o options
	flag.StringVar(&o.binary, "binary", "../bin/cutonce", "the program that is measured")
	flag.IntVar(&o.n, "n", 1_000_000, "how many previews are stored")
	flag.IntVar(&o.rounds, "rounds", 300, "how often each call is measured")
	flag.BoolVar(&o.keep, "keep", false, "keep the database's folder, to look at plans")
	flag.StringVar(&o.kept, "kept", "", "measure once more on a kept cluster that was started again at this address")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if o.n < 1000 || o.rounds < 10 {
		return errors.New("at least 1000 previews and 10 rounds")
	}
	dir, err := os.MkdirTemp("", "cutonce-scale-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	address := o.kept
	if address == "" {
		end, at, err := openCluster(ctx, o.keep)
		if err != nil {
			return err
		}
		defer end()
		address = at
	}
	s, err := setUp(ctx, dir, o.binary, address)
	if err != nil {
		return err
	}
	defer s.stop()
	return s.compare(ctx, o)
}

// openCluster makes a durable Postgres of this program's own.
func openCluster(ctx context.Context, keep bool) (end func(), address string, err error) {
	name := "scale-" + strconv.Itoa(os.Getpid())
	cluster, err := pglocal.Open(ctx, pglocal.Config{
		// Memory as a production server of this size would have it, and no checkpoint that hits one side alone.
		Name: name, Settings: map[string]string{
			"shared_buffers": "1GB", "checkpoint_timeout": "30min", "max_wal_size": "16GB", "maintenance_work_mem": "512MB",
		},
	})
	if err != nil {
		return nil, "", err
	}
	return func() {
		if err := cluster.Close(context.WithoutCancel(ctx)); err != nil {
			fmt.Fprintln(os.Stderr, "scale: stopping Postgres:", err)
		}
		if !keep {
			_ = os.RemoveAll(filepath.Join(pglocal.DefaultDir(), name))
		}
	}, cluster.URL(), nil
}

// compare fills the larger database, unless that was done before, measures both, and prints.
func (s *stage) compare(ctx context.Context, o options) error {
	stored := "kept from before"
	if o.kept == "" {
		for _, at := range s.sides {
			if err := at.seed(ctx, s.tokens); err != nil {
				return fmt.Errorf("seeding %s: %w", at.name, err)
			}
		}
		// Nothing sweeps a database whose indexes are set aside.
		s.sides[full].stop()
		began := time.Now()
		described, err := fill(ctx, s.sides[full].database, o.n)
		if err != nil {
			return fmt.Errorf("storing %d previews: %w", o.n, err)
		}
		if err := s.sides[full].serve(ctx); err != nil {
			return err
		}
		stored = fmt.Sprintf("%s, in %s", described, time.Since(began).Round(time.Second))
	}
	fmt.Printf("%s, %s\n%s\n", s.machine(), s.version(ctx), stored)
	t, err := s.measure(ctx, o.rounds)
	if err != nil {
		return err
	}
	t.print(o.n)
	if o.keep {
		fmt.Println("kept:", s.sides[full].database)
	}
	return nil
}
