package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cutonce/cutonce/test/fleet"
)

// change is one change and everything that was acknowledged of it, in the words of its audit events.
type change struct {
	id   string
	told []string
	// last is the status that its last answer showed.
	last string
	// must is set where only one end is right.
	must string
}

// callPatience is longer than the service holds any call.
const callPatience = 10 * time.Second

// heard notes an event that an answer acknowledged.
func (c *change) heard(event string) {
	if !slices.Contains(c.told, event) {
		c.told = append(c.told, event)
	}
}

// traffic is callers who go on through a failover as if nothing were, and repeat what was not answered.
type traffic struct {
	r       *rig
	over    chan struct{}
	running sync.WaitGroup
	mu      sync.Mutex
	changes []*change
	failed  []error
	settled chan struct{}
}

const callers = 6

func (r *rig) traffic(ctx context.Context, round int) *traffic {
	t := &traffic{r: r, over: make(chan struct{}), settled: make(chan struct{}, 1<<16)}
	for n := range callers {
		t.running.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-t.over:
					return
				default:
				}
				if err := t.cycle(ctx, fmt.Sprintf("failover-%d-%d-%d", round, n, i), n, i); err != nil {
					t.mu.Lock()
					t.failed = append(t.failed, err)
					t.mu.Unlock()
					return
				}
				t.settled <- struct{}{}
			}
		})
	}
	return t
}

// end lets every caller finish what it has begun.
func (t *traffic) end() ([]*change, []error) {
	close(t.over)
	t.running.Wait()
	return t.changes, t.failed
}

// cycle is one change from its preparation to its end; every third one needs a person.
func (t *traffic) cycle(ctx context.Context, key string, n, i int) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	campaign := t.r.campaigns[n]
	yen, person := fleet.Budget-1000-i%500, false
	if i%3 == 2 {
		yen, person = 3*fleet.Budget+i%500, true
	}
	c := &change{}
	made, err := t.insist(ctx, n, "agent", func(ctx context.Context, who fleet.Caller) (fleet.Reply, error) {
		return who.Prepare(ctx, campaign, yen, key)
	})
	if err != nil {
		return fmt.Errorf("preparing: %w", err)
	}
	c.id, c.last = made.PreviewID, made.Status
	c.heard("prepared")
	t.mu.Lock()
	t.changes = append(t.changes, c)
	t.mu.Unlock()
	if person {
		if err := t.agree(ctx, n, c); err != nil {
			return fmt.Errorf("agreeing to %s: %w", c.id, err)
		}
	}
	return t.apply(ctx, n, c)
}

func (t *traffic) agree(ctx context.Context, n int, c *change) error {
	asked, err := t.insist(ctx, n, "agent", func(ctx context.Context, who fleet.Caller) (fleet.Reply, error) { return who.Request(ctx, c.id) })
	if err != nil {
		return err
	}
	if asked.Status != "pending" {
		return fmt.Errorf("got %d %s %s, want it to be pending", asked.HTTP, asked.Code, asked.Status)
	}
	c.heard("approval_requested")
	shown, err := t.insist(ctx, n, "kim", func(ctx context.Context, who fleet.Caller) (fleet.Reply, error) { return who.Status(ctx, c.id, 0) })
	if err != nil {
		return err
	}
	said, err := t.insist(ctx, n, "kim", func(ctx context.Context, who fleet.Caller) (fleet.Reply, error) {
		return who.Decide(ctx, c.id, "approve", shown.Change.Digest)
	})
	if err != nil {
		return err
	}
	if said.Code != "" {
		return fmt.Errorf("got %d %s, want the approval to be heard", said.HTTP, said.Code)
	}
	c.heard("approved")
	return nil
}

// apply repeats the apply until the change has come to an end. What is unknown is left to the service.
func (t *traffic) apply(ctx context.Context, n int, c *change) error {
	for {
		r, err := t.insist(ctx, n, "agent", func(ctx context.Context, who fleet.Caller) (fleet.Reply, error) { return who.Apply(ctx, c.id) })
		if err != nil {
			return fmt.Errorf("applying %s, last %s: %w", c.id, c.last, err)
		}
		if r.Status != "" {
			c.last = r.Status
		}
		if r.Code == "frozen" {
			return fmt.Errorf("applying %s: frozen, though nothing was restored", c.id)
		}
		switch c.last {
		case "applied", "not_applied":
			c.heard(c.last)
			return nil
		case "rejected", "canceled", "expired", "denied":
			return fmt.Errorf("%s ended %s, which nobody asked for", c.id, c.last)
		}
		pause(ctx, 50*time.Millisecond)
	}
}

// insist repeats a call, through one replica after the other, until it is answered by more than an internal error.
func (t *traffic) insist(
	ctx context.Context, n int, who string, do func(context.Context, fleet.Caller) (fleet.Reply, error),
) (fleet.Reply, error) {
	var last error
	for i := 0; ctx.Err() == nil; i++ {
		call, cancel := context.WithTimeout(ctx, callPatience)
		r, err := do(call, t.r.at(who, n+i))
		cancel()
		if err == nil && (r.HTTP < 500 || r.Code == "outcome_unknown" || r.Code == "target_unavailable") {
			return r, nil
		}
		if last = err; err == nil {
			last = fmt.Errorf("%d %s: %s", r.HTTP, r.Code, r.Message)
		}
		pause(ctx, 50*time.Millisecond)
	}
	return fleet.Reply{}, fmt.Errorf("%w; before that: %w", ctx.Err(), last)
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
