package store_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/preview"
)

// rounds is how often each race is run: a race that goes wrong once in a thousand needs thousands.
var rounds = flag.Int("rounds", 20, "rounds of each race of two")

func roundsOf() int {
	if testing.Short() {
		return min(*rounds, 3)
	}
	return *rounds
}

// replica is the same core as another process has it: services, store and connections of its own on the same database.
func (r *rig) replica() *rig {
	r.t.Helper()
	other := *r
	other.store = openStore(r.t, r.url)
	other.previews, other.approvals, other.commits = services(r.t, r, other.store)
	return &other
}

// move is what one contender does to a change: on a model of the change, and for real.
type move struct {
	// spec says what becomes of a change in this state, and what the contender is told (see outcome.told).
	spec func(commit.Status) (becomes commit.Status, told string)
	do   contender
	// from is the earliest state in which the move means anything.
	from preview.State
}

// ends are the states in which a change that nobody has claimed is over, and what a decision is told of them.
var ends = map[commit.Status]string{
	commit.StatusRejected: "conflict (rejected)", commit.StatusCanceled: "conflict (canceled)", commit.StatusExpired: "expired",
	commit.StatusApplied: "in_progress",
}

func approves(s commit.Status) (commit.Status, string) {
	switch s {
	case commit.StatusPending:
		return commit.StatusApproved, ""
	case commit.StatusApproved:
		return s, "conflict (approved)"
	}
	return s, ends[s]
}

func rejects(s commit.Status) (commit.Status, string) {
	if s == commit.StatusPending || s == commit.StatusApproved {
		return commit.StatusRejected, ""
	}
	return s, ends[s]
}

func cancels(s commit.Status) (commit.Status, string) {
	switch s {
	case commit.StatusPending, commit.StatusApproved, commit.StatusCanceled:
		return commit.StatusCanceled, ""
	}
	return s, ends[s]
}

func expires(s commit.Status) (commit.Status, string) {
	if s == commit.StatusPending || s == commit.StatusApproved {
		return commit.StatusExpired, ""
	}
	return s, ""
}

func claims(s commit.Status) (commit.Status, string) {
	switch s {
	case commit.StatusPending:
		return s, "approval_required"
	case commit.StatusApproved:
		return commit.StatusApplied, string(commit.StatusApplied)
	}
	return s, string(s)
}

// expireSQL lets the deadline of an open change come now.
var expireSQL = strings.Replace(moveSQL("deadline = clock_timestamp()"), "where id = $1", "where id = $1 and state in ('pending', 'approved')", 1)

func expiring(r *rig, p preview.Preview) outcome {
	if _, err := r.pool.Exec(context.Background(), expireSQL, p.ID.UUID()); err != nil {
		return outcome{err: err}
	}
	_, err := r.store.MarkLapsed(context.Background(), 10)
	return outcome{err: err}
}

// moves are the six, and their twins by somebody else.
var moves = map[string]move{
	"approve":     {approves, contenders["approve"], preview.Pending},
	"approve too": {approves, contenders["approve too"], preview.Pending},
	"reject":      {rejects, contenders["reject"], preview.Pending},
	"reject too":  {rejects, contenders["reject too"], preview.Pending},
	"veto":        {rejects, func(r *rig, p preview.Preview) outcome { _, err := r.reject(p, "mori"); return outcome{err: err} }, preview.Approved},
	"cancel":      {cancels, contenders["cancel"], preview.Pending},
	"cancel too":  {cancels, contenders["cancel"], preview.Pending},
	"expire":      {expires, expiring, preview.Pending},
	"claim":       {claims, contenders["claim"], preview.Approved},
	"claim too":   {claims, contenders["claim"], preview.Approved},
}

// pairs are all fifteen pairs of approve, reject, veto, cancel, expire and claim, and each of them against its twin.
func pairs() [][2]string {
	six := []string{"approve", "reject", "veto", "cancel", "expire", "claim"}
	list := [][2]string{{"approve", "approve too"}, {"reject", "reject too"}, {"cancel", "cancel too"}, {"claim", "claim too"}, {"expire", "expire"}}
	for i, a := range six {
		for _, b := range six[i+1:] {
			list = append(list, [2]string{a, b})
		}
	}
	return list
}

// startOf is where a race of two begins: approve has nothing to say after an approval, all others may come after it.
func startOf(a, b string) preview.State {
	if strings.HasPrefix(a, "approve") || strings.HasPrefix(b, "approve") {
		return preview.Pending
	}
	if moves[a].from == preview.Approved || moves[b].from == preview.Approved {
		return preview.Approved
	}
	return preview.Pending
}

// legal are the answers that one order of the two or the other gives: what the status becomes, and what either is told.
func legal(start preview.State, a, b string) map[string]bool {
	all := map[string]bool{}
	s, toldA := moves[a].spec(commit.Status(start))
	s, toldB := moves[b].spec(s)
	all[verdictOfRace(s, toldA, toldB)] = true
	s, toldB = moves[b].spec(commit.Status(start))
	s, toldA = moves[a].spec(s)
	all[verdictOfRace(s, toldA, toldB)] = true
	return all
}

func verdictOfRace(s commit.Status, a, b string) string { return fmt.Sprintf("%s; %q; %q", s, a, b) }

// TestEveryPairOfMovesHasOneWinner races each two moves on two replicas, unguided and many times. What either is told, and what
// becomes of the change, must be what one order of the two gives: never a mixture of both.
func TestEveryPairOfMovesHasOneWinner(t *testing.T) {
	t.Parallel()
	here := newRig(t, func(r *rig) { r.conns = 16 })
	here.rules.by = byText
	there := here.replica()
	for _, pair := range pairs() {
		t.Run(pair[0]+" and "+pair[1], func(t *testing.T) {
			t.Parallel()
			here, there := here.in(t), there.in(t)
			a, b := pair[0], pair[1]
			start := startOf(a, b)
			want, seen := legal(start, a, b), map[string]int{}
			for round := range roundsOf() {
				p := here.atState(fmt.Sprintf("%s/%s/%d", a, b, round), start)
				toldA, toldB := race(here, there, p, moves[a].do, moves[b].do, round%2 == 1)
				c := here.status(p.ID)
				got := verdictOfRace(c.Status, toldA.told(), toldB.told())
				seen[got]++
				if !want[got] {
					t.Fatalf("round %d: got %s, want one of %s; events %v", round, got, slices.Sorted(maps.Keys(want)), here.kinds(p.ID))
				}
				if len(c.Attempts) > 1 {
					t.Fatalf("round %d: got %d attempts, want one send at most", round, len(c.Attempts))
				}
			}
			t.Log(seen)
		})
	}
}

// atState prepares a change that one lead must approve, and brings it to pending or approved.
func (r *rig) atState(id string, s preview.State) preview.Preview {
	r.t.Helper()
	p, err := r.approvals.Request(r.t.Context(), agent("bot"), r.prepare(id, "1 lead").ID, "please")
	if err == nil && s == preview.Approved {
		p, err = r.approve(p, "park")
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

// race runs two moves at once, each on a replica of its own.
func race(here, there *rig, p preview.Preview, a, b contender, swap bool) (toldA, toldB outcome) {
	if swap {
		here, there = there, here
	}
	var ready, done sync.WaitGroup
	ready.Add(2)
	begin := func(r *rig, do contender, told *outcome) {
		done.Go(func() {
			ready.Done()
			ready.Wait()
			*told = do(r, p)
		})
	}
	begin(here, a, &toldA)
	begin(there, b, &toldB)
	done.Wait()
	return toldA, toldB
}

// TestTwoVotesAtOnceMeetAQuorumOfTwo on two replicas, unguided and many times: whoever comes second sees the first.
func TestTwoVotesAtOnceMeetAQuorumOfTwo(t *testing.T) {
	t.Parallel()
	here := newRig(t)
	here.rules.by = byText
	there := here.replica()
	for round := range 3 * roundsOf() {
		p, err := here.approvals.Request(t.Context(), agent("bot"), here.prepare(fmt.Sprint(round), "2 leads").ID, "please")
		if err != nil {
			t.Fatal(err)
		}
		second, ends := "approve too", commit.StatusApproved
		if round%3 == 2 {
			second, ends = "reject", commit.StatusRejected // a veto is heard whichever vote comes first
		}
		one, two := race(here, there, p, moves["approve"].do, moves[second].do, round%2 == 1)
		got := here.status(p.ID)
		if two.err != nil || got.Status != ends || ends == commit.StatusApproved && (one.err != nil || len(got.Preview.Votes) != 2) {
			t.Fatalf("round %d, approve and %s: got %s with %d votes (%v, %v), want %s", round, second, got.Status, len(got.Preview.Votes), one.err, two.err, ends)
		}
	}
}
