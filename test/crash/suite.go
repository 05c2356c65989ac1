package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cutonce/cutonce/test/fleet"
)

// way is how a row recovers.
type way string

const (
	byRestart way = "the same replica, started again"
	byAnother way = "another replica"
)

var ways = []way{byRestart, byAnother}

// row is one failure point.
type row struct {
	name, point string
	// outcome is the only right one.
	outcome string
	// alone: it stops Postgres or changes its settings, so that nobody else can use it at the time.
	alone bool
	// shifted: it needs the program with another clock.
	shifted bool
	run     func(*world)
}

// suite runs rows and counts.
type suite struct {
	config

	mu             sync.Mutex
	ok, lost, over int
	failures       []string

	shifting sync.Once
	dir      string
	shiftErr error
}

// attempt is one row in one way.
type attempt struct {
	row
	way
}

// run takes the rows through lanes. Those that want Postgres for themselves have a fleet and a lane of their own.
func (s *suite) run(ctx context.Context) {
	if slices.ContainsFunc(s.rows, func(r row) bool { return r.shifted }) {
		go func() { _, _ = s.shiftedProgram(ctx) }() // those who need it ask for the error
		defer func() { _, _ = s.shiftedProgram(ctx); _ = os.RemoveAll(s.dir) }()
	}
	together, alone := make(chan attempt, 2*len(s.rows)), make(chan attempt, 2*len(s.rows))
	for _, r := range s.rows {
		for _, w := range ways {
			if r.alone {
				alone <- attempt{r, w}
			} else {
				together <- attempt{r, w}
			}
		}
	}
	close(together)
	close(alone)
	var both sync.WaitGroup
	both.Go(func() { s.lanesOf(ctx, max(1, s.lanes-1), together) })
	both.Go(func() { s.lanesOf(ctx, 1, alone) })
	both.Wait()
}

func (s *suite) lanesOf(ctx context.Context, n int, todo <-chan attempt) {
	if len(todo) == 0 {
		return
	}
	f, err := start(ctx, s.binary)
	if f != nil {
		defer f.Close()
	}
	var template string
	if err == nil {
		template, err = migrated(ctx, f)
	}
	if err != nil {
		for a := range todo {
			s.report(a, &world{row: a.row, way: a.way, failure: fmt.Sprintf("the fleet did not start: %v", err)}, 0)
		}
		return
	}
	var lanes sync.WaitGroup
	for range n {
		lanes.Go(func() {
			for a := range todo {
				s.one(ctx, f, template, a)
			}
		})
	}
	lanes.Wait()
	s.unkeyed(ctx, f)
}

// patience bounds one row.
const patience = 2 * time.Minute

func (s *suite) one(ctx context.Context, f *fleet.Fleet, template string, a attempt) {
	w := &world{f: f, suite: s, row: a.row, way: a.way, template: template}
	if a.shifted {
		var err error
		if w.program, err = s.shiftedProgram(ctx); err != nil {
			w.failure = err.Error()
			s.report(a, w, 0)
			return
		}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began := time.Now()
	w.ctx = ctx
	done := make(chan struct{})
	go func() { // a goroutine of its own, because a failure ends it (see world.fail)
		defer close(done)
		defer w.close()
		w.open()
		w.row.run(w)
		w.end()
		w.held = true
	}()
	<-done
	s.report(a, w, time.Since(began))
}

// unkeyed: nothing was ever sent without its key.
func (s *suite) unkeyed(ctx context.Context, f *fleet.Fleet) {
	counters, err := f.Ads.Counters(ctx)
	if err != nil || counters.Unkeyed.Received != 0 {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.over++
		fmt.Printf("FAILED: %d changes reached the platform without a key (%v)\n", counters.Unkeyed.Received, err)
	}
}

func (s *suite) report(a attempt, w *world, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost += w.lostPreviews
	s.over += w.overshoot
	verdict := "FAILED"
	if w.held {
		s.ok++
		verdict = "ok"
	}
	fmt.Printf("%-3s %-7s %5.1fs  %s → %s; recovered by %s: %s\n", a.name, verdict, took.Seconds(), a.point, a.outcome, a.way, w.seen())
	if w.held {
		return
	}
	s.failures = append(s.failures, fmt.Sprintf("%s, recovered by %s: %s", a.name, a.way, w.failure))
	fmt.Printf("    %s\n", w.failure)
	for _, p := range w.processes {
		fmt.Printf("    --- the log of %s (stops %v):\n%s\n", p.URL, p.Stops, tail(p.Log(), 20))
	}
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return "    " + strings.Join(all[max(0, len(all)-lines):], "\n    ")
}

func (s *suite) of() int { return 2 * len(s.rows) }

func (s *suite) passed() bool { return s.ok == s.of() && s.lost == 0 && s.over == 0 }

func (s *suite) verdict() string {
	once := "N<=1 held"
	if s.over > 0 {
		once = fmt.Sprintf("N<=1 BROKEN %d times", s.over)
	}
	return fmt.Sprintf("crash: %d/%d (%d rows × %d recoveries), %s, %d lost", s.ok, s.of(), len(s.rows), len(ways), once, s.lost)
}

// migrated is a database with our schema, of which every row gets a copy.
func migrated(ctx context.Context, f *fleet.Fleet) (string, error) {
	database, err := f.Database(ctx)
	if err != nil {
		return "", err
	}
	return database, f.Migrate(ctx, database)
}
