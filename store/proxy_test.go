package store_test

import (
	"bytes"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// proxy stands between the service and Postgres and cuts connections at the worst moments.
type proxy struct {
	t        testing.TB
	upstream string
	listener net.Listener

	mu    sync.Mutex
	down  bool
	conns map[net.Conn]bool
	rules []*rule
}

// rule fires once, on what the client sends.
type rule struct {
	marker []byte
	cut    cut
	// now, if set, is when a connection is cut while the server works.
	now   chan struct{}
	fired chan struct{}
}

type cut int

const (
	beforeTheServer cut = iota // the server never gets it
	whileItWorks               // the server gets it; the client is cut before the answer
	afterItIsDone              // the server has finished and answered; the client never hears it
	andThenAll                 // the same, and from then on nobody gets through
)

func newProxy(t testing.TB, database string) (*proxy, string) {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{t: t, upstream: u.Host, listener: listener, conns: map[net.Conn]bool{}}
	u.Host = listener.Addr().String()
	query := u.Query()
	query.Set("sslmode", "disable")
	u.RawQuery = query.Encode()
	go p.serve()
	t.Cleanup(func() { listener.Close(); p.fall() })
	return p, u.String()
}

// arm makes the next message that holds the marker be cut.
func (p *proxy) arm(marker string, c cut) (fired chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := &rule{marker: []byte(marker), cut: c, fired: make(chan struct{})}
	p.rules = append(p.rules, r)
	return r.fired
}

// armUntil makes the next message that holds the marker reach the server, whose client is cut when now is closed.
func (p *proxy) armUntil(marker string, now chan struct{}) (fired chan struct{}) {
	fired = p.arm(marker, whileItWorks)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules[len(p.rules)-1].now = now
	return fired
}

// fall cuts every connection and refuses new ones; rise takes them again.
func (p *proxy) fall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = true
	for c := range p.conns {
		c.Close()
	}
}

func (p *proxy) rise() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = false
}

func (p *proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.relay(client)
	}
}

func (p *proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		c.Close()
		return false
	}
	p.conns[c] = true
	return true
}

func (p *proxy) drop(c net.Conn) {
	c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

func (p *proxy) relay(client net.Conn) {
	if !p.keep(client) {
		return
	}
	defer p.drop(client)
	server, err := net.Dial("tcp", p.upstream)
	if err != nil {
		return
	}
	if !p.keep(server) {
		return
	}
	defer p.drop(server)
	swallow := make(chan *rule, 1)
	var wg sync.WaitGroup
	wg.Go(func() { p.answers(client, server, swallow) })
	p.requests(client, server, swallow)
	server.Close()
	wg.Wait()
}

// requests copies what the client sends, and looks for the marker of an armed rule.
func (p *proxy) requests(client, server net.Conn, swallow chan<- *rule) {
	buffer := make([]byte, 1<<16)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}
		if n == 16 && bytes.Equal(buffer[4:8], cancelRequest) {
			return // a cut network carries no cancellation either
		}
		r := p.match(buffer[:n])
		if r != nil && r.cut == beforeTheServer {
			close(r.fired)
			return
		}
		if r != nil && r.cut >= afterItIsDone {
			swallow <- r
		}
		if _, err := server.Write(buffer[:n]); err != nil {
			return
		}
		if r != nil && r.cut == whileItWorks {
			if r.now != nil {
				<-r.now
			}
			client.Close()
			close(r.fired)
			_, _ = io.Copy(io.Discard, server) // until the server is done with it
			return
		}
	}
}

func (p *proxy) match(sent []byte) *rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, r := range p.rules {
		if bytes.Contains(sent, r.marker) {
			p.rules = append(p.rules[:i:i], p.rules[i+1:]...)
			return r
		}
	}
	return nil
}

// cancelRequest is what pgx sends on a new connection when one breaks.
var cancelRequest = []byte{0x04, 0xd2, 0x16, 0x2e}

// readyForQuery ends the server's answer outside a transaction: what it did is committed.
var readyForQuery = []byte{'Z', 0, 0, 0, 5, 'I'}

func (p *proxy) answers(client, server net.Conn, swallow <-chan *rule) {
	buffer := make([]byte, 1<<16)
	var swallowing *rule
	for {
		n, err := server.Read(buffer)
		if err != nil {
			client.Close()
			return
		}
		select {
		case swallowing = <-swallow:
		default:
		}
		if swallowing == nil {
			if _, err := client.Write(buffer[:n]); err != nil {
				return
			}
			continue
		}
		if bytes.HasSuffix(buffer[:n], readyForQuery) {
			if swallowing.cut == andThenAll {
				p.fall()
			}
			client.Close()
			close(swallowing.fired)
			return
		}
	}
}
