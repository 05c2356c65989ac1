package auth

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
)

// clockwork is a time that a test moves.
type clockwork struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clockwork) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clockwork) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func limiter(l Limits) (*Limiter, *clockwork) {
	c := &clockwork{now: time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)}
	l.Now = c.Now
	return NewLimiter(l), c
}

func caller(tenant, name string, kind actor.Kind) actor.Actor {
	return actor.Actor{Tenant: tenant, Kind: kind, Issuer: "https://id.example", Subject: name}
}

// until calls until it is refused, and returns how often it was not.
func until(l *Limiter, who actor.Actor, p actor.Power) (served int, refusal error) {
	for served < 10_000 {
		if err := l.Call(who, p); err != nil {
			return served, err
		}
		served++
	}
	return served, nil
}

func wantLater(t *testing.T, err error, what string, after time.Duration) {
	t.Helper()
	var f *fault.Fault
	if !errors.As(err, &f) || f.Code != fault.RateLimited {
		t.Fatalf("got %v, want rate_limited", err)
	}
	if f.RetryAfter != after || f.Data["limit"] != what || !f.Retryable || f.Args["seconds"] != int(after.Seconds()) {
		t.Errorf("got %v after %s, want %s after %s", f.Data, f.RetryAfter, what, after)
	}
}

func TestACallersMinute(t *testing.T) {
	t.Parallel()
	l, clock := limiter(Limits{Actor: 60})
	bot := caller("acme", "bot", actor.Agent)
	served, err := until(l, bot, actor.Prepare)
	if served != 60/costAsk {
		t.Errorf("got %d prepares, want %d", served, 60/costAsk)
	}
	wantLater(t, err, "actor", 5*time.Second) // a unit a second, and a prepare is five
	clock.pass(4 * time.Second)
	wantLater(t, l.Call(bot, actor.Prepare), "actor", time.Second)
	clock.pass(time.Second)
	if err := l.Call(bot, actor.Prepare); err != nil {
		t.Errorf("after the time that was named: %v", err)
	}
	wantLater(t, l.Call(bot, actor.Read), "actor", time.Second)
	if err := l.Call(caller("acme", "other", actor.Agent), actor.Prepare); err != nil {
		t.Errorf("another caller: %v", err)
	}
	clock.pass(time.Hour)
	if served, _ := until(l, bot, actor.Read); served != 60 {
		t.Errorf("after an hour: got %d reads, want a minute's worth", served)
	}
}

func TestATenantsAgentsTogether(t *testing.T) {
	t.Parallel()
	l, _ := limiter(Limits{Actor: 60, Tenant: 100})
	if served, err := until(l, caller("acme", "a", actor.Agent), actor.Read); served != 60 {
		t.Fatalf("got %d, %v, want the caller's own 60", served, err)
	}
	served, err := until(l, caller("acme", "b", actor.Agent), actor.Read)
	if served != 40 {
		t.Errorf("got %d, want the 40 that are left of the tenant's", served)
	}
	wantLater(t, err, "tenant", time.Second)
	if err := l.Call(caller("globex", "a", actor.Agent), actor.Read); err != nil {
		t.Errorf("another tenant: %v", err)
	}
	if served, _ := until(l, caller("acme", "kim", actor.Human), actor.Decide); served != 60 {
		t.Errorf("a person of the tenant: got %d, want their own 60", served)
	}
}

// A call that is refused for one counter takes nothing from the others.
func TestARefusedCallTakesNothing(t *testing.T) {
	t.Parallel()
	l, clock := limiter(Limits{Actor: 60, Tenant: 120})
	_, _ = until(l, caller("acme", "a", actor.Agent), actor.Read)
	for range 1000 {
		_ = l.Call(caller("acme", "a", actor.Agent), actor.Read)
	}
	if served, _ := until(l, caller("acme", "b", actor.Agent), actor.Read); served != 60 {
		t.Errorf("got %d calls of another agent after a thousand refused ones, want 60", served)
	}
	clock.pass(time.Second)
	if err := l.Call(caller("acme", "a", actor.Agent), actor.Read); err != nil {
		t.Errorf("a second later: %v", err)
	}
}

func TestNobodyIsKeptFromFreezing(t *testing.T) {
	t.Parallel()
	l, _ := limiter(Limits{Actor: MinLimit, Tenant: MinLimit})
	lee := caller("acme", "lee", actor.Human)
	_, err := until(l, lee, actor.Read)
	wantLater(t, err, "actor", 6*time.Second)
	if err := l.Call(lee, actor.Freeze); err != nil {
		t.Errorf("got %v, want a freeze to be heard", err)
	}
}

func TestAnActionsPrepares(t *testing.T) {
	t.Parallel()
	l, clock := limiter(Limits{Action: 30})
	for n := range 30 {
		if err := l.Prepare(caller("acme", fmt.Sprint(n), actor.Agent), "budget_change"); err != nil {
			t.Fatalf("%d: %v", n, err)
		}
	}
	bot := caller("acme", "bot", actor.Agent)
	wantLater(t, l.Prepare(bot, "budget_change"), "action", 2*time.Second)
	for _, other := range []error{l.Prepare(bot, "deployment_rollback"), l.Prepare(caller("globex", "bot", actor.Agent), "budget_change")} {
		if other != nil {
			t.Errorf("another action, another tenant: %v", other)
		}
	}
	clock.pass(2 * time.Second)
	if err := l.Prepare(bot, "budget_change"); err != nil {
		t.Errorf("after the time that was named: %v", err)
	}
}

func TestWithoutLimits(t *testing.T) {
	t.Parallel()
	l, _ := limiter(Limits{})
	if served, err := until(l, caller("acme", "bot", actor.Agent), actor.Prepare); err != nil {
		t.Errorf("got %v after %d", err, served)
	}
	if len(l.counted) != 0 {
		t.Errorf("got %d counters, want none", len(l.counted))
	}
}

func TestCountersAreBounded(t *testing.T) {
	t.Parallel()
	l, _ := limiter(Limits{Actor: 10})
	first := caller("acme", "first", actor.Agent)
	_, _ = until(l, first, actor.Read)
	for n := range 2 * mostCounters {
		_ = l.Call(caller("acme", fmt.Sprint(n), actor.Agent), actor.Read)
		if n%1000 == 0 && l.Call(first, actor.Read) == nil {
			t.Fatal("a caller that keeps calling was forgotten")
		}
	}
	if len(l.counted) != mostCounters || l.recent.Len() != mostCounters {
		t.Errorf("got %d and %d counters, want %d", len(l.counted), l.recent.Len(), mostCounters)
	}
}

func TestManyCallersAtOnce(t *testing.T) {
	t.Parallel()
	l, _ := limiter(Limits{Actor: 100, Tenant: 150})
	var mu sync.Mutex
	served := 0
	var group sync.WaitGroup
	for n := range 8 {
		group.Go(func() {
			for range 100 {
				if l.Call(caller("acme", fmt.Sprint(n%2), actor.Agent), actor.Read) == nil {
					mu.Lock()
					served++
					mu.Unlock()
				}
			}
		})
	}
	group.Wait()
	if served != 150 {
		t.Errorf("got %d calls served, want the tenant's 150", served)
	}
}
