// Program soak lets many clients use three replicas while processes are killed, paused and Postgres restarted, and then checks every
// promise from three sides: our tables, the target's counters, and what the clients were told.
//
// It promises that a seed replays its schedule: what is broken when, and what every client does in each of its cycles. It does not
// replay how the processes interleave, which is the machine's business: a violation that needs a narrow race may take several runs
// of its seed. What the checks are is in check.go, what callers may rely on in model.go. Start at soak.
package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// Options are a run's.
type Options struct {
	Binary string
	For    time.Duration
	Seed   uint64
	// Calm leaves the processes alone.
	Calm bool
}

func main() {
	var o Options
	flag.StringVar(&o.Binary, "binary", "bin/cutonce", "the program under test")
	flag.DurationVar(&o.For, "for", time.Minute, "how long the clients go on")
	flag.Uint64Var(&o.Seed, "seed", 0, "replays a schedule; 0 draws a fresh one")
	flag.BoolVar(&o.Calm, "calm", false, "kill, pause and restart nothing")
	flag.Parse()
	if o.Seed == 0 {
		o.Seed = freshSeed()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	v, err := soak(ctx, o, os.Stdout)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	case v.violations > 0:
		os.Exit(1)
	}
}

// freshSeed is short enough to be typed.
func freshSeed() uint64 {
	var raw [4]byte
	_, _ = rand.Read(raw[:]) // it never fails: it ends the process instead
	return uint64(binary.BigEndian.Uint32(raw[:]))
}

// soak runs everything and prints what came of it. The seed is printed at once.
func soak(ctx context.Context, o Options, out io.Writer) (verdict, error) {
	fmt.Fprintf(out, "seed %d (make test/soak SOAK=%s SEED=%d replays its schedule, not the interleaving)\n", o.Seed, o.For, o.Seed)
	w := &world{seed: o.Seed, journal: newJournal()}
	defer w.close()
	if err := w.open(ctx, o.Binary); err != nil {
		return verdict{}, err
	}
	settles := "looks up by key"
	if !looksUp(o.Seed) {
		settles = "remembers keys, and cannot look up"
	}
	fmt.Fprintf(out, "%d replicas × %d clients for %s; the target %s; %s\n", replicas, perReplica, o.For, settles, w.fleet.Cluster.Describe())
	s := &storm{w: w, dealt: map[Damage]int{}}
	if err := w.use(ctx, s, o); err != nil {
		return verdict{}, err
	}
	fmt.Fprintf(out, "dealt: %d replicas killed, %d paused, %d paused past their lease; Postgres restarted %d times, crashed %d times; "+
		"%d replicas cut off from it, %d from the target\n", s.dealt[Kill], s.dealt[Pause], s.dealt[LongPause], s.dealt[Restart],
		s.dealt[CrashRestart], s.dealt[NoDatabase], s.dealt[NoTarget])
	if err := w.quiet(ctx); err != nil {
		return verdict{}, fmt.Errorf("waiting for everything to be settled: %w", err)
	}
	if err := w.finally(ctx); err != nil {
		return verdict{}, err
	}
	all, strays, err := w.gather(ctx)
	if err != nil {
		return verdict{}, err
	}
	w.summarise(all, out)
	v := judge(all, strays, out)
	broken, err := w.trail(ctx, out)
	if err != nil {
		return verdict{}, fmt.Errorf("verifying the audit trail: %w", err)
	}
	v.breaks, v.violations = v.breaks+broken, v.violations+broken
	fmt.Fprintf(out, "chain: %d events of %d changes, %d breaks\n", v.events, v.changes, v.breaks)
	fmt.Fprintf(out, "soak: %d cycles, %d kills, %d violations\n", w.cycles.Load(), s.dealt[Kill]+s.dealt[CrashRestart], v.violations)
	return v, nil
}

// use lets the clients go on for the time, while the storm deals its blows.
func (w *world) use(ctx context.Context, s *storm, o Options) error {
	over := make(chan struct{})
	var all sync.WaitGroup
	for n := range clients {
		all.Go(func() { w.client(ctx, n, over) })
	}
	all.Go(func() { w.operator(ctx, over) })
	err := s.run(ctx, Blows(o.Seed, o.For, o.Calm), o.For)
	close(over)
	all.Wait()
	return err
}

// summarise says what the changes came to, so that a run that tested nothing can be told.
func (w *world) summarise(all []Evidence, out io.Writer) {
	ends, contradicted, operators, lost := map[string]int{}, 0, 0, 0
	for _, e := range all {
		if e.Record == nil {
			continue
		}
		ends[e.Record.Status()]++
		if x := e.Record.Execution; x != nil && x.Contradicted {
			contradicted++
		}
		if x := e.Record.Execution; x != nil && x.Evidence == "operator" {
			operators++
		}
		for _, c := range e.Calls {
			if !c.Answered() {
				lost++
			}
		}
	}
	fmt.Fprintf(out, "ended: %d applied (%d of them contradicted), %d not applied, %d rejected, %d canceled, %d expired, %d denied; "+
		"%d settled by an operator; %d calls of %d without an answer\n", ends[applied], contradicted, ends[notApplied], ends[rejected],
		ends[canceled], ends[expired], ends[denied], operators, lost, len(w.journal.all()))
}
