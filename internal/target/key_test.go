package target_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cutonce/cutonce/internal/target"
)

func TestHonouredKeyGetsItsFirstAnswer(t *testing.T) {
	t.Parallel()
	s := start(t, honourKeys)
	first := s.set(id, "30000", "JPY", "k")
	first.want(t, 200, "chg-000001")
	s.set(id, "40000", "JPY", "other").want(t, 200, "chg-000002")
	again := s.set(id, "30000", "JPY", "k")
	again.want(t, 200, first.body)
	if again.header.Get("Idempotency-Replayed") != "true" || first.header.Get("Idempotency-Replayed") != "" {
		t.Errorf("Idempotency-Replayed: got %q, then %q", first.header.Get("Idempotency-Replayed"), again.header.Get("Idempotency-Replayed"))
	}
	s.wantTally(t, "k", 2, 1)
	s.wantBudget(t, id, "40000")
	s.set(id, "30001", "JPY", "k").want(t, 422, "key_reused")
	s.set(target.CampaignPaused, "30000", "JPY", "k").want(t, 422, "key_reused")
	s.wantTally(t, "k", 4, 1)
}

func TestIgnoredKeyIsStillRecorded(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.set(id, "30000", "JPY", "k").want(t, 200, "")
	s.set(id, "40000", "JPY", "k").want(t, 200, "")
	s.wantTally(t, "k", 2, 2)
	changes := decode[struct{ Changes []target.Change }](t, s.get("/v1/changes?key=k")).Changes
	if len(changes) != 2 || changes[0].After != "30000" || changes[1].Before != "30000" || changes[1].After != "40000" {
		t.Errorf("got changes %+v, want 20000→30000→40000", changes)
	}
	s.SetHonourKeys(true)
	s.set(id, "50000", "JPY", "k").want(t, 200, "") // nothing was stored while keys were ignored
	s.set(id, "50000", "JPY", "k").want(t, 200, "")
	s.wantTally(t, "k", 4, 3)
}

func TestKeyInProgress(t *testing.T) {
	t.Parallel()
	for _, action := range []target.Action{target.HoldBefore, target.HoldAfter} {
		t.Run(string(action), func(t *testing.T) {
			t.Parallel()
			s := start(t, honourKeys)
			s.script(t, target.Once(target.OpChange, id, target.Step{Action: action}))
			reply := inBackground(func() got { return s.set(id, "30000", "JPY", "k") })
			s.wait(t, target.StageHeld, target.OpChange, "k", 1)
			s.set(id, "1", "JPY", "k").want(t, 422, "key_reused")
			if action == target.HoldBefore {
				s.set(id, "30000", "JPY", "k").want(t, 409, "in_progress")
			} else { // the effect is there, and so is its answer
				s.set(id, "30000", "JPY", "k").want(t, 200, "chg-000001")
			}
			s.Release("hold")
			(<-reply).want(t, 200, "chg-000001")
			s.wantTally(t, "k", 3, 1)
		})
	}
}

func TestWhatAKeyRemembers(t *testing.T) {
	t.Parallel()
	s := start(t, honourKeys)
	s.script(t,
		target.Once(target.OpChange, id, target.Step{Action: target.DropBefore}),
		target.Once(target.OpChange, id, target.Step{Action: target.StatusBefore, Status: 503}),
		target.Once(target.OpChange, id, target.Step{Action: target.StatusAfter, Status: 503}))
	if r := s.set(id, "30000", "JPY", "k"); r.err == nil {
		t.Fatalf("got %d, want a cut connection", r.status)
	}
	s.set(id, "30000", "JPY", "k").want(t, 503, "")
	s.wantTally(t, "k", 2, 0)
	s.set(id, "30000", "JPY", "k").want(t, 503, "") // the effect is behind this one
	s.wantTally(t, "k", 3, 1)
	s.set(id, "30000", "JPY", "k").want(t, 200, "chg-000001")
	s.wantTally(t, "k", 4, 1)

	s.set(id, "1", "JPY", "late", "If-Match", `"old"`).want(t, 412, "etag_mismatch")
	s.set(id, "1", "JPY", "late").want(t, 412, "etag_mismatch") // a refusal is remembered too
	s.wantTally(t, "late", 2, 0)
	s.send("PATCH", "/v1/campaigns/"+id, "{}", "Idempotency-Key", "bad").want(t, 400, "invalid_body")
	s.set(id, "9", "JPY", "bad").want(t, 200, "") // a malformed request uses up no key
}

func TestKeyRetention(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	now := time.Date(2026, 4, 1, 9, 0, 0, 0, time.UTC)
	s := start(t, honourKeys, func(cfg *target.AdsConfig) {
		cfg.KeyTTL = time.Hour
		cfg.Clock = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	})
	pass := func(d time.Duration) { mu.Lock(); defer mu.Unlock(); now = now.Add(d) }
	s.set(id, "30000", "JPY", "k").want(t, 200, "chg-000001")
	pass(time.Hour - time.Nanosecond)
	s.set(id, "30000", "JPY", "k").want(t, 200, "chg-000001")
	pass(time.Nanosecond)
	s.set(id, "30000", "JPY", "k").want(t, 200, "chg-000002")
	s.wantTally(t, "k", 3, 2)
}

func TestManyAtOnceWithOneKey(t *testing.T) {
	t.Parallel()
	s := start(t, honourKeys)
	var wg sync.WaitGroup
	replies := make([]got, 64)
	for i := range replies {
		wg.Go(func() { replies[i] = s.set(id, "30000", "JPY", "k") })
	}
	wg.Wait()
	s.wantTally(t, "k", 64, 1)
	for i, r := range replies {
		if r.err != nil || (r.status != 200 && r.status != 409) {
			t.Errorf("reply %d: got %d, error %v, want 200 or 409", i, r.status, r.err)
		}
	}
}

func TestBadKeys(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, key := range []string{"a b", "é", strings.Repeat("x", 256)} {
		s.set(id, "1", "JPY", key).want(t, 400, "invalid_key")
	}
	s.set(id, "1", "JPY", strings.Repeat("x", 255)).want(t, 200, "")
	s.set(id, "2", "JPY", "").want(t, 200, "")
	if got, want := fmt.Sprintf("%+v", s.Counters().Unkeyed), "{Received:1 Effects:1}"; got != want {
		t.Errorf("unkeyed: got %s, want %s", got, want)
	}
}
