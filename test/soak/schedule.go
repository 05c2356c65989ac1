package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cutonce/cutonce/internal/target"
)

// Everything that chance decides is decided here, from the seed alone: what is broken when, and what each client does in each of
// its cycles. The same seed gives the same of both. How the processes interleave is the machine's business and not replayed.

const (
	replicas   = 3
	perReplica = 8
	clients    = replicas * perReplica
	// ownCampaigns are each client's own, sharedCampaigns everybody's: there they meet one target's lock.
	ownCampaigns    = 2
	sharedCampaigns = 6
)

// Blow is one thing done to the processes.
type Blow struct {
	After time.Duration
	What  Damage
	// Replica is whom it hits, where it hits one.
	Replica int
	// For is how long until it is undone.
	For time.Duration
}

// Damage is what a blow does.
type Damage string

// The kinds of damage.
const (
	Kill         Damage = "kill"          // SIGKILL of a replica, started again later
	Pause        Damage = "pause"         // SIGSTOP of a replica, shorter than a lease
	LongPause    Damage = "long pause"    // SIGSTOP past the lease
	Restart      Damage = "restart"       // a fast stop of Postgres, and its start
	CrashRestart Damage = "crash restart" // Postgres ends at once and recovers
	NoDatabase   Damage = "no database"   // a replica is cut off from Postgres
	NoTarget     Damage = "no target"     // a replica is cut off from the target
)

// Blows is the schedule of a run of that length. calm runs have none.
func Blows(seed uint64, length time.Duration, calm bool) []Blow {
	var all []Blow
	if calm {
		return all
	}
	r := stream(seed, 0, 0)
	at := between(r, 1500*time.Millisecond, 3*time.Second)
	for ; at < length-time.Second; at += between(r, 1200*time.Millisecond, 3500*time.Millisecond) {
		b := Blow{After: at, Replica: r.IntN(replicas)}
		switch n := r.IntN(14); {
		case n < 4:
			b.What, b.For = Kill, between(r, 0, 1500*time.Millisecond)
		case n < 6:
			b.What, b.For = Pause, between(r, 200*time.Millisecond, 1200*time.Millisecond)
		case n < 8:
			b.What, b.For = LongPause, between(r, 1800*time.Millisecond, 4*time.Second)
		case n < 9:
			b.What, b.For = Restart, between(r, 0, time.Second)
		case n < 10:
			b.What, b.For = CrashRestart, between(r, 0, time.Second)
		case n < 12:
			b.What, b.For = NoDatabase, between(r, 100*time.Millisecond, 2500*time.Millisecond)
		default:
			b.What, b.For = NoTarget, between(r, 100*time.Millisecond, 2500*time.Millisecond)
		}
		all = append(all, b)
	}
	return all
}

// Op is one kind of call.
type Op string

// The calls.
const (
	Prepare Op = "prepare"
	Request Op = "request"
	Approve Op = "approve"
	Reject  Op = "reject"
	Cancel  Op = "cancel"
	Apply   Op = "apply"
	Read    Op = "read"
	Resolve Op = "resolve"
	Probe   Op = "probe"
)

// Act is one call of a cycle.
type Act struct {
	Op      Op
	Who     string
	Replica int
	// Patience is when the client hangs up; zero means that it waits for the answer.
	Patience time.Duration
}

// Cycle is one change from its preparation to whatever becomes of it.
type Cycle struct {
	Story    string
	Campaign int // below ownCampaigns it is the client's own
	Yen      int
	// Prepare is where it is prepared, and how patiently. It is repeated under its key until it is answered.
	Prepare Act
	// Fault is what goes wrong at the target, nil for nothing; Drift that somebody else moves the target before the apply.
	Fault *target.Fault
	Drift int
	// Wait is before the last stages: longer than every clock, so that the change expires.
	Wait time.Duration
	// Stages come one after the other; the acts of one stage at once.
	Stages [][]Act
}

// Plan is what a client does in its n-th cycle.
func Plan(seed uint64, client, n int) Cycle {
	p := planner{stream(seed, client+1, n+1), looksUp(seed)}
	c := Cycle{Campaign: p.IntN(ownCampaigns), Yen: 90_000 + p.IntN(50_000), Prepare: p.act(Prepare)}
	if p.IntN(5) == 0 {
		c.Campaign = ownCampaigns + p.IntN(sharedCampaigns)
	}
	if p.IntN(3) == 0 {
		c.Fault = p.fault()
	}
	if p.IntN(12) == 0 {
		c.Drift = 95_000 + p.IntN(20_000)
	}
	p.story(&c)
	return c
}

type planner struct {
	*rand.Rand
	// looksUp says that what comes late can be found.
	looksUp bool
}

// story draws what the people do.
func (p planner) story(c *Cycle) {
	large := func() { c.Yen = 250_000 + p.IntN(200_000) }
	asked := []Act{p.act(Request)}
	switch n := p.IntN(20); {
	case n < 7:
		c.Story, c.Stages = "automatic", [][]Act{p.applies(1 + p.IntN(4))}
	case n < 11:
		large()
		c.Story, c.Stages = "approved", [][]Act{asked, p.votes(), p.applies(1 + p.IntN(3))}
	case n < 13:
		large()
		c.Story, c.Stages = "rejected", [][]Act{asked, append(p.votes(), p.act(Reject)), p.applies(1)}
	case n < 15:
		large()
		c.Story, c.Stages = "vetoed", [][]Act{asked, p.votes(), append(p.applies(1+p.IntN(2)), p.act(Reject))}
	case n < 17:
		c.Story, c.Stages = "canceled", [][]Act{append(p.applies(p.IntN(3)), p.act(Cancel))}
	case n < 18:
		large()
		c.Story, c.Stages = "all at once", [][]Act{asked, append(append(p.votes(), p.applies(2)...), p.act(Cancel), p.act(Reject))}
	case n < 19:
		c.Story, c.Wait, c.Stages = "expired", 3200*time.Millisecond, [][]Act{append(p.applies(2), p.act(Cancel))}
	default:
		c.Yen = 600_000 + p.IntN(1000)
		c.Story, c.Stages = "denied", [][]Act{append(p.applies(1), p.act(Request))}
	}
	for range p.IntN(3) { // the same ID again, wherever
		c.Stages = append(c.Stages, p.applies(1))
	}
	c.Stages = append(c.Stages, []Act{p.act(Read)})
}

func (p planner) applies(n int) []Act {
	var all []Act
	for range n {
		all = append(all, p.act(Apply))
	}
	return all
}

// votes is one approver, or two at once.
func (p planner) votes() []Act {
	first := p.act(Approve)
	if p.IntN(3) > 0 {
		return []Act{first}
	}
	second := p.act(Approve)
	first.Who, second.Who = approvers[0], approvers[1]
	return []Act{first, second}
}

var approvers = []string{"kim", "tanaka"}

func (p planner) act(op Op) Act {
	a := Act{Op: op, Who: "agent", Replica: p.IntN(replicas)}
	if op == Approve || op == Reject {
		a.Who = approvers[p.IntN(len(approvers))]
	}
	if p.IntN(6) == 0 {
		a.Patience = between(p.Rand, 5*time.Millisecond, 250*time.Millisecond)
	}
	return a
}

// fault draws one thing that goes wrong at the target. The resource is filled in by the client.
func (p planner) fault() *target.Fault {
	delay := func(most int) int { return 50 + p.IntN(most) }
	one := func(op target.Op, s target.Step) *target.Fault {
		f := target.Once(op, "", s)
		return &f
	}
	switch p.IntN(16) {
	case 0:
		return one(target.OpChange, target.Step{Action: target.DropBefore})
	case 1, 2:
		return one(target.OpChange, target.Step{Action: target.DropAfter})
	case 3:
		return one(target.OpChange, target.Step{Action: target.TruncateBody})
	case 4:
		return one(target.OpChange, target.Step{Action: target.StatusBefore, Status: p.status()})
	case 5:
		return one(target.OpChange, target.Step{Action: target.StatusAfter, Status: p.status()})
	case 6:
		return one(target.OpChange, target.Step{Action: target.DuplicateDelivery, ReplyLast: p.IntN(2) == 0})
	case 7, 8:
		return one(target.OpChange, target.Step{Action: target.DelayBefore, DelayMS: delay(1500)})
	case 9:
		return one(target.OpChange, target.Step{Action: target.DelayAfter, DelayMS: delay(1500)})
	case 10:
		// Later than everything that may be waited for: the target contradicts what was found. Where nobody can look, an operator's
		// word would stay uncontradicted, as docs/guarantees.md says.
		if !p.looksUp {
			return one(target.OpChange, target.Step{Action: target.DropBefore})
		}
		return one(target.OpChange, target.Step{Action: target.DelayBefore, DelayMS: 3000 + delay(1500)})
	case 11:
		return one(target.OpRead, target.Step{Action: target.StaleRead})
	case 12:
		return one(target.OpRead, target.Step{Action: target.StatusBefore, Status: 503})
	case 13:
		f := one(target.OpLookup, target.Step{Action: target.LookupUnavailable})
		f.Times = 1 + p.IntN(4)
		return f
	case 14:
		return one(target.OpLookup, target.Step{Action: target.DelayBefore, DelayMS: delay(1000)})
	}
	return one(target.OpChange, target.Step{Action: target.StatusBefore, Status: 422})
}

func (p planner) status() int { return []int{200, 202, 302, 409, 429, 500, 502, 503, 504}[p.IntN(9)] }

// stream is a source of chance of its own for each part of a run, so that no part depends on how far another has come.
func stream(seed uint64, part, n int) *rand.Rand {
	return rand.New(rand.NewPCG(seed, uint64(part)<<32|uint64(n)))
}

func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least)+1))
}

func (b Blow) String() string {
	return fmt.Sprintf("%s at %s, replica %d, for %s", b.What, b.After.Round(time.Millisecond), b.Replica, b.For.Round(time.Millisecond))
}
