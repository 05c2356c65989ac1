package auth

import (
	"container/list"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
)

// Limits are how much one process serves before it says "later", in units a minute; zero means without limit. A minute's worth may
// come at once. What a call costs is in cost.
type Limits struct {
	// Actor is what one caller may use; Tenant what the agents and services of one tenant may use together.
	Actor, Tenant int
	// Action is how many changes of one action may be prepared for one tenant.
	Action int
	Now    func() time.Time
}

// The cost of a call, in units: what asks a platform is dear, what only reads here is cheap.
const (
	costRead  = 1
	costMove  = 2
	costAsk   = 5
	perMinute = 60
)

// MinLimit is the least limit that every call fits into.
const MinLimit = 2 * costAsk

func cost(p actor.Power) int {
	switch p {
	case actor.Find, actor.Prepare:
		return costAsk
	case actor.Request, actor.Apply, actor.Cancel:
		return costMove
	}
	return costRead
}

// Limiter counts calls. It keeps a bounded number of counters, the last used ones: a caller that was forgotten begins with a full
// minute, and only a token makes a caller. It is safe for concurrent use.
type Limiter struct {
	limits  Limits
	mu      sync.Mutex
	counted map[counter]*list.Element
	recent  *list.List // of *bucket, the last used first
}

// counter names what is counted for.
type counter struct{ what, tenant, name string }

type bucket struct {
	counter
	*rate.Limiter
}

// mostCounters bounds the memory: some two hundred bytes each.
const mostCounters = 10_000

// NewLimiter makes a Limiter. Limits below MinLimit, but for zero, would refuse some calls for ever.
func NewLimiter(l Limits) *Limiter {
	return &Limiter{limits: l, counted: map[counter]*list.Element{}, recent: list.New()}
}

// Call counts one call. Its fault is rate_limited: nothing was done, and the call may be repeated after the time that it names. People
// count for themselves alone, so that no crowd of agents keeps them from deciding; and freezing is never refused.
func (l *Limiter) Call(who actor.Actor, p actor.Power) error {
	if p == actor.Freeze || p == actor.FreezeEverything {
		return nil
	}
	of := []demand{{counter{"actor", who.Tenant, who.ID()}, l.limits.Actor}}
	if who.Kind != actor.Human {
		of = append(of, demand{counter{"tenant", who.Tenant, ""}, l.limits.Tenant})
	}
	return l.take(cost(p), of...)
}

// Prepare counts a change that is about to be prepared, whoever asks for it and at whichever door. Its fault is rate_limited.
func (l *Limiter) Prepare(who actor.Actor, action string) error {
	return l.take(1, demand{counter{"action", who.Tenant, action}, l.limits.Action})
}

type demand struct {
	counter
	limit int
}

// take takes n units from all of the counters, or from none.
func (l *Limiter) take(n int, of ...demand) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.limits.Now()
	var wait time.Duration
	short := ""
	var full []*bucket
	for _, d := range of {
		if d.limit == 0 {
			continue
		}
		b := l.bucket(d)
		if lacks := float64(n) - b.TokensAt(now); lacks > 0 {
			if w := time.Duration(lacks / float64(b.Limit()) * float64(time.Second)); w >= wait {
				wait, short = w, d.what
			}
		}
		full = append(full, b)
	}
	if short != "" {
		return later(short, wait)
	}
	for _, b := range full {
		b.AllowN(now, n)
	}
	return nil
}

// bucket finds a counter, and forgets the one that was not used for longest where there are too many.
func (l *Limiter) bucket(d demand) *bucket {
	if e, known := l.counted[d.counter]; known {
		l.recent.MoveToFront(e)
		return e.Value.(*bucket)
	}
	if l.recent.Len() >= mostCounters {
		oldest := l.recent.Back()
		delete(l.counted, oldest.Value.(*bucket).counter)
		l.recent.Remove(oldest)
	}
	b := &bucket{d.counter, rate.NewLimiter(rate.Limit(d.limit)/perMinute, d.limit)}
	l.counted[d.counter] = l.recent.PushFront(b)
	return b
}

// later tells what was used up, and when to come again, in whole seconds.
func later(what string, wait time.Duration) error {
	seconds := max(1, int(math.Ceil(wait.Seconds())))
	return fault.New(fault.RateLimited, fault.Args{"seconds": seconds}).WithKey("fault.rate_limited." + what).
		After(time.Duration(seconds) * time.Second).WithData(map[string]any{"limit": what})
}
