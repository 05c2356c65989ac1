package trial

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"
	"time"
)

// Link is a proxy of one target that passes reads on and treats sends as it is told. It speaks plain HTTP/1 on loopback
// towards the connector, whatever the target speaks.
type Link struct {
	target Upstream
	ln     net.Listener

	mu sync.Mutex
	// send treats the next requests that are no reads. Nil passes them on.
	send func(*Exchange)
	// read answers reads in the target's place. Nil passes them on.
	read func(*http.Request) []byte
	// seen are the answers of reads so far, and stale says that they are given again.
	seen  map[string][]byte
	stale bool
	sends int
	done  chan struct{}
}

// Upstream is where the target really is.
type Upstream struct {
	// Address is its host and port.
	Address string
	// TLS is nil for a target without it.
	TLS *tls.Config
	// Host, if set, is the name that requests are for; a link's own address is no name that a real host answers to.
	Host string
}

// upstreamFor bounds one exchange with a target that says nothing.
const upstreamFor = 30 * time.Second

// NewLink listens on loopback. Close ends it.
func NewLink(target Upstream) (*Link, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("the link cannot listen: %w", err)
	}
	l := &Link{target: target, ln: ln, seen: map[string][]byte{}, done: make(chan struct{})}
	go l.accept()
	return l, nil
}

// Close lets go of whatever is held.
func (l *Link) Close() {
	close(l.done)
	_ = l.ln.Close()
}

// Done is closed when the link is.
func (l *Link) Done() <-chan struct{} { return l.done }

// Address is the link's own host and port.
func (l *Link) Address() string { return l.ln.Addr().String() }

func (l *Link) accept() {
	for {
		conn, err := l.ln.Accept()
		if err != nil {
			return
		}
		go l.serve(conn)
	}
}

// OnSend treats every request that is no read from now on; nil passes them on.
func (l *Link) OnSend(treat func(*Exchange)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.send = treat
}

// OnRead answers every read from now on; nil passes them on.
func (l *Link) OnRead(answer func(*http.Request) []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.read = answer
}

// GoStale gives every read that was made before the answer that it got then.
func (l *Link) GoStale() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stale = true
}

// Honest passes everything on again, as the target answers it.
func (l *Link) Honest() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.send, l.read, l.stale = nil, nil, false
}

// Sent is how many requests that are no reads have arrived at the link.
func (l *Link) Sent() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sends
}

// serve handles one connection until either side ends it.
func (l *Link) serve(client net.Conn) {
	defer func() { _ = client.Close() }()
	in := bufio.NewReader(client)
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		if l.target.Host != "" {
			req.Host = l.target.Host
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

func (l *Link) treat(client net.Conn, raw []byte) {
	l.mu.Lock()
	l.sends++
	treat := l.send
	l.mu.Unlock()
	if treat == nil {
		treat = func(x *Exchange) { x.Reply(x.Deliver()) }
	}
	treat(&Exchange{link: l, client: client, Request: raw, Head: bytes.Index(raw, []byte("\r\n\r\n")) + 4})
}

func (l *Link) answer(req *http.Request, raw []byte) []byte {
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

func (l *Link) dial() (net.Conn, error) {
	if l.target.TLS != nil {
		return tls.Dial("tcp", l.target.Address, l.target.TLS)
	}
	return net.Dial("tcp", l.target.Address)
}

// pass gives raw bytes to the target and returns its whole answer, nothing if there is none.
func (l *Link) pass(raw []byte) []byte {
	conn, err := l.dial()
	if err != nil {
		return nil
	}
	defer func() { _ = conn.Close() }()
	stop := time.AfterFunc(upstreamFor, func() { _ = conn.Close() })
	defer stop.Stop()
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

// Exchange is one send in the link's hands.
type Exchange struct {
	link   *Link
	client net.Conn
	// Request is what the connector sent; its body begins at Head.
	Request []byte
	Head    int
}

// Deliver gives the whole request to the target and returns its answer. The effect, if any, has happened.
func (x *Exchange) Deliver() []byte { return x.link.pass(x.Request) }

// DeliverPart gives the target a part of the request and hangs up; it returns when the target has hung up too.
func (x *Exchange) DeliverPart(part []byte) {
	conn, err := x.link.dial()
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	_, _ = conn.Write(part)
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	_, _ = io.Copy(io.Discard, conn)
}

// Reply gives the connector an answer, or a part of one.
func (x *Exchange) Reply(raw []byte) { _, _ = x.client.Write(raw) }

// Reset ends the connector's connection as hard as TCP can.
func (x *Exchange) Reset() { _ = x.client.(*net.TCPConn).SetLinger(0) }

// Answered is an answer made up by something between the connector and the target.
func Answered(status int, contentType, body string) []byte {
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nLocation: http://nowhere.invalid/\r\n\r\n%s",
		status, http.StatusText(status), contentType, len(body), body)
}

// BodyOf is where the body of an answer begins.
func BodyOf(reply []byte) int { return bytes.Index(reply, []byte("\r\n\r\n")) + 4 }
