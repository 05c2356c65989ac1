package main

import (
	"strings"
	"testing"
	"time"

	"github.com/cutonce/cutonce/audit"
	"github.com/cutonce/cutonce/internal/target"
)

// chainOf is a whole chain of events of these kinds.
func chainOf(kinds ...string) (all []audit.Event) {
	head := audit.Genesis[:]
	for i, kind := range kinds {
		e := audit.Event{Seq: int64(i) + 1, Kind: kind, At: time.Unix(int64(i), 0), Body: []byte("{}")}
		sum := e.Sum(head)
		e.Hash = sum[:]
		head = e.Hash
		all = append(all, e)
	}
	return all
}

// TestWhatIsLostOrDoubledIsCalledThat: one positive control for each thing that a round is judged by, and one change with which
// nothing is wrong.
func TestWhatIsLostOrDoubledIsCalledThat(t *testing.T) {
	t.Parallel()
	told := change{id: "pv_1", told: []string{"prepared", "applied"}, must: "applied"}
	for _, tc := range []struct {
		name  string
		spoil func(s *stored, c *change, seen *target.Tally)
		want  string
		lost  int
	}{
		{"nothing", func(*stored, *change, *target.Tally) {}, "", 0},
		{"contradicted openly", func(s *stored, _ *change, _ *target.Tally) {
			s.events = chainOf("prepared", "claimed", "not_applied", "contradicted")
		}, "", 0},
		{"an acknowledged change gone", func(s *stored, _ *change, _ *target.Tally) { *s = stored{} }, "does not know it", 1},
		{"an acknowledged vote gone", func(_ *stored, c *change, _ *target.Tally) { c.told = append(c.told, "approved") }, "approved was acknowledged", 1},
		{"a double effect", func(_ *stored, _ *change, seen *target.Tally) { seen.Effects = 2 }, "2 effects", 0},
		{"a second send that was refused", func(_ *stored, _ *change, seen *target.Tally) { seen.Received = 2 }, "received it 2 times", 0},
		{"applied, and nothing happened", func(_ *stored, _ *change, seen *target.Tally) { seen.Effects = 0 }, "applied, with 0 effects", 0},
		{"never settled", func(s *stored, _ *change, seen *target.Tally) { s.status, seen.Effects = "unknown", 0 }, "never came to an end", 0},
		{"another end than is right", func(s *stored, _ *change, seen *target.Tally) { s.status, seen.Effects = "not_applied", 0 }, "want applied", 0},
		{"a broken chain", func(s *stored, _ *change, _ *target.Tally) { s.events[1].Actor = "x" }, "hash does not cover", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := stored{there: true, status: "applied", sends: 1, events: chainOf("prepared", "claimed", "applied")}
			c, seen := told, target.Tally{Received: 1, Effects: 1}
			c.told = append([]string{}, told.told...)
			tc.spoil(&s, &c, &seen)
			wrong, lost := s.against(c, seen)
			got := strings.Join(wrong, "; ")
			if lost != tc.lost || !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") {
				t.Errorf("got %q and %d lost, want %q and %d", got, lost, tc.want, tc.lost)
			}
		})
	}
}
