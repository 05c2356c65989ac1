package trial

import (
	"context"
	"slices"
	"time"

	"github.com/cutonce/cutonce/connector"
)

// check is one thing that can go wrong on the way to a target.
type check struct {
	id, did string
	// needs says why the check cannot be made of a target with these capabilities, nothing if it can.
	needs func(connector.Capabilities) string
	run   func(ctx context.Context, b *bench) (saw, want)
}

func nothing(connector.Capabilities) string { return "" }

// shortDeadline is for sends that are meant to outlast it.
const shortDeadline = 500 * time.Millisecond

// checks are all checks that send, in their order.
func checks() []check {
	return []check{
		{"delivered", "nothing goes wrong", nothing, delivered},
		{"lost-reply", "the target does it, and the connection is reset before the reply", nothing, lostReply},
		{"lost-request", "the connection is reset before the target saw anything", nothing, lostRequest},
		{"slow-write", "the target does it only after the send deadline has passed", nothing, slowWrite},
		{"duplicate", "the request is delivered twice, and the second answer comes back", nothing, duplicate},
		{"stale-read", "after the effect, reads show the state before it", nothing, staleRead},
		{"truncated-body", "the target does it, and the reply's body is cut in the middle", nothing, truncated},
		{"in-progress", "something answers 409 “still in progress” in the target's place", nothing, inProgress},
		{"key-replay", "the same change is sent again under the same key", needsReplay, keyReplay},
		{"late-write", "the target is reached long after the lease, when a look-up has already said that nothing is there", nothing, lateWrite},
		{"late-refused", "the same, but another change of the target came in between", needsPrecondition, lateRefused},
	}
}

func classes(c ...connector.Class) []connector.Class { return c }
func finds(f ...connector.Found) []connector.Found   { return f }

// delivered is the positive control of all others.
func delivered(ctx context.Context, b *bench) (saw, want) {
	class := b.send(ctx, patience)
	there := b.truth(true)
	return b.after(ctx, class, there), want{classes(connector.ClassApplied), finds(there), []int{1}, 1}
}

func lostReply(ctx context.Context, b *bench) (saw, want) {
	b.link.OnSend(func(x *Exchange) { x.Deliver(); x.Reset() })
	class := b.send(ctx, patience)
	there := b.truth(true)
	return b.after(ctx, class, there), want{classes(connector.ClassUnknown), finds(there), []int{1}, 1}
}

func lostRequest(ctx context.Context, b *bench) (saw, want) {
	b.link.OnSend(func(x *Exchange) { x.Reset() })
	class := b.send(ctx, patience)
	there := b.truth(false)
	return b.after(ctx, class, there), want{classes(connector.ClassUnknown), finds(there), []int{0}, 1}
}

func slowWrite(ctx context.Context, b *bench) (saw, want) {
	goOn, done := make(chan struct{}), make(chan struct{})
	b.link.OnSend(func(x *Exchange) { <-goOn; x.Deliver(); close(done) })
	class := b.send(ctx, shortDeadline)
	close(goOn)
	wait(ctx, done)
	there := b.truth(true)
	return b.after(ctx, class, there), want{classes(connector.ClassUnknown), finds(there), []int{1}, 1}
}

// duplicate: the second answer may well be a refusal, because the first delivery moved the target; it must not be believed.
func duplicate(ctx context.Context, b *bench) (saw, want) {
	b.link.OnSend(func(x *Exchange) { x.Deliver(); x.Reply(x.Deliver()) })
	class := b.send(ctx, patience)
	there := b.truth(true)
	w := want{classes(connector.ClassApplied, connector.ClassUnknown), finds(there), []int{1, 2}, 1}
	if b.able.Precondition || b.able.Replay {
		w.effects = []int{1}
	}
	return b.after(ctx, class, there), w
}

func staleRead(ctx context.Context, b *bench) (saw, want) {
	class := b.send(ctx, patience)
	b.link.GoStale()
	there := b.truth(true)
	return b.after(ctx, class, there), want{classes(connector.ClassApplied), finds(there), []int{1}, 1}
}

func truncated(ctx context.Context, b *bench) (saw, want) {
	b.link.OnSend(func(x *Exchange) { r := x.Deliver(); x.Reply(r[:(BodyOf(r)+len(r))/2]) })
	class := b.send(ctx, patience)
	there := b.truth(true)
	return b.after(ctx, class, there), want{classes(connector.ClassUnknown), finds(there), []int{1}, 1}
}

// inProgress: a target that says this of its own first execution has an effect under way.
func inProgress(ctx context.Context, b *bench) (saw, want) {
	const body = `{"error":{"code":"in_progress","message":"the first request with this key is still being worked on"}}`
	b.link.OnSend(func(x *Exchange) { x.Deliver(); x.Reply(Answered(409, "application/json", body)) })
	class := b.send(ctx, patience)
	there := b.truth(true)
	// Applied is right too: the connector may have looked for its mark before it answered.
	return b.after(ctx, class, there), want{classes(connector.ClassUnknown, connector.ClassApplied), finds(there), []int{1}, 1}
}

func needsReplay(a connector.Capabilities) string {
	if !a.Replay {
		return "the target is not declared to remember idempotency keys, so nothing is ever replayed"
	}
	return ""
}

func keyReplay(ctx context.Context, b *bench) (saw, want) {
	first := b.send(ctx, patience)
	class := b.send(ctx, patience)
	if first != connector.ClassApplied {
		class = first
	}
	there := b.truth(true)
	return b.after(ctx, class, there), want{classes(connector.ClassApplied), finds(there), []int{1}, 2}
}

// lateWrite: by then the change reads not_applied. The effect must be there to be found, so that the truth can win.
func lateWrite(ctx context.Context, b *bench) (saw, want) {
	goOn, done := make(chan struct{}), make(chan struct{})
	b.link.OnSend(func(x *Exchange) { <-goOn; x.Deliver(); close(done) })
	class := b.send(ctx, shortDeadline)
	before := b.lookOnce(ctx)
	close(goOn)
	wait(ctx, done)
	there := b.truth(true)
	s := b.after(ctx, class, there)
	w := want{classes(connector.ClassUnknown), finds(there), []int{1}, 1}
	if before == connector.EffectFound {
		s.found = "found before it was there" // the worst of all answers: it must show
	}
	return s, w
}

func needsPrecondition(a connector.Capabilities) string {
	if !a.Precondition {
		return "the target is not declared to honour preconditions: a late request takes effect whatever came in between"
	}
	return ""
}

// lateRefused: the other change is the same one under another key, which leaves the target at another version.
func lateRefused(ctx context.Context, b *bench) (saw, want) {
	goOn, done := make(chan struct{}), make(chan struct{})
	b.link.OnSend(func(x *Exchange) { <-goOn; x.Deliver(); close(done) })
	class := b.send(ctx, shortDeadline)
	b.link.OnSend(nil)
	other := b.call
	other.Key += "-other"
	between, cancel := context.WithTimeout(ctx, patience)
	_, err := b.conn.Execute(between, b.plan, other)
	cancel()
	close(goOn)
	wait(ctx, done)
	none := b.truth(false)
	s := b.after(ctx, class, none)
	if err != nil {
		s.class = connector.Classify(err) // the change in between is the control: without it nothing is shown
	}
	// Unsure is right too: the target is at our values, by the other change's doing.
	return s, want{classes(connector.ClassUnknown), slices.Compact(finds(none, connector.EffectUnsure)), []int{0}, 2}
}

func wait(ctx context.Context, done <-chan struct{}) {
	select {
	case <-done:
	case <-ctx.Done():
	case <-time.After(upstreamFor):
	}
}
