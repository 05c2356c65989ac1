package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"sync"
	"time"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/config"
	"github.com/cutonce/cutonce/internal/httpserve"
	"github.com/cutonce/cutonce/store"
)

// listeners are opened before anything else, so that a taken address is said at once.
type listeners struct{ main, metrics net.Listener }

func listen(ctx context.Context, s config.Settings, mainRemedy, metricsRemedy string) (l listeners, err error) {
	if l.main, err = httpserve.Listen(ctx, s.Listen, "console, MCP and API", mainRemedy); err != nil {
		return l, err
	}
	if s.MetricsListen == config.Off {
		return l, nil
	}
	if l.metrics, err = httpserve.Listen(ctx, s.MetricsListen, "metrics", metricsRemedy); err != nil {
		l.close()
	}
	return l, err
}

func (l listeners) close() {
	for _, one := range []net.Listener{l.main, l.metrics} {
		if one != nil {
			_ = one.Close()
		}
	}
}

// run serves until ctx ends or something fails, then drains: no new requests; those under way are answered; sends under way
// are finished and recorded; then the database is let go. ready is called once requests are answered.
func (s *service) run(ctx context.Context, l listeners, ready func()) error {
	d, err := s.openDoors()
	if err != nil {
		l.close()
		return err
	}
	main := httpserve.Start(l.main, d, s.log)
	scrape := s.serveMetrics(l.metrics)
	sweeping, stopSweeping := context.WithCancel(context.WithoutCancel(ctx))
	var sweeper sync.WaitGroup
	sweeper.Go(func() {
		_ = commit.Reconciler{Service: s.commits, Every: s.settings.Clock.Sweep}.Run(sweeping) // it only ends with its context
	})
	sweeper.Go(func() {
		_ = store.Retention{Store: s.store, Keep: s.settings.Retention, Log: s.log}.Run(sweeping) // as above
	})
	sweeper.Go(func() { _ = s.sealer.Run(sweeping) }) // as above
	if s.outbox != nil {
		sweeper.Go(func() {
			if err := s.outbox.Run(sweeping); err != nil {
				s.log.Warn("notifications under way were cut off; they are told again", "error", err)
			}
		})
	}
	ready()
	select {
	case <-ctx.Done():
	case err = <-main.Failed():
	case err = <-scrape.Failed():
	}
	s.log.Info("draining: requests and sends under way are finished; a second signal ends at once", "at_most", s.settings.DrainFor.String())
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.settings.DrainFor)
	defer cancel()
	s.commits.EndWaits()
	d.people.EndWaits()
	err = errors.Join(err, d.mcp.Close(), main.Drain(bound))
	stopSweeping()
	err = errors.Join(err, s.commits.Drain(bound), scrape.Drain(bound), within(bound, sweeper.Wait, "the sweeper"))
	s.sealLast(bound)
	err = errors.Join(err, within(bound, s.close, "the database's connections"))
	s.log.Info("stopped")
	return err
}

func (s *service) serveMetrics(l net.Listener) scraper {
	if l == nil {
		return scraper{}
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.metrics.Handler())
	if s.settings.Profile {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return scraper{httpserve.Start(l, mux, s.log)}
}

// scraper is the metrics' server, if there is one.
type scraper struct{ *httpserve.Server }

// Failed never yields where there is no server.
func (s scraper) Failed() <-chan error {
	if s.Server == nil {
		return nil
	}
	return s.Server.Failed()
}

// Drain drains the server if there is one.
func (s scraper) Drain(ctx context.Context) error {
	if s.Server == nil {
		return nil
	}
	return s.Server.Drain(ctx)
}

// lastWord is how long the end of a part is waited for even if a drain has used up its time.
const lastWord = time.Second

// within runs f, and gives up waiting for it when ctx has ended.
func within(ctx context.Context, f func(), what string) error {
	done := make(chan struct{})
	go func() { f(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-done:
		return nil
	case <-time.After(lastWord):
		return fmt.Errorf("%s did not end in time", what)
	}
}
