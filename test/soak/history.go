package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cutonce/cutonce/test/fleet"
)

// Call is one call of a client and what it saw.
type Call struct {
	Client int
	// Preview is what it was about. A prepare is known by its idempotency key until the change is.
	Preview, Key string
	Op           Op
	Who          string
	Replica      int
	// Began and Ended are of one monotonic clock. Ended is 0 where no answer came back.
	Began, Ended time.Duration
	HTTP         int
	Code, Next   string
	// Status is the change's, as the answer shows it; empty where the answer shows none. Until is when it was to end by its clock,
	// and At when the call was made, both as clocks on walls tell.
	Status    string
	Until, At time.Time

	Replayed bool
	// Said is what an operator stated.
	Said string
	Lost string
	// Yen is what a prepare asked for.
	Yen int
}

// Answered reports whether an answer came back.
func (c Call) Answered() bool { return c.Ended > 0 }

// Final reports whether the answer says that the call is over at the service: an internal error does not.
func (c Call) Final() bool {
	return c.Answered() && (c.HTTP < 500 || c.Code == "outcome_unknown" || c.Code == "target_unavailable")
}

func (c Call) String() string {
	who := fmt.Sprintf("%9.3fs %-8s %-6s replica %d", c.Began.Seconds(), c.Op, c.Who, c.Replica)
	if !c.Answered() {
		return who + "  no answer: " + c.Lost
	}
	return fmt.Sprintf("%s  after %dms: %d %s %s %s", who, (c.Ended - c.Began).Milliseconds(), c.HTTP, c.Code, c.Status, c.Said)
}

// journal keeps the calls of all clients.
type journal struct {
	start time.Time
	mu    sync.Mutex
	calls []Call
}

func newJournal() *journal { return &journal{start: time.Now()} }

func (j *journal) now() time.Duration { return time.Since(j.start) }

func (j *journal) add(c Call) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.calls = append(j.calls, c)
}

// all is every call in the order of their begin.
func (j *journal) all() []Call {
	j.mu.Lock()
	defer j.mu.Unlock()
	sorted := slices.Clone(j.calls)
	slices.SortStableFunc(sorted, func(a, b Call) int { return int(a.Began - b.Began) })
	return sorted
}

// ask makes one call and writes it down, whatever becomes of it.
func (j *journal) ask(ctx context.Context, c Call, do func(context.Context) (fleet.Reply, error)) (fleet.Reply, error) {
	c.Began, c.At = j.now(), time.Now()
	reply, err := do(ctx)
	if err != nil {
		c.Lost = err.Error()
		j.add(c)
		return reply, err
	}
	c.Ended = j.now()
	c.HTTP, c.Code, c.Next, c.Status, c.Replayed = reply.HTTP, reply.Code, reply.Next, reply.Status, reply.Replayed
	c.Until = until(reply)
	if c.Op == Prepare && c.Preview == "" {
		c.Preview = reply.PreviewID
	}
	j.add(c)
	return reply, nil
}

// until is when the status of an answer ends by its clock: the deadline of an open change, the lease of one that is applying.
func until(r fleet.Reply) time.Time {
	switch c := r.Change; {
	case c == nil:
	case open(c.Status) && c.ExpiresAt != nil:
		return *c.ExpiresAt
	case c.Status == applying && c.Outcome != nil && c.Outcome.LeaseUntil != nil:
		return *c.Outcome.LeaseUntil
	}
	return time.Time{}
}
