// Package wire is a TCP proxy that cuts connections at the worst moments, for tests.
//
// It promises to pass bytes on unchanged and, once armed with a marker, to cut the connection that carries it exactly once:
// before the server gets it, while the server works on it, or, for Postgres, when the transaction has ended and the answer is on
// its way. It does not delay or change bytes, and it does not look into TLS. Start at Through and Arm. Pooler is the other one: it loses
// what a client asked of its session, as poolers between a service and Postgres do.
package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
)

// Proxy stands between a client and a server. It is safe for concurrent use.
type Proxy struct {
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
	cut    Cut
	// now, if set, is when a connection is cut while the server works.
	now   chan struct{}
	fired chan struct{}
}

// Cut says when a connection is cut.
type Cut int

const (
	// BeforeTheServer: the server never gets it.
	BeforeTheServer Cut = iota
	// WhileItWorks: the server gets it; the client is cut before the answer.
	WhileItWorks
	// AfterItIsDone: Postgres has committed and answered; the client never hears it.
	AfterItIsDone
	// AndThenAll is the same, and from then on nobody gets through.
	AndThenAll
)

// New listens on a free loopback port and passes everything on to the address upstream.
func New(upstream string) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for a proxy: %w", err)
	}
	p := &Proxy{upstream: upstream, listener: listener, conns: map[net.Conn]bool{}}
	go p.serve()
	return p, nil
}

// Through is the same URL by way of a new proxy. A URL of Postgres loses its TLS, which the proxy could not look into.
func Through(address string) (p *Proxy, through string, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, "", errors.New("the URL to put a proxy before is not readable")
	}
	if p, err = New(u.Host); err != nil {
		return nil, "", err
	}
	u.Host = p.Addr()
	if strings.HasPrefix(u.Scheme, "postgres") {
		query := u.Query()
		query.Set("sslmode", "disable")
		u.RawQuery = query.Encode()
	}
	return p, u.String(), nil
}

// Addr is where the proxy listens.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Close cuts every connection and listens no more.
func (p *Proxy) Close() {
	_ = p.listener.Close()
	p.Fall()
}

// Arm makes the next message that holds the marker be cut.
func (p *Proxy) Arm(marker string, c Cut) (fired chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := &rule{marker: []byte(marker), cut: c, fired: make(chan struct{})}
	p.rules = append(p.rules, r)
	return r.fired
}

// ArmUntil makes the next message that holds the marker reach the server, whose client is cut when now is closed.
func (p *Proxy) ArmUntil(marker string, now chan struct{}) (fired chan struct{}) {
	fired = p.Arm(marker, WhileItWorks)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules[len(p.rules)-1].now = now
	return fired
}

// Fall cuts every connection and refuses new ones, until Rise.
func (p *Proxy) Fall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = true
	for c := range p.conns {
		c.Close()
	}
}

// Rise takes connections again.
func (p *Proxy) Rise() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = false
}

func (p *Proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.relay(client)
	}
}

func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		c.Close()
		return false
	}
	p.conns[c] = true
	return true
}

func (p *Proxy) drop(c net.Conn) {
	c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

func (p *Proxy) relay(client net.Conn) {
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
	var mute atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() { p.answers(client, server, swallow, &mute) })
	p.requests(client, server, swallow, &mute)
	server.Close()
	wg.Wait()
}

// requests copies what the client sends, and looks for the marker of an armed rule. What it mutes is answered no more, however fast
// the server is.
func (p *Proxy) requests(client, server net.Conn, swallow chan<- *rule, mute *atomic.Bool) {
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
		if r != nil && r.cut == BeforeTheServer {
			close(r.fired)
			return
		}
		if r != nil && r.cut >= AfterItIsDone {
			swallow <- r
		}
		if r != nil && r.cut == WhileItWorks {
			mute.Store(true)
		}
		if _, err := server.Write(buffer[:n]); err != nil {
			return
		}
		if r != nil && r.cut == WhileItWorks {
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

func (p *Proxy) match(sent []byte) *rule {
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

func (p *Proxy) answers(client, server net.Conn, swallow <-chan *rule, mute *atomic.Bool) {
	buffer := make([]byte, 1<<16)
	var swallowing *rule
	var end []byte // of what was swallowed: it may come in pieces
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
		if mute.Load() {
			continue
		}
		if swallowing == nil {
			if _, err := client.Write(buffer[:n]); err != nil {
				return
			}
			continue
		}
		end = append(end, buffer[:n]...)
		end = end[max(0, len(end)-len(readyForQuery)):]
		if bytes.Equal(end, readyForQuery) {
			if swallowing.cut == AndThenAll {
				p.Fall()
			}
			client.Close()
			close(swallowing.fired)
			return
		}
	}
}
