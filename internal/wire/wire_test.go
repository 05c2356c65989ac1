package wire_test

import (
	"bytes"
	"io"
	"net"
	"testing"

	"github.com/cutonce/cutonce/internal/wire"
)

// serve answers whatever it reads at once, with what answer says, and counts nothing.
func serve(t *testing.T, answer func(conn net.Conn, got []byte)) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				buffer := make([]byte, 1<<10)
				n, err := conn.Read(buffer)
				if err == nil {
					answer(conn, buffer[:n])
				}
			}()
		}
	}()
	return ln.Addr().String()
}

func heard(t *testing.T, p *wire.Proxy, say string) []byte {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(say)); err != nil {
		t.Fatal(err)
	}
	all, _ := io.ReadAll(conn) // a cut may be a reset
	return all
}

// TestACutIsNotOvertaken: a server that answers at once is heard by nobody whose connection is cut while it works.
func TestACutIsNotOvertaken(t *testing.T) {
	t.Parallel()
	const times = 300
	got := make(chan string, times)
	p, err := wire.New(serve(t, func(conn net.Conn, said []byte) {
		_, _ = conn.Write([]byte("done"))
		got <- string(said)
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for range times {
		fired := p.Arm("change", wire.WhileItWorks)
		if answer := heard(t, p, "a change"); len(answer) > 0 {
			t.Fatalf("got %q, want nothing heard", answer)
		}
		<-fired
		if said := <-got; said != "a change" {
			t.Fatalf("the server got %q, want all of it", said)
		}
	}
}

// TestAnAnswerInPiecesIsSwallowed: the end of what the server says may come in several reads.
func TestAnAnswerInPiecesIsSwallowed(t *testing.T) {
	t.Parallel()
	ready := []byte{'Z', 0, 0, 0, 5, 'I'}
	p, err := wire.New(serve(t, func(conn net.Conn, _ []byte) {
		for _, piece := range [][]byte{bytes.Repeat([]byte("x"), 100), ready[:2], ready[2:]} {
			_, _ = conn.Write(piece)
		}
		_, _ = io.Copy(io.Discard, conn)
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for range 50 {
		fired := p.Arm("change", wire.AfterItIsDone)
		if answer := heard(t, p, "a change"); len(answer) > 0 {
			t.Fatalf("got %q, want nothing heard", answer)
		}
		<-fired
	}
}
