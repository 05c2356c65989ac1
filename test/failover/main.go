// Program failover loses the primary of a synchronous pair of Postgres servers between a claim and its record, again and again, and
// shows that the service finds the promoted standby by itself, that nothing acknowledged is lost and nothing takes effect twice.
//
// It promises real servers (the primary's first process gets a SIGKILL and does not come back), two real replicas, one of
// which runs through all rounds without a restart while the other starts again after each promotion, and callers who go on as if
// nothing were. It does not fence a primary that is alive: who promotes a standby must see to it that the old primary answers nobody.
// Exit code 3 says that it could not run, and why. Start at round.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/cutonce/cutonce/internal/pglocal"
	"github.com/cutonce/cutonce/test/fleet"
)

const (
	exitFailed   = 1
	exitCouldNot = 3
)

func main() {
	binary := flag.String("binary", "bin/cutonce", "the program under test")
	rounds := flag.Int("rounds", 20, "how often the primary is lost")
	seed := flag.Uint64("seed", 1, "decides how long each promotion is waited for")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, *binary, *rounds, rand.New(rand.NewPCG(*seed, 0)))
	switch {
	case errors.Is(err, pglocal.ErrNoBaseBackup), errors.Is(err, pglocal.ErrNoPostgres):
		fmt.Fprintln(os.Stderr, "failover: it cannot run here:", err)
		stop()
		os.Exit(exitCouldNot)
	case err != nil:
		fmt.Fprintln(os.Stderr, "failover:", err)
		stop()
		os.Exit(exitFailed)
	}
}

// rig is the pair, the replicas on it and the people.
type rig struct {
	fleet     *fleet.Fleet
	pair      *pair
	replicas  []*fleet.Process
	urls      []string
	database  string
	people    map[string]fleet.Caller
	campaigns []string
}

func run(ctx context.Context, binary string, rounds int, chance *rand.Rand) error {
	r, err := open(ctx, binary)
	defer r.close()
	if err != nil {
		return err
	}
	good, lost := 0, 0
	for n := range rounds {
		o, err := r.round(ctx, n, chance)
		if err != nil {
			return fmt.Errorf("round %d: %w", n+1, err)
		}
		fmt.Printf("round %d: %s\n", n+1, o)
		for _, w := range o.wrong {
			fmt.Println("  VIOLATION:", w)
		}
		if lost += o.lost; len(o.wrong) == 0 {
			good++
		}
	}
	if err := r.doubt(ctx); err != nil {
		return fmt.Errorf("a commit without its standby: %w", err)
	}
	fmt.Println("a commit without its standby: in doubt, nothing was sent; lost with its server, and applied once by the next apply")
	if err := r.restart(ctx); err != nil {
		return fmt.Errorf("after a commit without its standby: %w", err)
	}
	if good < rounds {
		return fmt.Errorf("%d/%d rounds, %d lost", good, rounds, lost)
	}
	fmt.Printf("failover: %d/%d, N<=1, %d lost\n", good, rounds, lost)
	return nil
}

// open starts everything. close ends it, also after an error.
func open(ctx context.Context, binary string) (r *rig, err error) {
	r = &rig{}
	if r.fleet, err = fleet.Start(ctx, fleet.Config{Binary: binary, Clocks: map[string]string{
		"PREVIEW_TTL": "60s", "APPROVAL": "60s", "APPLY_WINDOW": "60s", "SEND": "500ms", "LEASE": "1500ms", "SEND_MARGIN": "100ms",
		"SETTLE": "500ms", "SWEEP": "200ms", "PROBE_BASE": "100ms", "APPLY_WAIT": "2s", "SEAL": "500ms",
	}}); err != nil {
		return r, err
	}
	if r.pair, err = newPair(ctx, r.fleet); err != nil {
		return r, err
	}
	if r.database, err = r.pair.url(); err != nil {
		return r, err
	}
	for range 2 {
		// One witness for both: a promoted standby that knew less than was acknowledged would be found frozen at the next start.
		p, err := r.fleet.Serve(ctx, fleet.Replica{
			Database: r.database, Env: []string{"CUTONCE_SEAL_WITNESS=" + filepath.Join(r.fleet.Dir, "witness")},
		})
		if err != nil {
			return r, err
		}
		r.replicas, r.urls = append(r.replicas, p), append(r.urls, p.URL)
	}
	r.people = map[string]fleet.Caller{}
	for _, who := range []string{"agent", "kim"} {
		if r.people[who], err = r.fleet.As(who, r.replicas[0]); err != nil {
			return r, err
		}
	}
	for range callers {
		id, err := r.fleet.Campaign(ctx)
		if err != nil {
			return r, err
		}
		r.campaigns = append(r.campaigns, id)
	}
	return r, nil
}

func (r *rig) close() {
	if r.pair != nil {
		r.pair.close(context.Background())
	}
	if r.fleet != nil {
		r.fleet.Close()
	}
}

// at is somebody at one replica or the other.
func (r *rig) at(who string, n int) fleet.Caller {
	c := r.people[who]
	c.URL = r.urls[n%len(r.urls)]
	return c
}
