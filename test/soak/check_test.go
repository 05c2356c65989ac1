package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cutonce/cutonce/audit"
	"github.com/cutonce/cutonce/internal/target"
)

var start = time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)

// chainOf is a whole chain of events of these kinds.
func chainOf(kinds ...string) []audit.Event {
	var all []audit.Event
	head := audit.Genesis[:]
	for i, kind := range kinds {
		body := `{}`
		switch kind {
		case "prepared allow", "prepared require", "prepared deny":
			kind, body = "prepared", fmt.Sprintf(`{"verdict":%q}`, strings.TrimPrefix(kind, "prepared "))
		case "resolved applied":
			kind, body = "resolved", `{"applied":true}`
		}
		e := audit.Event{Seq: int64(i) + 1, Tenant: "acme", Kind: kind, Actor: "a", At: start.Add(time.Duration(i) * time.Second), Body: []byte(body)}
		sum := e.Sum(head)
		e.Hash = sum[:]
		head = e.Hash
		all = append(all, e)
	}
	return all
}

// once is an automatic change that was applied, as all three sides have it when nothing is wrong.
func once() Evidence {
	events := chainOf("prepared allow", "claimed", "applied")
	prepared := told(1, Prepare, "agent", "", approved)
	prepared.Preview, prepared.Yen = "chg_1", 5
	return Evidence{
		Record: &Record{
			State: "claimed", Deadline: start.Add(time.Minute), Seq: 3, Head: events[2].Hash, Events: events,
			Execution: &Execution{State: applied, Evidence: "receipt"}, Attempts: []Attempt{{"send", "applied"}},
		},
		Tally: target.Tally{Received: 1, Effects: 1}, Changes: []target.Change{{After: "5"}},
		Calls: []Call{prepared, told(3, Apply, "agent", "", applied)},
	}
}

// in replaces the events, with an intact chain.
func (e *Evidence) in(state string, kinds ...string) {
	e.Record.Events = chainOf(kinds...)
	e.Record.Seq, e.Record.Head = int64(len(kinds)), e.Record.Events[len(kinds)-1].Hash
	e.Record.Execution.State = state
}

// TestTheCheckComplains holds one positive control for each thing that is checked.
func TestTheCheckComplains(t *testing.T) {
	t.Parallel()
	if got := once().violations(); len(got) > 0 {
		t.Fatalf("got %q of a change with which nothing is wrong", got)
	}
	for _, test := range []struct {
		name, want string
		spoil      func(e *Evidence)
	}{
		{"a double effect", "2 effects", func(e *Evidence) { e.Tally.Effects = 2 }},
		{"a second request that the target refused", "received it 2 times", func(e *Evidence) { e.Tally.Received = 2 }},
		{"two sends", "2 sends", func(e *Evidence) { e.Record.Attempts = append(e.Record.Attempts, Attempt{"send", "unknown"}) }},
		{"applied without an effect", "without an effect", func(e *Evidence) { e.Tally.Effects = 0 }},
		{"not applied, with an effect", "with an effect", func(e *Evidence) { e.in(notApplied, "prepared allow", "claimed", "unknown", "not_applied") }},
		{"never left, but received", "received it 1 times, after 0 sends", func(e *Evidence) { e.Record.Attempts[0].Result = "not_sent" }},
		{"a dead end", "nobody settled it", func(e *Evidence) { e.in(unknown, "prepared allow", "claimed", "lease_lapsed") }},
		{"applying for ever", "still applying", func(e *Evidence) { e.in(applying, "prepared allow", "claimed") }},
		{"an altered event", "hash does not cover", func(e *Evidence) { e.Record.Events[1].Actor = "someone else" }},
		{"an event removed from the end", "does not end where", func(e *Evidence) { e.Record.Events = e.Record.Events[:2] }},
		{"a head that is another's", "does not end where", func(e *Evidence) { e.Record.Head = bytes.Repeat([]byte{1}, 32) }},
		{"events that lead elsewhere", "lead to unknown", func(e *Evidence) { e.in(applied, "prepared allow", "claimed", "unknown") }},
		{"events that do not follow", "cannot come to applying from needs_approval", func(e *Evidence) {
			e.in(applied, "prepared require", "claimed", "applied")
		}},
		{"a claim after the deadline", "after its deadline", func(e *Evidence) { e.Record.Deadline = start }},
		{"executed without the approval", "without the approval", func(e *Evidence) {
			e.in(applied, "prepared require", "approval_requested", "approved", "claimed", "applied")
		}},
		{"another amount than was shown", "prepared 5, applied 6", func(e *Evidence) { e.Changes[0].After = "6" }},
		{"a lapsed lease that reads as applying", "which had ended", func(e *Evidence) {
			e.Calls[1].Status, e.Calls[1].Until, e.Calls[1].At = applying, start, start.Add(time.Second)
		}},
		{"a freeze that nobody declared", "refused as frozen", func(e *Evidence) { e.Calls = append(e.Calls, told(5, Apply, "agent", "frozen", applied)) }},
		{"an internal error", "internal error", func(e *Evidence) {
			e.Calls = append(e.Calls, Call{Op: Apply, Who: "agent", Began: 5, Ended: 6, HTTP: 500, Code: "internal"})
		}},
		{"acknowledged and lost", "acknowledged, and lost", func(e *Evidence) { e.Record = nil }},
		{"clients who were told otherwise", "no order of the calls", func(e *Evidence) { e.Calls = append(e.Calls, told(5, Read, "kim", "", expired)) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			e := once()
			test.spoil(&e)
			if got := strings.Join(e.violations(), "; "); !strings.Contains(got, test.want) {
				t.Errorf("got %q, want it to say %q", got, test.want)
			}
			var told bytes.Buffer
			if v := judge([]Evidence{e}, nil, &told); v.violations == 0 || !strings.Contains(told.String(), "VIOLATION") {
				t.Errorf("got %+v and %q, want a violation that is told", v, &told)
			}
		})
	}
}

// TestEndsThatAreFine must not be called violations.
func TestEndsThatAreFine(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(e *Evidence){
		"contradicted openly": func(e *Evidence) {
			e.in(applied, "prepared allow", "claimed", "lease_lapsed", "not_applied", "contradicted")
		},
		"settled by an operator": func(e *Evidence) {
			e.in(applied, "prepared allow", "claimed", "unknown", "handed_over", "resolved applied")
		},
		"never left, then sent": func(e *Evidence) {
			e.in(applied, "prepared allow", "claimed", "not_sent", "claimed", "applied")
			e.Record.Attempts = []Attempt{{"send", "not_sent"}, {"send", "applied"}}
		},
		"delivered twice by the target itself": func(e *Evidence) { e.Tally.Received, e.Doubled = 2, true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := once()
			spoil(&e)
			if got := e.violations(); len(got) > 0 {
				t.Errorf("got %q, want nothing", got)
			}
		})
	}
}

// TestASeedReplaysItsSchedule: what is broken when and what each client does come from the seed and nothing else.
func TestASeedReplaysItsSchedule(t *testing.T) {
	t.Parallel()
	schedule := func(seed uint64) string {
		var all strings.Builder
		fmt.Fprintln(&all, Blows(seed, time.Minute, false), looksUp(seed))
		for client := range clients {
			for n := range 20 {
				c := Plan(seed, client, n)
				fault := c.Fault
				c.Fault = nil // its address is no part of the schedule
				fmt.Fprintf(&all, "%+v %+v\n", c, fault)
			}
		}
		return all.String()
	}
	if schedule(3) != schedule(3) {
		t.Error("the same seed gave two schedules")
	}
	if schedule(3) == schedule(4) {
		t.Error("two seeds gave one schedule")
	}
}

// TestSchedulesHoldEverything that the suite is for: no story and no damage may have become unreachable.
func TestSchedulesHoldEverything(t *testing.T) {
	t.Parallel()
	damage, stories, faults, modes := map[Damage]int{}, map[string]int{}, map[target.Action]int{}, map[bool]int{}
	for seed := range uint64(20) {
		modes[looksUp(seed)]++
		for _, b := range Blows(seed, time.Minute, false) {
			damage[b.What]++
		}
		for n := range 200 {
			c := Plan(seed, int(seed), n)
			stories[c.Story]++
			if c.Fault != nil {
				faults[c.Fault.Do[0].Action]++
			}
		}
	}
	if len(damage) != 7 || len(stories) != 8 || len(faults) != 10 || len(modes) != 2 {
		t.Errorf("got %v, %v, %v, %v, want 7 kinds of damage, 8 stories, 10 faults, 2 targets", damage, stories, faults, modes)
	}
	if blows := Blows(1, time.Minute, true); len(blows) > 0 {
		t.Errorf("got %v of a calm run", blows)
	}
}
