package connectortest

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/trial"
)

// testTarget: what the target itself says is told apart, and our key and precondition do their work.
func testTarget(t *testing.T, s Subject) {
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		b := begin(t, s)
		if b.Refuse == nil {
			testNothingRefuses(t, b)
			return
		}
		b.Refuse(t)
		_, err := b.execute(t)
		wantClass(t, err, connector.ClassRefused)
		var refused *connector.RejectedError
		if errors.As(err, &refused) && refused.Reason == "" {
			t.Error("the refusal does not carry the target's words")
		}
		b.wantEffects(t, 0)
	})
	t.Run("moved", func(t *testing.T) { t.Parallel(); testMoved(t, s) })
	t.Run("in progress", func(t *testing.T) {
		t.Parallel()
		b := begin(t, s)
		if b.InProgress == nil {
			t.Skip("this target has no such answer")
		}
		b.InProgress(t)
		_, err := b.execute(t)
		wantClass(t, err, connector.ClassUnknown)
	})
	t.Run("many at once", func(t *testing.T) { t.Parallel(); testMany(t, s) })
	t.Run("replayed", func(t *testing.T) { t.Parallel(); testReplay(t, s) })
	t.Run("undone", func(t *testing.T) { t.Parallel(); testUndo(t, s) })
}

// testNothingRefuses: of a target that documents no refusal, no answer proves that a change was refused.
func testNothingRefuses(t *testing.T, b *bench) {
	b.link.OnSend(func(x *trial.Exchange) {
		x.Reply([]byte("HTTP/1.1 422 Unprocessable Entity\r\nContent-Type: application/json\r\nContent-Length: 19\r\nConnection: close\r\n\r\n{\"error\":\"refused\"}"))
	})
	_, err := b.execute(t)
	wantClass(t, err, connector.ClassUnknown)
	b.wantEffects(t, 0)
}

func testMoved(t *testing.T, s Subject) {
	b := begin(t, s)
	b.Move(t)
	reading, err := b.conn.Read(t.Context(), b.plan.Target)
	if err != nil || !b.plan.Moved(reading) {
		t.Errorf("the read after a move shows the version %q and the values of the plan (%v)", reading.Version, err)
	}
	if !b.able.Precondition {
		return
	}
	_, err = b.execute(t)
	wantClass(t, err, connector.ClassDrifted)
	b.wantEffects(t, 0)
}

// testMany: of changes to one version, sent at once under different keys, one applies and the others are told so.
func testMany(t *testing.T, s Subject) {
	const n = 8
	b := begin(t, s)
	if !b.able.Precondition {
		t.Skip("this target has no precondition")
	}
	classes := make([]connector.Class, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			call := b.call
			call.Key += string(rune('a' + i))
			_, err := b.conn.Execute(ctx, b.plan, call)
			classes[i] = connector.Classify(err)
		})
	}
	all.Wait()
	count := map[connector.Class]int{}
	effects := 0
	for i, c := range classes {
		count[c]++
		effects += b.Effects(b.call.Key + string(rune('a'+i)))
	}
	// The losers see the target at their own value, and a history that may be late: they need not rule out that it was them.
	lost := connector.ClassDrifted
	if count[connector.ClassUnknown] > 0 {
		count[lost] += count[connector.ClassUnknown]
		delete(count, connector.ClassUnknown)
	}
	wantEqual(t, "outcomes", count, map[connector.Class]int{connector.ClassApplied: 1, lost: n - 1})
	wantEqual(t, "effects", effects, 1)
}

// testReplay: the same key again gives the first answer and no second effect.
func testReplay(t *testing.T, s Subject) {
	b := begin(t, s)
	if !b.able.Replay {
		t.Skip("this target keeps no idempotency keys")
	}
	if b.able.ReplayFor <= 0 {
		t.Error("a target that keeps keys keeps them for some time")
	}
	for range 2 {
		_, err := b.execute(t)
		wantClass(t, err, connector.ClassApplied)
	}
	b.wantEffects(t, 1)
}

// testUndo: what Reverse gives prepares a change back to what was.
func testUndo(t *testing.T, s Subject) {
	b := begin(t, s)
	reverser, ok := b.conn.(connector.Reverser)
	if !ok {
		t.Skip("this connector offers no undo")
	}
	if _, err := b.execute(t); err != nil {
		t.Fatalf("Execute: %v", err)
	}
	input, err := reverser.Reverse(b.Action, b.plan)
	if err != nil {
		t.Fatalf("Reverse: %v", err)
	}
	back, _, err := b.conn.Prepare(t.Context(), b.Actor, b.Action, input)
	if err != nil {
		t.Fatalf("preparing the undo: %v", err)
	}
	wantEqual(t, "the target", back.Target, b.plan.Target)
	for i, c := range back.Changes {
		if was := b.plan.Changes[i]; !c.After.Equal(was.Before) || !c.Before.Equal(was.After) {
			t.Errorf("the undo of %+v is %+v", was, c)
		}
	}
}

// testLookup: found and absent rest on our own mark.
func testLookup(t *testing.T, s Subject) {
	t.Run("before any send", func(t *testing.T) {
		t.Parallel()
		b := begin(t, s)
		b.wantSettled(t, 0)
	})
	t.Run("after the effect", func(t *testing.T) {
		t.Parallel()
		b := begin(t, s)
		receipt, err := b.execute(t)
		if err != nil {
			t.Fatalf("Execute: %v", err)
		}
		wantNoSecret(t, receipt.Evidence)
		b.wantSettled(t, 1)
	})
	t.Run("values are no mark", func(t *testing.T) {
		t.Parallel()
		b := begin(t, s)
		if _, err := b.execute(t); err != nil {
			t.Fatalf("Execute: %v", err)
		}
		b.call.Key += "-of-someone-else"
		finding, err := b.conn.Lookup(t.Context(), b.plan, b.call)
		if got := settled(finding, err); got == connector.EffectFound {
			t.Error("the target is at our values under another key, and the look-up calls that our effect")
		}
	})
	t.Run("moved on since", func(t *testing.T) {
		t.Parallel()
		b := begin(t, s)
		if _, err := b.execute(t); err != nil {
			t.Fatalf("Execute: %v", err)
		}
		b.Move(t)
		b.wantSettled(t, 1)
	})
	t.Run("stale read-back", func(t *testing.T) {
		t.Parallel()
		b := begin(t, s)
		if _, err := b.execute(t); err != nil {
			t.Fatalf("Execute: %v", err)
		}
		b.link.GoStale()
		if reading, err := b.conn.Read(t.Context(), b.plan.Target); err != nil || reading.Version != b.plan.Version {
			t.Fatalf("the link is not stale: %+v, %v", reading, err)
		}
		b.wantSettled(t, 1)
	})
	testLookupAnswers(t, s)
}

// testLookupAnswers: an answer that is none settles nothing, whether the effect is there or not.
func testLookupAnswers(t *testing.T, s Subject) {
	answers := map[string][]byte{"cut": nil}
	for kind, body := range gatewayBodies {
		for _, status := range []int{200, 202, 302, 401, 403, 404, 410, 429, 500, 501, 503} {
			answers[http.StatusText(status)+" "+kind] = trial.Answered(status, body[0], body[1])
		}
	}
	for _, hollow := range append(s.New(t).Hollow, `{}`, `null`, `[]`, `{"items":[]}`, `"absent"`) {
		answers["200 "+hollow] = trial.Answered(200, "application/json", hollow)
	}
	for name, answer := range answers {
		for when, effect := range map[string]bool{"no effect": false, "an effect": true} {
			t.Run(name+" and "+when, func(t *testing.T) {
				t.Parallel()
				b := begin(t, s)
				if effect {
					if _, err := b.execute(t); err != nil {
						t.Fatalf("Execute: %v", err)
					}
				}
				b.link.OnRead(func(*http.Request) []byte { return answer })
				finding, err := b.conn.Lookup(t.Context(), b.plan, b.call)
				if got := settled(finding, err); got != connector.EffectUnsure {
					t.Errorf("the look-up says %q from an answer that says nothing", got)
				}
			})
		}
	}
}

func wantNoSecret(t *testing.T, evidence map[string]any) {
	t.Helper()
	canonical(t, evidence)
	for name := range evidence {
		switch http.CanonicalHeaderKey(name) {
		case "Authorization", "Cookie", "Set-Cookie", "Proxy-Authorization", "Token":
			t.Errorf("the evidence holds %s", name)
		}
	}
}
