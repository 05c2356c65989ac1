package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync/atomic"
)

// Pooler stands before Postgres and, while it forgets, leaves one start-up parameter out of every new session, as PgBouncer does
// with ignore_startup_parameters. Everything else passes unchanged.
type Pooler struct {
	listener  net.Listener
	upstream  string
	parameter string
	forgets   atomic.Bool
}

// Pool is the same URL by way of a new pooler, which does not forget yet.
func Pool(address, parameter string) (p *Pooler, through string, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, "", errors.New("the URL to put a pooler before is not readable")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", fmt.Errorf("listening for a pooler: %w", err)
	}
	p = &Pooler{listener: listener, upstream: u.Host, parameter: parameter}
	u.Host = listener.Addr().String()
	query := u.Query()
	query.Set("sslmode", "disable")
	u.RawQuery = query.Encode()
	go p.serve()
	return p, u.String(), nil
}

// Forget makes every session that begins from now on lack the parameter.
func (p *Pooler) Forget() { p.forgets.Store(true) }

// Close takes no sessions any more; those that are open end with their ends.
func (p *Pooler) Close() { _ = p.listener.Close() }

func (p *Pooler) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.relay(client)
	}
}

func (p *Pooler) relay(client net.Conn) {
	defer client.Close()
	first, err := p.begin(client)
	if err != nil {
		return // the client is told by the end of its connection
	}
	server, err := net.Dial("tcp", p.upstream)
	if err != nil {
		return
	}
	defer server.Close()
	if _, err := server.Write(first); err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(server, client) // either end's end is the other's
		server.Close()
	}()
	_, _ = io.Copy(client, server)
}

const (
	major3       = 3 // of the protocol; cancel requests and questions for TLS have others
	mostStartUp  = 10_000
	beforeFields = 8
)

// begin reads the message that begins a session, and gives it back without the parameter.
func (p *Pooler) begin(client io.Reader) ([]byte, error) {
	head := make([]byte, beforeFields) // its length, and the protocol
	if _, err := io.ReadFull(client, head); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(head)
	if size < beforeFields || size > mostStartUp {
		return nil, errors.New("no start-up message of Postgres")
	}
	fields := make([]byte, size-beforeFields)
	if _, err := io.ReadFull(client, fields); err != nil {
		return nil, err
	}
	if binary.BigEndian.Uint32(head[4:])>>16 == major3 && p.forgets.Load() {
		fields = without(fields, p.parameter)
	}
	message := binary.BigEndian.AppendUint32(nil, uint32(len(fields)+beforeFields))
	return append(append(message, head[4:]...), fields...), nil
}

// without leaves a parameter out of a start-up message's names and values, each of which ends in a zero, as the whole does.
func without(fields []byte, name string) []byte {
	var kept []byte
	parts := bytes.Split(fields, []byte{0})
	for i := 0; i+1 < len(parts) && len(parts[i]) > 0; i += 2 {
		if string(parts[i]) != name {
			kept = append(append(append(append(kept, parts[i]...), 0), parts[i+1]...), 0)
		}
	}
	return append(kept, 0)
}
