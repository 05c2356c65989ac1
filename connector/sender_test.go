package connector

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func sender(t *testing.T, cfg HTTPConfig) *Sender {
	t.Helper()
	s, err := NewSender(cfg)
	if err != nil {
		t.Fatalf("NewSender: %v", err)
	}
	return s
}

// keyed is a change as connectors send it, with the header that makes net/http think it may repeat it.
func keyed(address, body string) Outgoing {
	return Outgoing{
		Method: http.MethodPost, URL: address, Body: []byte(body),
		Header: http.Header{"Idempotency-Key": {"key-1"}, "Content-Type": {"application/json"}},
	}
}

func wantClass(t *testing.T, err error, want Class) {
	t.Helper()
	if got := Classify(err); got != want {
		t.Fatalf("got class %s (%v), want %s", got, err, want)
	}
}

// dyingServer executes every request it reads. On each connection it answers the first and offers to keep the connection;
// a second request on the same connection is executed and the connection is cut without an answer.
type dyingServer struct {
	url         string
	executions  atomic.Int32
	connections atomic.Int32
}

func serveDying(t *testing.T) *dyingServer {
	t.Helper()
	d := &dyingServer{}
	ln := listen(t)
	d.url = "http://" + ln.Addr().String() + "/"
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			d.connections.Add(1)
			go d.handle(conn)
		}
	}()
	return d
}

func (d *dyingServer) handle(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	in := bufio.NewReader(conn)
	for n := 1; ; n++ {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, req.Body)
		d.executions.Add(1)
		if n == 2 {
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	return ln
}

// TestNetHTTPRepeatsKeyedRequests shows the trap that the next test is about: without it that test could not fail.
func TestNetHTTPRepeatsKeyedRequests(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", `{"a":1}`} {
		t.Run(fmt.Sprintf("body %q", body), func(t *testing.T) {
			t.Parallel()
			d := serveDying(t)
			client := &http.Client{Transport: &http.Transport{}}
			for range 2 {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.url, strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Idempotency-Key", "key-1")
				resp, err := client.Do(req)
				if err != nil {
					t.Fatalf("the plain client failed: %v", err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
			if got := d.executions.Load(); got != 3 {
				t.Errorf("two calls of a plain client gave %d executions, want 3 (the trap)", got)
			}
		})
	}
}

func TestSendIsNeverRepeated(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", `{"a":1}`} {
		t.Run(fmt.Sprintf("body %q", body), func(t *testing.T) {
			t.Parallel()
			d := serveDying(t)
			s := sender(t, HTTPConfig{})
			for range 5 {
				reply, err := s.Send(t.Context(), keyed(d.url, body))
				if err != nil || reply.Status != 200 || string(reply.Body) != "{}" {
					t.Fatalf("got %+v, %v", reply, err)
				}
			}
			if got := d.executions.Load(); got != 5 {
				t.Errorf("got %d executions of 5 sends", got)
			}
			if got := d.connections.Load(); got != 5 {
				t.Errorf("got %d connections for 5 sends, want a fresh one each", got)
			}
		})
	}
}

func TestRequestCannotBeReplayed(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", `{"a":1}`} {
		req, err := keyed("http://127.0.0.1/", body).request(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if req.Body == nil || req.Body == http.NoBody || req.GetBody != nil {
			t.Errorf("body %q: got Body %v and GetBody set %v; net/http could replay it", body, req.Body, req.GetBody != nil)
		}
		if got, want := req.ContentLength, int64(len(body)); got != want {
			t.Errorf("got length %d, want %d", got, want)
		}
	}
}

// countingConn counts what is written to it.
type countingConn struct {
	net.Conn
	writes *atomic.Int32
}

func (c countingConn) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

// TestARequestLeavesInOneWrite: headers that go ahead of their body are a request that a cut can halve.
func TestARequestLeavesInOneWrite(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer server.Close()
	var writes atomic.Int32
	transport := sender(t, HTTPConfig{}).transport(&wire{})
	transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		return countingConn{conn, &writes}, err
	}
	req, err := keyed(server.URL, `{"budget":1}`).Request(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if got := writes.Load(); got != 1 {
		t.Fatalf("got %d writes, want headers and body in one", got)
	}
}

func TestTransportOfASend(t *testing.T) {
	t.Parallel()
	tr := sender(t, HTTPConfig{}).transport(&wire{})
	if !tr.DisableKeepAlives || tr.Proxy != nil || tr.TLSNextProto == nil || !tr.DisableCompression {
		t.Errorf("a send's transport reuses connections, asks the environment for a proxy, speaks HTTP/2 or unpacks: %+v", tr)
	}
}

func TestRedirectIsReturnedNotFollowed(t *testing.T) {
	t.Parallel()
	var followed atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { followed.Add(1) }))
	t.Cleanup(elsewhere.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		here := httptest.NewServer(http.RedirectHandler(elsewhere.URL, status))
		t.Cleanup(here.Close)
		reply, err := sender(t, HTTPConfig{}).Send(t.Context(), keyed(here.URL, `{}`))
		if err != nil || reply.Status != status {
			t.Errorf("got %d, %v, want the redirect's own status %d", reply.Status, err, status)
		}
	}
	if got := followed.Load(); got != 0 {
		t.Errorf("a redirect was followed %d times", got)
	}
}

func TestNotSentIsProved(t *testing.T) {
	t.Parallel()
	closed := listen(t)
	_ = closed.Close()
	silent := listen(t)
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	untrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0)
	untrusted.StartTLS()
	t.Cleanup(untrusted.Close)
	over, cancel := context.WithCancel(t.Context())
	cancel()

	tests := map[string]struct {
		ctx     context.Context
		address string
		cfg     HTTPConfig
	}{
		"nothing listens":            {t.Context(), "http://" + closed.Addr().String(), HTTPConfig{}},
		"no such host":               {t.Context(), "http://nowhere.invalid/", HTTPConfig{Timeout: 2 * time.Second}},
		"the proxy does not listen":  {t.Context(), plain.URL, HTTPConfig{Proxy: &url.URL{Scheme: "http", Host: closed.Addr().String()}}},
		"given up before it began":   {over, plain.URL, HTTPConfig{}},
		"certificate not trusted":    {t.Context(), untrusted.URL, HTTPConfig{}},
		"no TLS on the other side":   {t.Context(), "https://" + plain.Listener.Addr().String(), HTTPConfig{}},
		"TLS handshake never ends":   {t.Context(), "https://" + silent.Addr().String(), HTTPConfig{Timeout: 50 * time.Millisecond}},
		"the URL is none":            {t.Context(), "http://\x7f/", HTTPConfig{}},
		"the scheme is not HTTP":     {t.Context(), "ftp://127.0.0.1/", HTTPConfig{}},
		"the URL names no host":      {t.Context(), "http:///x", HTTPConfig{}},
		"the proxy's TLS is refused": {t.Context(), plain.URL, HTTPConfig{Proxy: mustURL(t, untrusted.URL)}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := sender(t, tt.cfg).Send(tt.ctx, keyed(tt.address, `{}`))
			wantClass(t, err, ClassNotSent)
		})
	}
}

func TestBadHeaderIsNotSent(t *testing.T) {
	t.Parallel()
	var hits atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	t.Cleanup(server.Close)
	out := keyed(server.URL, `{}`)
	out.Header.Set("X-Agent", "a\r\nX-Evil: 1")
	_, err := sender(t, HTTPConfig{}).Send(t.Context(), out)
	wantClass(t, err, ClassNotSent)
	if got := hits.Load(); got != 0 {
		t.Errorf("the server was reached %d times", got)
	}
}

// TestSomethingLeft holds every case in which bytes left: none may be called "not sent".
func TestSomethingLeft(t *testing.T) {
	t.Parallel()
	tests := map[string]func(conn net.Conn){
		"closed after the first byte": func(c net.Conn) { _, _ = c.Read(make([]byte, 1)) },
		"closed after the request":    func(c net.Conn) { readRequest(c) },
		"no HTTP in the answer":       func(c net.Conn) { readRequest(c); _, _ = io.WriteString(c, "220 mail.example ESMTP\r\n") },
		"half a header":               func(c net.Conn) { readRequest(c); _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Le") },
		"half a body": func(c net.Conn) {
			readRequest(c)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{\"a\"")
		},
		"half a chunked body": func(c net.Conn) {
			readRequest(c)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n{\"a\"\r\n")
		},
		"too long a body": func(c net.Conn) {
			readRequest(c)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n"+strings.Repeat("x", 2000))
		},
		"reset": func(c net.Conn) {
			readRequest(c)
			_ = c.(*net.TCPConn).SetLinger(0)
		},
	}
	for name, behave := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := serveConn(t, behave)
			reply, err := sender(t, HTTPConfig{MaxBytes: 1000}).Send(t.Context(), keyed(address, `{}`))
			wantClass(t, err, ClassUnknown)
			if len(reply.Body) != 0 {
				t.Errorf("got a body %q with the error: a part must not pass for the whole", reply.Body)
			}
		})
	}
}

func TestDeadlineBoundsEverything(t *testing.T) {
	t.Parallel()
	hold := make(chan struct{})
	t.Cleanup(func() { close(hold) })
	tests := map[string]func(conn net.Conn){
		"no answer": func(c net.Conn) { readRequest(c); <-hold },
		"a body that never ends": func(c net.Conn) {
			readRequest(c)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{")
			<-hold
		},
	}
	for name, behave := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := serveConn(t, behave)
			began := time.Now()
			_, err := sender(t, HTTPConfig{Timeout: 100 * time.Millisecond}).Send(context.Background(), keyed(address, `{}`))
			wantClass(t, err, ClassUnknown)
			if got := time.Since(began); got > 5*time.Second {
				t.Errorf("the send took %v", got)
			}
		})
	}
}

// TestRefusalByAProxyProvesNothing: the proxy may have passed on what it refuses to report.
func TestRefusalByAProxyProvesNothing(t *testing.T) {
	t.Parallel()
	for _, status := range []int{403, 407, 502, 503} {
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		t.Cleanup(proxy.Close)
		s := sender(t, HTTPConfig{Proxy: mustURL(t, proxy.URL)})

		_, err := s.Send(t.Context(), keyed("https://target.example/", `{}`))
		wantClass(t, err, ClassUnknown)

		reply, err := s.Send(t.Context(), keyed("http://target.example/", `{}`))
		if err != nil || reply.Status != status {
			t.Errorf("got %d, %v; want the proxy's status %d for the connector to judge", reply.Status, err, status)
		}
	}
}

func TestSendOverTLS(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, "%s %s %s", r.Proto, r.Header.Get("Idempotency-Key"), body)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	reply, err := sender(t, HTTPConfig{TLS: &tls.Config{RootCAs: roots}}).Send(t.Context(), keyed(server.URL, `{"a":1}`))
	if err != nil {
		t.Fatalf("Send: %v", err)
	}
	if got, want := string(reply.Body), `HTTP/1.1 key-1 {"a":1}`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestGivenUpBetweenConnectionAndWrite cancels at the one moment where a counter alone would lie: the connection is there,
// net/http's writer is about to run. Whatever is called "not sent" must really have sent nothing, also afterwards.
func TestGivenUpBetweenConnectionAndWrite(t *testing.T) {
	t.Parallel()
	s := sender(t, HTTPConfig{})
	proved := 0
	for range 200 {
		received := make(chan int64, 1)
		address := serveConn(t, func(c net.Conn) {
			n, _ := io.Copy(io.Discard, c)
			received <- n
		})
		ctx, cancel := context.WithCancel(t.Context())
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { cancel() }})
		_, err := s.Send(ctx, keyed(address, `{}`))
		cancel()
		got := <-received
		switch Classify(err) {
		case ClassNotSent:
			proved++
			if got != 0 {
				t.Fatalf("called not sent, but %d bytes arrived", got)
			}
		case ClassUnknown:
		default:
			t.Fatalf("got %v", err)
		}
	}
	t.Logf("%d of 200 proved not sent", proved)
}

func TestSealedWireRefusesWrites(t *testing.T) {
	t.Parallel()
	w := &wire{}
	wantClass(t, w.judge(io.EOF), ClassNotSent)
	here, there := net.Pipe()
	t.Cleanup(func() { _, _ = here.Close(), there.Close() })
	if n, err := (&watchedConn{Conn: here, wire: w}).Write([]byte("x")); n != 0 || err == nil {
		t.Errorf("a sealed wire wrote %d bytes, %v", n, err)
	}

	used := &wire{}
	if err := used.use(); err != nil {
		t.Fatal(err)
	}
	wantClass(t, used.judge(io.EOF), ClassUnknown)
	if err := used.use(); err != nil {
		t.Errorf("a used wire stopped: %v", err)
	}

	traced := &wire{}
	traced.headers.Store(true)
	wantClass(t, traced.judge(io.EOF), ClassUnknown)
}

func TestOneConnectionPerSend(t *testing.T) {
	t.Parallel()
	ln := listen(t)
	w := &wire{}
	conn, err := w.dial(t.Context(), "tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if second, err := w.dial(t.Context(), "tcp", ln.Addr().String()); err == nil {
		_ = second.Close()
		t.Error("one send opened two connections")
	}
}

func TestReaderReadsWholeAndStays(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, "http://nowhere.invalid/", http.StatusFound)
		case "/long":
			_, _ = io.WriteString(w, strings.Repeat("x", 2000))
		default:
			_, _ = io.WriteString(w, r.Header.Get("Authorization"))
		}
	}))
	t.Cleanup(server.Close)
	r, err := NewReader(HTTPConfig{MaxBytes: 1000})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	reply, err := r.Get(t.Context(), server.URL+"/", http.Header{"Authorization": {"Bearer x"}})
	if err != nil || string(reply.Body) != "Bearer x" {
		t.Errorf("got %q, %v", reply.Body, err)
	}
	if reply, err = r.Get(t.Context(), server.URL+"/away", nil); err != nil || reply.Status != http.StatusFound {
		t.Errorf("got %d, %v, want the redirect itself", reply.Status, err)
	}
	if _, err = r.Get(t.Context(), server.URL+"/long", nil); err == nil {
		t.Error("an answer over the limit was read")
	}
}

func TestHTTPConfigIsChecked(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]HTTPConfig{
		"proxy without a host":  {Proxy: &url.URL{Scheme: "http"}},
		"proxy of another kind": {Proxy: &url.URL{Scheme: "socks5", Host: "127.0.0.1:1"}},
		"negative timeout":      {Timeout: -1},
		"negative size":         {MaxBytes: -1},
	} {
		if _, err := NewSender(cfg); err == nil {
			t.Errorf("%s: the sender took it", name)
		}
		if _, err := NewReader(cfg); err == nil {
			t.Errorf("%s: the reader took it", name)
		}
	}
}

// serveConn handles one connection with behave and then closes it.
func serveConn(t *testing.T, behave func(net.Conn)) string {
	t.Helper()
	ln := listen(t)
	go func() {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		behave(conn)
		_ = conn.Close()
	}()
	return "http://" + ln.Addr().String() + "/"
}

func readRequest(c net.Conn) {
	if req, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
		_, _ = io.Copy(io.Discard, req.Body)
	}
}

func mustURL(t *testing.T, raw string) *url.URL {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
