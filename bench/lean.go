package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
)

// lean serves HTTP/1.1 with one goroutine for each connection and one write for each answer. net/http's server does more for a
// request than the target does, and its CPU would be taken from the two cores that are measured, as that of the clients would (wire.go).
type lean struct{ handler http.Handler }

// serve answers until the listener is closed.
func (l lean) serve(listener net.Listener) error {
	for {
		conn, err := listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case err != nil:
			return err
		}
		go l.converse(conn)
	}
}

// converse answers one connection's requests until its client has had enough.
func (l lean) converse(conn net.Conn) {
	defer conn.Close()
	read := bufio.NewReader(conn)
	w := reply{header: http.Header{}}
	for {
		r, err := http.ReadRequest(read)
		if err != nil {
			return // the client has gone, or speaks nonsense
		}
		w.status, w.body = http.StatusOK, w.body[:0]
		clear(w.header)
		l.handler.ServeHTTP(&w, r)
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		if _, err := conn.Write(w.whole(r.Close)); err != nil || r.Close {
			return
		}
	}
}

// reply is an answer in the making.
type reply struct {
	header http.Header
	status int
	body   []byte
	wire   bytes.Buffer
}

// Header is what http.ResponseWriter has.
func (w *reply) Header() http.Header { return w.header }

// WriteHeader keeps the status.
func (w *reply) WriteHeader(status int) { w.status = status }

// Write keeps the body.
func (w *reply) Write(b []byte) (int, error) {
	w.body = append(w.body, b...)
	return len(b), nil
}

func (w *reply) whole(last bool) []byte {
	b := &w.wire
	b.Reset()
	b.WriteString("HTTP/1.1 " + strconv.Itoa(w.status) + " " + http.StatusText(w.status) + "\r\nContent-Length: " + strconv.Itoa(len(w.body)) + "\r\n")
	if last {
		b.WriteString("Connection: close\r\n")
	}
	_ = w.header.Write(b) // into memory
	b.WriteString("\r\n")
	b.Write(w.body)
	return b.Bytes()
}
