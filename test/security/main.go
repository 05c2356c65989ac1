// Command security attacks a real service over the network and shows that nothing comes of it.
//
// It promises, for every attack of attacks.go, a real `cutonce serve` on a real Postgres, configured as in production (an https
// address, people who sign in by OpenID Connect, issuers with keys of their own), and a counting platform behind it. While an
// attack runs, the platform's counters, the stored records and the audit must not move; where it makes sense the honest variant
// of the same call is made afterwards and must work, so that "refused" means something; and after each the service still answers.
// It prints one line for each and exits with 1 if any succeeds.
//
// It does not promise that these are all the attacks that there are. Start at attacks.go, then world.go.
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

	"github.com/cutonce/cutonce/test/fleet"
)

// whole bounds everything.
const whole = 10 * time.Minute

func main() {
	binary := flag.String("binary", "bin/cutonce", "the program to attack")
	only := flag.String("attacks", "", "the attacks to run, separated by commas; all of them if empty")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, whole)
	defer cancel()
	chosen, err := choose(*only)
	if err == nil {
		err = run(ctx, *binary, chosen)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "security: %v\n", err)
		os.Exit(1)
	}
}

func choose(names string) ([]attack, error) {
	if names == "" {
		return attacks(), nil
	}
	var chosen []attack
	for name := range strings.SplitSeq(names, ",") {
		found := false
		for _, a := range attacks() {
			if a.name == name {
				chosen, found = append(chosen, a), true
			}
		}
		if !found {
			return nil, fmt.Errorf("there is no attack %q", name)
		}
	}
	return chosen, nil
}

func run(ctx context.Context, binary string, chosen []attack) error {
	binary, err := filepath.Abs(binary)
	if err != nil {
		return err
	}
	f, err := fleet.Start(ctx, fleet.Config{Binary: binary})
	if f != nil {
		defer f.Close()
	}
	if err != nil {
		return err
	}
	s, err := open(ctx, f)
	if s != nil {
		defer s.close()
	}
	if err != nil {
		return err
	}
	refused := 0
	for _, a := range chosen {
		if s.one(ctx, a) {
			refused++
		}
	}
	fmt.Println(verdict(refused, len(chosen)))
	if refused != len(chosen) {
		return fmt.Errorf("%d of %d attacks were not refused", len(chosen)-refused, len(chosen))
	}
	return nil
}

func verdict(refused, all int) string { return fmt.Sprintf("attacks: %d/%d refused", refused, all) }
