package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// storm deals the blows of the schedule, and undoes them. One goroutine does all of it.
type storm struct {
	w *world
	// down are replicas that were killed and are not to run yet, frozen those that are stopped.
	down, frozen [replicas]bool
	dealt        map[Damage]int
}

// stroke is a blow, or its end.
type stroke struct {
	at   time.Duration
	blow Blow
	ends bool
}

func strokes(blows []Blow) []stroke {
	var all []stroke
	for _, b := range blows {
		all = append(all, stroke{b.After, b, false}, stroke{b.After + b.For, b, true})
	}
	slices.SortStableFunc(all, func(a, b stroke) int { return cmp.Compare(a.at, b.at) })
	return all
}

// run deals blows until the time is over, and then repairs everything.
func (s *storm) run(ctx context.Context, blows []Blow, length time.Duration) error {
	began := time.Now()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for left := strokes(blows); time.Since(began) < length && ctx.Err() == nil; <-tick.C {
		for len(left) > 0 && time.Since(began) >= left[0].at {
			if err := s.strike(ctx, left[0]); err != nil {
				return fmt.Errorf("%s: %w", left[0].blow, err)
			}
			left = left[1:]
		}
		if err := s.keep(); err != nil {
			return err
		}
	}
	return s.repair(ctx)
}

func (s *storm) strike(ctx context.Context, x stroke) error {
	if x.ends {
		return s.mend(ctx, x.blow)
	}
	i := x.blow.Replica
	switch x.blow.What {
	case Kill:
		if s.down[i] {
			return nil
		}
		s.down[i], s.frozen[i] = true, false
		s.w.processes[i].Kill()
	case Pause, LongPause:
		if s.down[i] || s.frozen[i] || ended(s.w.processes[i].Done()) {
			return nil
		}
		if err := s.w.processes[i].Freeze(); err != nil {
			return unlessGone(err)
		}
		s.frozen[i] = true
	case Restart:
		if err := s.w.fleet.Cluster.Stop(ctx); err != nil {
			return err
		}
	case CrashRestart:
		if err := s.w.fleet.Cluster.Kill(ctx); err != nil {
			return err
		}
	case NoDatabase:
		s.w.links[i].database.Fall()
	case NoTarget:
		s.w.links[i].target.Fall()
	}
	s.dealt[x.blow.What]++
	return nil
}

func (s *storm) mend(ctx context.Context, b Blow) error {
	switch b.What {
	case Kill:
		s.down[b.Replica] = false // keep starts it
	case Pause, LongPause:
		return s.thaw(b.Replica)
	case Restart, CrashRestart:
		return s.w.fleet.Cluster.Start(ctx)
	case NoDatabase:
		s.w.links[b.Replica].database.Rise()
	case NoTarget:
		s.w.links[b.Replica].target.Rise()
	}
	return nil
}

func (s *storm) thaw(i int) error {
	if !s.frozen[i] {
		return nil
	}
	s.frozen[i] = false
	return unlessGone(s.w.processes[i].Thaw())
}

// unlessGone is nil for a signal to a process that has ended by itself: keep starts it again.
func unlessGone(err error) error {
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// keep starts every replica that should run and does not: one that comes up while its database is away ends by itself.
func (s *storm) keep() error {
	for i, p := range s.w.processes {
		if s.down[i] || !ended(p.Done()) {
			continue
		}
		again, err := s.w.fleet.Launch(s.w.settings[i])
		if err != nil {
			return fmt.Errorf("starting replica %d again: %w", i, err)
		}
		s.w.processes[i], s.frozen[i] = again, false
	}
	return nil
}

// repair ends all damage and returns when every replica is ready.
func (s *storm) repair(ctx context.Context) error {
	s.down = [replicas]bool{}
	err := s.w.fleet.Cluster.Start(ctx)
	for i := range replicas {
		s.w.links[i].database.Rise()
		s.w.links[i].target.Rise()
		err = errors.Join(err, s.thaw(i))
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for i := range replicas {
		if err := s.ready(ctx, i); err != nil {
			return fmt.Errorf("replica %d does not come back: %w", i, err)
		}
	}
	return nil
}

func (s *storm) ready(ctx context.Context, i int) error {
	for {
		if err := s.keep(); err != nil {
			return err
		}
		err := s.w.processes[i].Ready(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		pause(ctx, 100*time.Millisecond)
	}
}

func ended(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
