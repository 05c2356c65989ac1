package store_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/preview"
)

func ceiling(n int) func(*rig) { return func(r *rig) { r.maxOpen = n } }

// tries prepares, and returns the refusal if there is one.
func (r *rig) tries(previews *preview.Service, id, key string) (preview.Prepared, error) {
	return previews.Prepare(r.t.Context(), agent("bot"), preview.Request{Action: "text_change", Input: input(id, "x"), Key: key})
}

// floods prepares n changes at once over two replicas, and counts those that were not refused.
func (r *rig) floods(n int) (opened int) {
	other, _, _ := services(r.t, r, openPool(r.t, r.url, 8))
	var mu sync.Mutex
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			previews := r.previews
			if i%2 == 1 {
				previews = other
			}
			_, err := r.tries(previews, fmt.Sprintf("flood%d", i), "")
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				opened++
			case !errors.Is(err, fault.TooManyOpen):
				r.t.Errorf("got %v, want too_many_open", err)
			}
		})
	}
	group.Wait()
	return opened
}

func (r *rig) open() (n int) {
	r.t.Helper()
	err := r.pool.QueryRow(r.t.Context(), `select count(*) from previews where state in ('needs_approval', 'pending', 'approved')`).Scan(&n)
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}

func TestFiftyPreparesAtOnceDoNotExceedTheCeiling(t *testing.T) {
	t.Parallel()
	r := newRig(t, ceiling(10))
	if got := r.floods(50); got != 10 || r.open() != 10 {
		t.Errorf("got %d prepared and %d open, want 10", got, r.open())
	}
}

// Far below the ceiling nobody waits for anybody. The last of the room is given out one by one.
func TestTheCeilingHoldsWhereManyShareTheWay(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var connections int
	if err := r.pool.QueryRow(t.Context(), `select current_setting('max_connections')::int`).Scan(&connections); err != nil {
		t.Fatal(err)
	}
	r.maxOpen = connections + 8
	r.previews, _, _ = services(t, r, r.store)
	for i := range connections - 4 {
		if _, err := r.tries(r.previews, fmt.Sprint(i), ""); err != nil {
			t.Fatalf("preparing %d: %v", i, err)
		}
	}
	if got := r.floods(50); got != 12 || r.open() != r.maxOpen {
		t.Errorf("got %d more prepared and %d open, want 12 and %d", got, r.open(), r.maxOpen)
	}
}

func TestWhatMakesRoomUnderTheCeiling(t *testing.T) {
	t.Parallel()
	r := newRig(t, ceiling(2))
	first, second := r.prepare("a", "x"), r.prepare("b", "x")
	wantFull := func(when string) {
		t.Helper()
		if _, err := r.tries(r.previews, "one more", ""); !errors.Is(err, fault.TooManyOpen) {
			t.Errorf("%s: got %v, want too_many_open", when, err)
		}
	}
	wantFull("two are open")
	if again := r.prepare("b", "x"); again.ID != second.ID {
		t.Errorf("a repetition: got %s, want %s, which is open already", again.ID, second.ID)
	}
	if other, err := r.previews.Prepare(t.Context(), agent("other"), preview.Request{Action: "text_change", Input: input("c", "x")}); err != nil {
		t.Errorf("another agent: got %v, %v", other, err)
	}
	if _, err := r.apply(first); err != nil {
		t.Fatal(err)
	}
	third := r.prepare("c", "x")
	wantFull("one was applied and another came")
	if _, err := r.previews.Cancel(t.Context(), agent("bot"), third.ID, ""); err != nil {
		t.Fatal(err)
	}
	r.prepare("d", "x")
	wantFull("one was canceled and another came")
}

// A key's repetition is answered though the ceiling is reached, whoever was faster.
func TestARepeatedKeyIsAnsweredAtTheCeiling(t *testing.T) {
	t.Parallel()
	r := newRig(t, ceiling(1))
	var ids [8]preview.ID
	var group sync.WaitGroup
	for i := range ids {
		group.Go(func() {
			p, err := r.tries(r.previews, "a", "the-key")
			if err != nil {
				t.Errorf("got %v, want the key's preview", err)
			}
			ids[i] = p.Preview.ID
		})
	}
	group.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Errorf("got %s and %s, want one preview", id, ids[0])
		}
	}
}

// The refusal says what is open and when to come again.
func TestTheCeilingSaysWhatToDo(t *testing.T) {
	t.Parallel()
	r := newRig(t, ceiling(3))
	r.prepare("a", "x")
	r.rules.set(people(policy.Seats{AnyOf: []string{"leads"}, Count: 1}))
	r.prepare("b", "x")
	r.prepare("c", "x")
	_, err := r.tries(r.previews, "d", "")
	var f *fault.Fault
	if !errors.As(err, &f) || f.Code != fault.TooManyOpen {
		t.Fatalf("got %v, want too_many_open", err)
	}
	want := map[preview.State]int{preview.Approved: 1, preview.NeedsApproval: 2}
	if diff := cmp.Diff(want, f.Data["open"]); diff != "" || f.Data["limit"] != 3 || !f.Retryable {
		t.Errorf("got %+v (-want +got):\n%s", f, diff)
	}
	if f.RetryAfter <= 30*time.Second || f.RetryAfter > time.Minute {
		t.Errorf("got %s, want the rest of the preview's minute", f.RetryAfter)
	}
}

// What has expired makes room by the database's clock, whether or not anything sweeps.
func TestExpiredPreviewsMakeRoom(t *testing.T) {
	t.Parallel()
	r := newRig(t, ceiling(1), func(r *rig) {
		r.clocks.PreviewTTL = 20 * time.Millisecond
		r.clocks.ApplyWindow = 20 * time.Millisecond
	})
	r.prepare("a", "x")
	deadline := time.Now().Add(10 * time.Second)
	for {
		_, err := r.tries(r.previews, "b", "")
		if err == nil {
			return
		}
		if !errors.Is(err, fault.TooManyOpen) || time.Now().After(deadline) {
			t.Fatalf("got %v, want room once the first has expired", err)
		}
	}
}
