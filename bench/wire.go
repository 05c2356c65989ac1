package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
)

// wire is one client's keep-alive connection to the service. It writes HTTP/1.1 by hand, because the client's own CPU is taken
// from the two cores that are measured.
type wire struct {
	conn  net.Conn
	read  *bufio.Reader
	host  string
	wrote []byte
	body  bytes.Buffer
}

func dial(url string) (*wire, error) {
	host := strings.TrimPrefix(url, "http://")
	conn, err := net.Dial("tcp", host)
	if err != nil {
		return nil, err
	}
	return &wire{conn: conn, read: bufio.NewReader(conn), host: host}, nil
}

// call sends one request and returns the whole answer, which is good until the next call. Any other status than want is an error.
func (w *wire) call(method, path, token string, body []byte, want int) ([]byte, error) {
	b := append(w.wrote[:0], method...)
	b = append(b, ' ')
	b = append(b, path...)
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, w.host...)
	b = append(b, "\r\nAuthorization: Bearer "...)
	b = append(b, token...)
	if body != nil {
		b = append(b, "\r\nContent-Type: application/json\r\nContent-Length: "...)
		b = strconv.AppendInt(b, int64(len(body)), 10)
	}
	b = append(b, "\r\n\r\n"...)
	w.wrote = append(b, body...)
	if _, err := w.conn.Write(w.wrote); err != nil {
		return nil, err
	}
	response, err := http.ReadResponse(w.read, nil)
	if err != nil {
		return nil, err
	}
	w.body.Reset()
	if _, err := io.Copy(&w.body, response.Body); err != nil {
		return nil, err
	}
	if response.StatusCode != want {
		return nil, fmt.Errorf("%s %s: got %d, want %d: %s", method, path, response.StatusCode, want, w.body.Bytes())
	}
	return w.body.Bytes(), nil
}

// member finds a string member of a compact JSON document without reading the rest.
func member(document []byte, name string) string {
	_, rest, found := bytes.Cut(document, []byte(`"`+name+`":"`))
	end := bytes.IndexByte(rest, '"')
	if !found || end < 0 {
		return ""
	}
	return string(rest[:end])
}
