package target

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// drainFor bounds how long a shutdown waits for requests that are being answered.
const drainFor = 5 * time.Second

// Serve serves h on ln until ctx ends, then stops accepting, lets running requests finish, and returns nil. If h is
// an io.Closer (every simulated platform is), it is closed first: held and delayed requests are cut, not waited
// for. It owns ln. An error means that serving failed, or that requests were still running after five seconds and
// were cut.
func Serve(ctx context.Context, ln net.Listener, h http.Handler) error {
	server := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       2 * time.Minute,  // also ends a wait, whose limit is a minute
		WriteTimeout:      11 * time.Minute, // the longest scripted delay is ten minutes
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    64 << 10,
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(ln) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	if c, ok := h.(io.Closer); ok {
		_ = c.Close()
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainFor)
	defer cancel()
	if err := server.Shutdown(drain); err != nil {
		return errors.Join(fmt.Errorf("drain: %w", err), server.Close())
	}
	return nil
}
