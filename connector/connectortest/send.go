package connectortest

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/trial"
)

// shortDeadline is for sends that are meant to outlast it.
const shortDeadline = 200 * time.Millisecond

// testSend cuts, holds and doubles the send.
func testSend(t *testing.T, s Subject) {
	tests := map[string]struct {
		treat   func(*trial.Exchange)
		right   []connector.Class
		effects int
	}{
		"cut before the target saw it": {
			func(x *trial.Exchange) { x.Reset() }, classes(connector.ClassUnknown), 0},
		"closed before the target saw it": {
			func(*trial.Exchange) {}, classes(connector.ClassUnknown), 0},
		"cut within the head": {
			func(x *trial.Exchange) { x.DeliverPart(x.Request[:x.Head/2]) }, classes(connector.ClassUnknown), 0},
		"cut within the body": {
			func(x *trial.Exchange) { x.DeliverPart(x.Request[:(x.Head+len(x.Request))/2]) }, classes(connector.ClassUnknown), 0},
		"cut before the reply": {
			func(x *trial.Exchange) { x.Deliver(); x.Reset() }, classes(connector.ClassUnknown), 1},
		"closed before the reply": {
			func(x *trial.Exchange) { x.Deliver() }, classes(connector.ClassUnknown), 1},
		"reply cut within its head": {
			func(x *trial.Exchange) { r := x.Deliver(); x.Reply(r[:trial.BodyOf(r)/2]) }, classes(connector.ClassUnknown), 1},
		"reply cut within its body": {
			func(x *trial.Exchange) { r := x.Deliver(); x.Reply(r[:(trial.BodyOf(r)+len(r))/2]) }, classes(connector.ClassUnknown), 1},
		"reply cut before its last byte": {
			func(x *trial.Exchange) { r := x.Deliver(); x.Reply(r[:len(r)-1]) }, classes(connector.ClassUnknown, connector.ClassApplied), 1},
		"delivered": {
			func(x *trial.Exchange) { x.Reply(x.Deliver()) }, classes(connector.ClassApplied), 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := begin(t, s)
			b.link.OnSend(tt.treat)
			_, err := b.execute(t)
			wantClass(t, err, tt.right...)
			b.wantEffects(t, tt.effects)
			b.wantSettled(t, tt.effects)
			wantEqual(t, "requests on the wire", b.link.Sent(), 1)
		})
	}
	t.Run("slow before the effect", func(t *testing.T) { t.Parallel(); testSlowBefore(t, s) })
	t.Run("slow after the effect", func(t *testing.T) { t.Parallel(); testSlowAfter(t, s) })
	t.Run("delivered twice", func(t *testing.T) { t.Parallel(); testTwice(t, s) })
	t.Run("never left", func(t *testing.T) { t.Parallel(); testNeverLeft(t, s) })
}

func classes(c ...connector.Class) []connector.Class { return c }

// testSlowBefore: the target does it after the caller has given up. At that moment nothing is there to find, which is why
// absence counts only after the settle time.
func testSlowBefore(t *testing.T, s Subject) {
	b := begin(t, s)
	goOn, done := make(chan struct{}), make(chan struct{})
	b.link.OnSend(func(x *trial.Exchange) { <-goOn; x.Deliver(); close(done) })
	_, err := b.executeFor(t, shortDeadline)
	wantClass(t, err, connector.ClassUnknown)
	b.wantEffects(t, 0)
	close(goOn)
	await(t, done)
	b.wantEffects(t, 1)
	b.wantSettled(t, 1)
}

func testSlowAfter(t *testing.T, s Subject) {
	b := begin(t, s)
	b.link.OnSend(func(x *trial.Exchange) { r := x.Deliver(); <-b.link.Done(); x.Reply(r) })
	_, err := b.executeFor(t, shortDeadline)
	wantClass(t, err, connector.ClassUnknown)
	b.wantEffects(t, 1)
	b.wantSettled(t, 1)
}

// testTwice: a middlebox delivers the request twice and passes on either answer. The second may well be a refusal, because
// the first delivery moved the target; it must not be believed.
func testTwice(t *testing.T, s Subject) {
	for name, last := range map[string]bool{"first answer": false, "second answer": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := begin(t, s)
			b.link.OnSend(func(x *trial.Exchange) {
				first, second := x.Deliver(), x.Deliver()
				if last {
					first = second
				}
				x.Reply(first)
			})
			_, err := b.execute(t)
			right := classes(connector.ClassApplied)
			if last {
				right = classes(connector.ClassApplied, connector.ClassUnknown)
			}
			wantClass(t, err, right...)
			if b.able.Precondition || b.able.Replay {
				b.wantEffects(t, 1)
			}
			b.wantSettled(t, 1)
		})
	}
}

// testNeverLeft: here, and only here, a connector can and must prove that nothing was sent.
func testNeverLeft(t *testing.T, s Subject) {
	t.Run("nothing listens", func(t *testing.T) {
		t.Parallel()
		b := begin(t, s)
		b.conn = b.At(t, closedAddress(t))
		_, err := b.execute(t)
		wantClass(t, err, connector.ClassNotSent)
		b.wantEffects(t, 0)
	})
	t.Run("given up before it began", func(t *testing.T) {
		t.Parallel()
		b := begin(t, s)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := b.conn.Execute(ctx, b.plan, b.call)
		wantClass(t, err, connector.ClassNotSent)
		b.wantEffects(t, 0)
		wantEqual(t, "requests on the wire", b.link.Sent(), 0)
	})
	t.Run("another system's plan", func(t *testing.T) {
		t.Parallel()
		b := begin(t, s)
		b.plan.Target.System += "-other"
		_, err := b.execute(t)
		wantClass(t, err, connector.ClassNotSent)
		wantEqual(t, "requests on the wire", b.link.Sent(), 0)
	})
}

func closedAddress(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	return ln.Addr().String()
}

func await(t *testing.T, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("the target was not reached in time")
	}
}

// gatewayStatuses are what things between the caller and the target answer in its place, refusals included.
var gatewayStatuses = []int{
	200, 201, 202, 204, 301, 302, 303, 307, 308, 400, 401, 403, 404, 405, 407, 408, 409, 410, 412, 413, 415, 422, 425, 429, 451,
	500, 501, 502, 503, 504, 507,
}

var gatewayBodies = map[string][2]string{
	"page":  {"text/html", "<html><body>Something between us</body></html>"},
	"json":  {"application/json", `{"status":"ok","error":{"code":"gateway","message":"simulated"}}`},
	"empty": {"application/json", ""},
}

// testAnswers: a gateway's answer proves nothing, whether the target was reached or not.
func testAnswers(t *testing.T, s Subject) {
	for kind, body := range gatewayBodies {
		for _, status := range gatewayStatuses {
			if status == 204 && body[1] != "" {
				continue
			}
			reply := trial.Answered(status, body[0], body[1])
			t.Run(fmt.Sprintf("%d %s before the effect", status, kind), func(t *testing.T) {
				t.Parallel()
				b := begin(t, s)
				b.link.OnSend(func(x *trial.Exchange) { x.Reply(reply) })
				_, err := b.execute(t)
				wantClass(t, err, connector.ClassUnknown)
				b.wantEffects(t, 0)
				wantEqual(t, "requests on the wire", b.link.Sent(), 1)
			})
			t.Run(fmt.Sprintf("%d %s after the effect", status, kind), func(t *testing.T) {
				t.Parallel()
				b := begin(t, s)
				b.link.OnSend(func(x *trial.Exchange) { x.Deliver(); x.Reply(reply) })
				_, err := b.execute(t)
				wantClass(t, err, connector.ClassUnknown, connector.ClassApplied)
				b.wantEffects(t, 1)
				wantEqual(t, "requests on the wire", b.link.Sent(), 1)
			})
		}
	}
}
