package connectortest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"
	"testing"
)

// link is a proxy of one target that passes reads on and treats sends as it is told.
type link struct {
	target string
	ln     net.Listener

	mu sync.Mutex
	// send treats the next request that is no read. Nil passes it on.
	send func(*exchange)
	// read answers reads in the target's place. Nil passes them on.
	read func(*http.Request) []byte
	// seen are the answers of reads so far, and stale says that they are given again.
	seen  map[string][]byte
	stale bool
	sends int
	done  chan struct{}
}

// exchange is one send in the link's hands.
type exchange struct {
	link    *link
	client  net.Conn
	request []byte
	head    int // where the request's body begins
}

func newLink(t *testing.T, target string) *link {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("the link cannot listen: %v", err)
	}
	l := &link{target: target, ln: ln, seen: map[string][]byte{}, done: make(chan struct{})}
	t.Cleanup(func() { close(l.done); _ = ln.Close() })
	go l.accept()
	return l
}

func (l *link) address() string { return l.ln.Addr().String() }

func (l *link) accept() {
	for {
		conn, err := l.ln.Accept()
		if err != nil {
			return
		}
		go l.serve(conn)
	}
}

func (l *link) onSend(treat func(*exchange)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.send = treat
}

func (l *link) onRead(answer func(*http.Request) []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.read = answer
}

// goStale gives every read that was made before the answer that it got then.
func (l *link) goStale() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stale = true
}

func (l *link) sent() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sends
}

// serve handles one connection until either side ends it.
func (l *link) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	in := bufio.NewReader(client)
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		raw, err := httputil.DumpRequest(req, true)
		if err != nil {
			return
		}
		if req.Method != http.MethodGet && req.Method != http.MethodHead {
			l.treat(client, raw)
			return
		}
		reply := l.answer(req, raw)
		if _, err := client.Write(reply); err != nil || len(reply) == 0 || req.Close {
			return
		}
	}
}

func (l *link) treat(client net.Conn, raw []byte) {
	l.mu.Lock()
	l.sends++
	treat := l.send
	l.mu.Unlock()
	if treat == nil {
		treat = func(x *exchange) { x.reply(x.deliver()) }
	}
	treat(&exchange{link: l, client: client, request: raw, head: bytes.Index(raw, []byte("\r\n\r\n")) + 4})
}

func (l *link) answer(req *http.Request, raw []byte) []byte {
	l.mu.Lock()
	read, stale, old := l.read, l.stale, l.seen[req.URL.String()]
	l.mu.Unlock()
	switch {
	case read != nil:
		return read(req)
	case stale && old != nil:
		return old
	}
	reply := l.pass(raw)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen[req.URL.String()] == nil {
		l.seen[req.URL.String()] = reply
	}
	return reply
}

// pass gives raw bytes to the target and returns its whole answer, nothing if there is none.
func (l *link) pass(raw []byte) []byte {
	conn, err := net.Dial("tcp", l.target)
	if err != nil {
		return nil
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write(raw); err != nil {
		return nil
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return nil
	}
	defer func() { _ = resp.Body.Close() }()
	reply, err := httputil.DumpResponse(resp, true)
	if err != nil {
		return nil
	}
	return reply
}

// deliver gives the whole request to the target and returns its answer. The effect, if any, has happened.
func (x *exchange) deliver() []byte { return x.link.pass(x.request) }

// deliverPart gives the target a part of the request and hangs up; it returns when the target has hung up too.
func (x *exchange) deliverPart(part []byte) {
	conn, err := net.Dial("tcp", x.link.target)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	_, _ = conn.Write(part)
	_ = conn.(*net.TCPConn).CloseWrite()
	_, _ = io.Copy(io.Discard, conn)
}

func (x *exchange) reply(raw []byte) { _, _ = x.client.Write(raw) }

// reset ends the caller's connection as hard as TCP can.
func (x *exchange) reset() { _ = x.client.(*net.TCPConn).SetLinger(0) }

// answered is an answer made up by something between the caller and the target.
func answered(status int, contentType, body string) []byte {
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nLocation: http://nowhere.invalid/\r\n\r\n%s",
		status, http.StatusText(status), contentType, len(body), body)
}
