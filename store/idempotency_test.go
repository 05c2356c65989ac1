package store_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/preview"
)

// contentWait is how long applies of tests wait for their outcome.
const contentWait = 10 * time.Second

func (r *rig) prepareAs(who actor.Actor, key, id, text string) (preview.Prepared, error) {
	return r.previews.Prepare(r.t.Context(), who, preview.Request{Action: "text_change", Input: input(id, text), Key: key})
}

func (r *rig) mustPrepare(who actor.Actor, key, id, text string) preview.Prepared {
	r.t.Helper()
	p, err := r.prepareAs(who, key, id, text)
	if err != nil {
		r.t.Fatalf("prepare: %v", err)
	}
	return p
}

func TestManyPreparesAtOnceAreOnePreview(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]string{"with a key": "k1", "without one": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(r *rig) { r.conns = 16 })
			second, _, _ := services(t, r, openPool(t, r.url, 16))
			var mu sync.Mutex
			ids, fresh := map[preview.ID]int{}, 0
			// Nobody can write before all have looked.
			table := r.begin()
			if _, err := table.Exec(t.Context(), `lock table previews in share mode`); err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			for i := range 16 {
				s := r.previews
				if i%2 == 1 {
					s = second
				}
				wg.Go(func() {
					p, err := s.Prepare(t.Context(), agent("bot"), preview.Request{Action: "text_change", Input: input("a", "new"), Key: key})
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					defer mu.Unlock()
					ids[p.Preview.ID]++
					if !p.Replayed {
						fresh++
					}
				})
			}
			r.awaitBlocked(16)
			if err := table.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			wg.Wait()
			var rows int
			r.scalar(&rows, `select count(*) from previews`)
			if len(ids) != 1 || fresh != 1 || rows != 1 {
				t.Errorf("got %d IDs, %d fresh, %d rows, want 1 of each", len(ids), fresh, rows)
			}
		})
	}
}

func TestOneKeyOneInput(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	bot := agent("bot")
	first := r.mustPrepare(bot, "k1", "a", "new")
	// The same input in another order of fields is the same.
	same, err := r.previews.Prepare(t.Context(), bot, preview.Request{Action: "text_change", Input: []byte(`{"text": "new", "id":"\u0061"}`), Key: "k1"})
	if err != nil || !same.Replayed || same.Preview.ID != first.Preview.ID {
		t.Errorf("the same input: got %s, replayed %v, %v, want %s", same.Preview.ID, same.Replayed, err, first.Preview.ID)
	}
	_, err = r.prepareAs(bot, "k1", "a", "other")
	wantCode(t, err, fault.IdempotencyConflict)
	if other := r.mustPrepare(bot, "k2", "a", "new"); other.Replayed || other.Preview.ID == first.Preview.ID {
		t.Error("another key gave the same preview")
	}
	for name, who := range map[string]actor.Actor{
		"another agent": agent("bot2"), "the same for another human": with(bot, func(a *actor.Actor) { a.For = "kim" }),
		"of another tenant": with(bot, func(a *actor.Actor) { a.Tenant = "other" }),
	} {
		if p := r.mustPrepare(who, "k1", "a", "theirs"); p.Replayed {
			t.Errorf("%s got somebody else's preview", name)
		}
	}
}

func with(a actor.Actor, change func(*actor.Actor)) actor.Actor { change(&a); return a }

func TestOneKeyTwoInputsAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var wg sync.WaitGroup
	errs := make([]error, 2)
	for i, text := range []string{"one", "two"} {
		wg.Go(func() { _, errs[i] = r.prepareAs(agent("bot"), "k1", "a", text) })
	}
	wg.Wait()
	if (errs[0] == nil) == (errs[1] == nil) {
		t.Fatalf("got %v and %v, want one preview and one conflict", errs[0], errs[1])
	}
	for _, err := range errs {
		if err != nil {
			wantCode(t, err, fault.IdempotencyConflict)
		}
	}
}

func TestWithoutAKeyAnOpenPreviewIsFoundAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	bot := agent("bot")
	first := r.mustPrepare(bot, "", "a", "new")
	if again := r.mustPrepare(bot, "", "a", "new"); !again.Replayed || again.Preview.ID != first.Preview.ID {
		t.Errorf("got %s, replayed %v, want %s", again.Preview.ID, again.Replayed, first.Preview.ID)
	}
	if other := r.mustPrepare(agent("bot2"), "", "a", "new"); other.Replayed {
		t.Error("another caller got it too")
	}
	r.target.move("a", "somebody else's")
	moved := r.mustPrepare(bot, "", "a", "new")
	if moved.Replayed || *moved.Preview.Plan.Changes[0].Before.Text != "somebody else's" {
		t.Errorf("the target moved: got replayed %v, before %q", moved.Replayed, *moved.Preview.Plan.Changes[0].Before.Text)
	}
	undo, err := r.previews.Prepare(t.Context(), bot, preview.Request{Action: "text_change", Input: input("a", "new"), Reverts: &first.Preview.ID})
	if err != nil || undo.Replayed || undo.Preview.Reverts != first.Preview.ID.String() {
		t.Errorf("an undo: got replayed %v, reverts %q, %v, want one of its own", undo.Replayed, undo.Preview.Reverts, err)
	}
	if _, err := r.previews.Cancel(t.Context(), bot, undo.Preview.ID, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := r.previews.Cancel(t.Context(), bot, moved.Preview.ID, ""); err != nil {
		t.Fatal(err)
	}
	if next := r.mustPrepare(bot, "", "a", "new"); next.Replayed {
		t.Error("a canceled preview was given again")
	}
}

func TestALapsedPreviewIsNotFoundAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first := r.mustPrepare(agent("bot"), "", "a", "new")
	r.shortly(first.Preview.ID, 0) // and no sweep
	if again := r.mustPrepare(agent("bot"), "", "a", "new"); again.Replayed {
		t.Error("a lapsed preview was given again")
	}
}

func TestAKeyRemembersWhatWasApplied(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	bot := agent("bot")
	first := r.mustPrepare(bot, "k1", "a", "new")
	if c, err := r.apply(first.Preview); err != nil || c.Status != commit.StatusApplied {
		t.Fatalf("got %s, %v", c.Status, err)
	}
	r.target.move("a", "since")
	again := r.mustPrepare(bot, "k1", "a", "new")
	if !again.Replayed || again.Preview.ID != first.Preview.ID || again.Preview.State != preview.Claimed {
		t.Errorf("got %s (%s), replayed %v, want %s", again.Preview.ID, again.Preview.State, again.Replayed, first.Preview.ID)
	}
	if c, err := r.apply(again.Preview); err != nil || c.Status != commit.StatusApplied || r.target.total() != 1 {
		t.Errorf("got %s, %v, %d effects, want the same answer and one effect", c.Status, err, r.target.total())
	}
}

func TestKeysThatCannotBeStoredAreInvalid(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for name, key := range map[string]string{"NUL": "a\x00b", "not UTF-8": "\xff", "too long": strings.Repeat("k", 5000)} {
		if _, err := r.prepareAs(agent("bot"), key, "a", "new"); fault.CodeOf(err) != fault.InvalidInput {
			t.Errorf("%s: got %v, want invalid_input", name, err)
		}
	}
}
