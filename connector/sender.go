package connector

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"
)

// Sender makes the one outward call of an execution over HTTP, and can say whether any of it left.
//
// Every send has a Transport and a connection of its own: no keep-alive, HTTP/1.1 only, a body that cannot be replayed, no
// redirect followed, no proxy that is not configured, no second connection. net/http repeats a request by itself when it
// carries an Idempotency-Key, its body can be replayed and a reused connection dies; none of the three can hold here.
//
// An error is NotSent only with proof: see wire. A refusal by a proxy or a redirect proves nothing, because bytes left.
// What a status means is the connector's business. Start at NewSender.
type Sender struct {
	cfg HTTPConfig
}

// HTTPConfig is what a Sender and a Reader are made from.
type HTTPConfig struct {
	// Proxy is the only proxy ever used; the environment is not asked.
	Proxy *url.URL
	// TLS is cloned; nil means the system's roots. Versions before 1.2 are refused either way.
	TLS *tls.Config
	// MaxBytes bounds a reply's body (1 MiB if zero). A longer body is an error, not a shorter body.
	MaxBytes int64
	// Timeout bounds a whole call where the context has no earlier deadline (the send deadline's default if zero).
	Timeout time.Duration
}

// Outgoing is one request.
type Outgoing struct {
	Method string
	URL    string
	Header http.Header
	Body   []byte
}

// Reply is one whole answer: if there is one, its body was read to the end that the headers announced.
type Reply struct {
	Status int
	Header http.Header
	Body   []byte
}

// NewSender checks the configuration. It opens nothing.
func NewSender(cfg HTTPConfig) (*Sender, error) {
	cfg, err := cfg.checked()
	if err != nil {
		return nil, err
	}
	return &Sender{cfg: cfg}, nil
}

func (c HTTPConfig) checked() (HTTPConfig, error) {
	if c.Proxy != nil && (c.Proxy.Host == "" || c.Proxy.Scheme != "http" && c.Proxy.Scheme != "https") {
		return c, errors.New("a proxy is an http or https URL with a host")
	}
	if c.MaxBytes < 0 || c.Timeout < 0 {
		return c, errors.New("a limit cannot be negative")
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = 1 << 20
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultClocks().SendFor
	}
	c.TLS = c.tls()
	return c, nil
}

// tls offers HTTP/1.1 only, so that one connection carries one request and HTTP/2's own resending never comes into play.
func (c HTTPConfig) tls() *tls.Config {
	cfg := &tls.Config{}
	if c.TLS != nil {
		cfg = c.TLS.Clone()
	}
	cfg.MinVersion = max(cfg.MinVersion, tls.VersionTLS12)
	cfg.NextProtos = []string{"http/1.1"}
	return cfg
}

// Send sends out once. An error that Classify calls ClassNotSent is proof that no byte of the request left and that none
// will; any other error is an unknown outcome, a reply whose body could not be read to its end included.
func (s *Sender) Send(ctx context.Context, out Outgoing) (Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	w := &wire{}
	req, err := out.request(w.trace(ctx))
	if err != nil {
		return Reply{}, NotSent(fmt.Errorf("making the request: %w", err))
	}
	if err := ctx.Err(); err != nil {
		return Reply{}, NotSent(err)
	}
	transport := s.transport(w)
	defer transport.CloseIdleConnections()
	// The point of no return is inside RoundTrip. It is called directly: an http.Client would add redirects and cookies.
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return Reply{}, w.judge(fmt.Errorf("sending: %w", err))
	}
	return readReply(resp, s.cfg.MaxBytes)
}

// Request is the request as Send makes it, for those who prove that net/http cannot repeat it (package verify). Sending it by
// other means than Send loses what a Sender promises.
func (o Outgoing) Request(ctx context.Context) (*http.Request, error) { return o.request(ctx) }

// request makes a request that net/http cannot repeat: its body is there even if it is empty, and cannot be had twice. Only the
// closer around it keeps net/http from repeating it. A reader of a type of our own would too, but net/http would send the
// headers of such a body ahead of it, in a write of their own.
func (o Outgoing) request(ctx context.Context) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, o.Method, o.URL, io.NopCloser(bytes.NewReader(o.Body)))
	if err != nil {
		return nil, err
	}
	req.GetBody = nil
	req.ContentLength = int64(len(o.Body))
	for name, values := range o.Header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	return req, nil
}

func (s *Sender) transport(w *wire) *http.Transport {
	t := &http.Transport{
		DisableKeepAlives:  true,
		DisableCompression: true,
		TLSNextProto:       map[string]func(string, *tls.Conn) http.RoundTripper{},
		TLSClientConfig:    s.cfg.TLS,
		DialContext:        w.dial,
		DialTLSContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return w.dialTLS(ctx, network, addr, s.cfg.TLS)
		},
	}
	if s.cfg.Proxy != nil {
		t.Proxy = http.ProxyURL(s.cfg.Proxy)
	}
	return t
}

// readReply reads the body to its announced end. A body without an announced length ends where the connection does; what
// was cut off there must show as broken content.
func readReply(resp *http.Response, most int64) (Reply, error) {
	defer func() { _ = resp.Body.Close() }()
	reply := Reply{Status: resp.StatusCode, Header: resp.Header}
	body, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	if err != nil {
		return reply, fmt.Errorf("reading the reply's body (status %d): %w", resp.StatusCode, err)
	}
	if int64(len(body)) > most {
		return reply, fmt.Errorf("the reply's body is over %d bytes (status %d)", most, resp.StatusCode)
	}
	reply.Body = body
	return reply, nil
}

// wire is the witness of one send. It sees every write above TLS on every connection of that send, and decides with one
// atomic word between "a write was begun" and "sealed: none was begun, and none can be any more". Sealing matters: when a
// deadline ends RoundTrip, net/http's own goroutine may be about to write, and a counter that still says 0 would lie a
// moment later.
//
// The count is of writes begun, not of bytes that the kernel confirmed: a failed TLS write reports 0 bytes although a part
// of it may have left. TLS handshake bytes are not request bytes (Go's client sends no early data), so over TLS the
// witness sits between net/http and TLS. Behind a proxy net/http does that TLS by itself and the witness sits below it:
// then CONNECT and handshake count as writes too, which errs on the side of "unknown".
type wire struct {
	state atomic.Int32
	// headers is the second, independent witness: httptrace saw a request's headers being written.
	headers atomic.Bool
	dials   atomic.Int32
}

const (
	wireOpen int32 = iota
	wireUsed
	wireSealed
)

var (
	errSealed           = errors.New("the send was given up before its first byte")
	errSecondConnection = errors.New("a send has one connection only")
)

// use is asked before every write.
func (w *wire) use() error {
	if w.state.CompareAndSwap(wireOpen, wireUsed) || w.state.Load() == wireUsed {
		return nil
	}
	return errSealed
}

// judge seals the wire and says what the failed send proves.
func (w *wire) judge(err error) error {
	unused := w.state.CompareAndSwap(wireOpen, wireSealed)
	if unused && !w.headers.Load() {
		return NotSent(err)
	}
	return err
}

func (w *wire) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteHeaderField: func(string, []string) { w.headers.Store(true) },
		WroteHeaders:     func() { w.headers.Store(true) },
		WroteRequest:     func(httptrace.WroteRequestInfo) { w.headers.Store(true) },
	})
}

func (w *wire) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := w.open(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &watchedConn{Conn: conn, wire: w}, nil
}

// dialTLS does the handshake itself, so that the witness can sit above it.
func (w *wire) dialTLS(ctx context.Context, network, addr string, cfg *tls.Config) (net.Conn, error) {
	conn, err := w.open(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	cfg = cfg.Clone()
	if cfg.ServerName == "" {
		if cfg.ServerName, _, err = net.SplitHostPort(addr); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	secure := tls.Client(conn, cfg)
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("TLS handshake: %w", err), conn.Close())
	}
	return &watchedConn{Conn: secure, wire: w}, nil
}

func (w *wire) open(ctx context.Context, network, addr string) (net.Conn, error) {
	if w.dials.Add(1) > 1 {
		return nil, errSecondConnection
	}
	return (&net.Dialer{KeepAlive: -1}).DialContext(ctx, network, addr)
}

// watchedConn asks the wire before it writes. It embeds the interface, not the type, so that no ReadFrom goes round it.
type watchedConn struct {
	net.Conn
	wire *wire
}

// Write sends p unless the send was given up before its first byte.
func (c *watchedConn) Write(p []byte) (int, error) {
	if err := c.wire.use(); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}
