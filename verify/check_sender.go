package verify

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"

	"github.com/cutonce/cutonce/connector"
)

var safeSender = Check{
	ID: "safe-sender", Promise: "A send leaves once: nothing below it sends again, follows a redirect, or takes a proxy's word for the target's",
	Run: func(ctx context.Context, b *bench) (Proof, error) {
		for _, part := range []func(context.Context, *bench) error{resends, redirects, refusingProxy, dyingReply} {
			if err := part(ctx, b); err != nil {
				return Proof{}, err
			}
		}
		return Proof{
			Control: "net/http does send a replayable request twice when a reused connection dies, and a plain send arrives once",
			Refusal: "ours is not replayable and left once; a redirect was returned and not followed; a proxy's refusal and a dying connection prove nothing",
		}, nil
	},
}

func outgoing(address string) connector.Outgoing {
	return connector.Outgoing{
		Method: http.MethodPost, URL: address, Body: []byte(`{"text":"new"}`),
		Header: http.Header{"Idempotency-Key": {"key"}, "Content-Type": {"application/json"}},
	}
}

// resends shows the trap and that our requests do not fall into it: on a reused connection that dies, net/http sends a request
// again by itself if it can have the body a second time.
func resends(ctx context.Context, _ *bench) error {
	naive := func(ctx context.Context, o connector.Outgoing) (*http.Request, error) {
		req, err := http.NewRequestWithContext(ctx, o.Method, o.URL, bytes.NewReader(o.Body))
		if err == nil {
			req.Header = o.Header
		}
		return req, err
	}
	ours := func(ctx context.Context, o connector.Outgoing) (*http.Request, error) { return o.Request(ctx) }
	twice, err := dyingConnection(ctx, naive)
	if err != nil {
		return err
	}
	if twice != 3 {
		return notApplicable("this build's net/http no longer sends a replayable request again (two calls arrived %d times)", twice)
	}
	once, err := dyingConnection(ctx, ours)
	if err != nil {
		return err
	}
	if once != 2 {
		return fail("two sends arrived %d times on a connection that died: a request of ours can be replayed", once)
	}
	return nil
}

// dyingConnection makes two calls over one kept connection, which dies after it has read the second whole, and returns how many
// requests arrived.
func dyingConnection(ctx context.Context, request func(context.Context, connector.Outgoing) (*http.Request, error)) (int, error) {
	var arrived atomic.Int32
	address, stop, err := serve(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // all that matters is that it arrived
		if arrived.Add(1) == 2 {
			hangUp()
		}
	})
	if err != nil {
		return 0, err
	}
	defer stop()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	for range 2 {
		req, err := request(ctx, outgoing(address))
		if err != nil {
			return 0, err
		}
		resp, err := transport.RoundTrip(req)
		if err != nil {
			continue // the second one dies
		}
		_, err = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			return 0, err
		}
	}
	return int(arrived.Load()), nil
}

func redirects(ctx context.Context, b *bench) error {
	var followed atomic.Int32
	elsewhere, stop, err := serve(func(http.ResponseWriter, *http.Request) { followed.Add(1) })
	if err != nil {
		return err
	}
	defer stop()
	for _, status := range []int{301, 302, 303, 307, 308} {
		here, stop, err := serve(http.RedirectHandler(elsewhere, status).ServeHTTP)
		if err != nil {
			return err
		}
		reply, err := b.conn.sender.Send(ctx, outgoing(here))
		stop()
		if n := followed.Load(); n != 0 {
			return fail("a redirect (%d) was followed %d times", status, n)
		}
		if err != nil || reply.Status != status {
			return fail("a redirect (%d) came back as %d (%v)", status, reply.Status, err)
		}
	}
	return nil
}

// refusingProxy answers in the target's place; whether the request left behind it cannot be known.
func refusingProxy(ctx context.Context, b *bench) error {
	proxy, stop, err := serve(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusBadGateway) })
	if err != nil {
		return err
	}
	defer stop()
	at, err := url.Parse(proxy)
	if err != nil {
		return err
	}
	sender, err := connector.NewSender(connector.HTTPConfig{Proxy: at, Timeout: b.clocks.SendFor})
	if err != nil {
		return err
	}
	_, err = sender.Send(ctx, outgoing("https://target.invalid/"))
	if got := connector.Classify(err); got != connector.ClassUnknown {
		return fail("a proxy's refusal is classified %s, want unknown: bytes had left", got)
	}
	return nil
}

// dyingReply: the target has read the request and says nothing.
func dyingReply(ctx context.Context, b *bench) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }()
	var connections atomic.Int32
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			_, _ = conn.Read(make([]byte, 1)) // a first byte has left
			_ = conn.Close()
		}
	}()
	_, err = b.conn.sender.Send(ctx, outgoing("http://"+listener.Addr().String()))
	if got := connector.Classify(err); got != connector.ClassUnknown {
		return fail("a connection that died after the first byte is classified %s, want unknown", got)
	}
	if n := connections.Load(); n != 1 {
		return fail("a send opened %d connections, want one", n)
	}
	return nil
}
