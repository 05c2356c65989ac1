// Package httpserve listens and serves with limits, and drains.
//
// It promises that a taken address is named together with what to do; that slow or huge headers and slow bodies cannot
// hold a connection; and that a drain answers every request that had begun, as far as its time allows. It sets no limit on
// how long an answer takes: streams are answers too, so handlers bound themselves. Start at Listen and Server.
package httpserve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"
)

// Limits that hold for every listener.
const (
	headersFor = 5 * time.Second
	bodyFor    = 30 * time.Second
	idleFor    = 2 * time.Minute
	maxHeaders = 64 << 10
)

// TakenError says that something else listens on an address.
type TakenError struct {
	What, Address, Remedy string
}

// Error names the address, what it was wanted for, and what to do.
func (e *TakenError) Error() string {
	return fmt.Sprintf("%s (for %s) is taken: stop what listens there, or choose another: %s", e.Address, e.What, e.Remedy)
}

// Listen opens a TCP address. what says what for, remedy how to choose another. The error is a *TakenError if it is taken.
func Listen(ctx context.Context, address, what, remedy string) (net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, &TakenError{What: what, Address: address, Remedy: remedy}
	}
	if err != nil {
		return nil, fmt.Errorf("listening for %s: %w", what, err)
	}
	return listener, nil
}

// Server serves one handler on one listener.
type Server struct {
	http   *http.Server
	failed chan error
	// leave ends the context of every request.
	leave context.CancelFunc
}

// Start serves until Drain. It owns the listener.
func Start(listener net.Listener, handler http.Handler, log *slog.Logger) *Server {
	base, leave := context.WithCancel(context.Background())
	s := &Server{failed: make(chan error, 1), leave: leave, http: &http.Server{
		BaseContext:       func(net.Listener) context.Context { return base },
		Handler:           boundBody(handler),
		ReadHeaderTimeout: headersFor,
		IdleTimeout:       idleFor,
		MaxHeaderBytes:    maxHeaders,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}}
	go func() {
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.failed <- fmt.Errorf("serving on %s: %w", listener.Addr(), err)
		}
	}()
	return s
}

// Failed yields the error if serving ends before Drain.
func (s *Server) Failed() <-chan error { return s.failed }

// Drain stops accepting and waits for requests under way. Their contexts live on, so that a send under way still has its
// answer delivered; whoever only waits for news must be told by its own room. When ctx ends first, requests are cut off.
func (s *Server) Drain(ctx context.Context) error {
	defer s.leave()
	if err := s.http.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("draining requests: %w", err), s.http.Close())
	}
	return nil
}
