package httpserve_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cutonce/cutonce/internal/httpserve"
)

func serve(t *testing.T, h http.HandlerFunc) (*httpserve.Server, string) {
	t.Helper()
	l, err := httpserve.Listen(t.Context(), "127.0.0.1:0", "a test", "--none")
	if err != nil {
		t.Fatal(err)
	}
	s := httpserve.Start(l, h, slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = s.Drain(ctx)
	})
	return s, l.Addr().String()
}

func TestATakenAddressIsNamed(t *testing.T) {
	t.Parallel()
	_, address := serve(t, func(http.ResponseWriter, *http.Request) {})
	_, err := httpserve.Listen(t.Context(), address, "metrics", "--metrics-listen")
	var taken *httpserve.TakenError
	if !errors.As(err, &taken) {
		t.Fatalf("got %v, want a TakenError", err)
	}
	for _, want := range []string{address, "metrics", "--metrics-listen"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %q, want %q in it", err, want)
		}
	}
	if _, err := httpserve.Listen(t.Context(), "127.0.0.1:none", "metrics", ""); err == nil || errors.As(err, &taken) && taken.Address == "127.0.0.1:none" {
		t.Errorf("got %v, want another error for an unreadable address", err)
	}
}

// A drain lets a request finish: its context lives on, however long the answer takes within the drain's time.
func TestDrainLetsRequestsFinish(t *testing.T) {
	t.Parallel()
	began, finish := make(chan struct{}), make(chan struct{})
	s, address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		close(began)
		<-finish
		fmt.Fprint(w, "the context says: ", r.Context().Err())
	})
	answered := make(chan string, 1)
	go func() {
		reply, err := http.Get("http://" + address)
		if err != nil {
			answered <- err.Error()
			return
		}
		defer reply.Body.Close()
		text, _ := io.ReadAll(reply.Body)
		answered <- string(text)
	}()
	<-began
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	drained := make(chan error, 1)
	go func() { drained <- s.Drain(ctx) }()
	untilRefused(t, address)
	close(finish)
	if got, want := <-answered, "the context says: <nil>"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := <-drained; err != nil {
		t.Errorf("got %v, want a clean drain", err)
	}
}

// untilRefused waits until the server accepts no more.
func untilRefused(t *testing.T, address string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) { // polling with a deadline
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return
		}
		_ = conn.Close()
		if time.Now().After(deadline) {
			t.Fatal("a draining server still accepts")
		}
	}
}

func TestDrainEndsWithItsTime(t *testing.T) {
	t.Parallel()
	began, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	s, address := serve(t, func(http.ResponseWriter, *http.Request) { close(began); <-release })
	go func() { _, _ = http.Get("http://" + address) }()
	<-began
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := s.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the end of the time", err)
	}
}

func TestHugeHeadersAreRefused(t *testing.T) {
	t.Parallel()
	_, address := serve(t, func(http.ResponseWriter, *http.Request) {})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Big", strings.Repeat("x", 80<<10))
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("got %d, want 431", reply.StatusCode)
	}
}

// The body's deadline must not outlive the body: reading goes on in the background to see the client leave.
func TestALongAnswerAfterABody(t *testing.T) {
	t.Parallel()
	_, address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil || r.Context().Err() != nil {
			t.Errorf("got %v, %v", err, r.Context().Err())
		}
		fmt.Fprintf(w, "%s", text)
	})
	for range 2 { // on one connection
		reply, err := http.Post("http://"+address, "text/plain", strings.NewReader("hello"))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(reply.Body)
		reply.Body.Close()
		if err != nil || string(text) != "hello" {
			t.Errorf("got %q, %v", text, err)
		}
	}
}
