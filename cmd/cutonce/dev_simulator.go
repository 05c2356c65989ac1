package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/cutonce/cutonce/internal/child"
	"github.com/cutonce/cutonce/internal/httpserve"
)

var errAddressTaken = syscall.EADDRINUSE

// simulator is a simulated platform in a process of its own, so that what is changed there survives us only by our promises.
// One that somebody else started has no process here.
type simulator struct {
	// name is the subcommand of cutonce target.
	name, url, tokenFile, listen string
	log                          *slog.Logger

	mu      sync.Mutex
	process *child.Process
	ending  bool
	done    chan struct{}
}

const (
	simulatorStartFor = 10 * time.Second
	simulatorPause    = time.Second
)

// startSimulator starts it and returns once it answers. If it ends by itself, it is started again.
func startSimulator(ctx context.Context, name, listen, tokenFile string, log *slog.Logger) (*simulator, error) {
	free, err := httpserve.Listen(ctx, listen, "the simulator "+name, "--"+name+"-listen")
	if err != nil {
		return nil, err
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		return nil, err
	}
	s := &simulator{
		name: name, url: "http://" + loopbackOf(free.Addr()), tokenFile: tokenFile, listen: address, log: log, done: make(chan struct{}),
	}
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	go s.supervise(context.WithoutCancel(ctx))
	return s, nil
}

// foreignSimulator returns once the simulator that somebody else started there answers.
func foreignSimulator(ctx context.Context, name, url, token string) (*simulator, error) {
	if token == "" {
		return nil, fmt.Errorf("the simulator %s at %s wants the credential that it was started with: %s", name, url, targetToken)
	}
	ctx, cancel := context.WithTimeout(ctx, simulatorStartFor)
	defer cancel()
	if err := answers(ctx, url+"/healthz", nil); err != nil {
		return nil, fmt.Errorf("the simulator %s at %s: %w", name, url, err)
	}
	return &simulator{name: name, url: url}, nil
}

func (s *simulator) start(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	process, err := child.Start(child.Config{Path: self, Log: os.Stderr, Args: []string{
		"target", s.name, "--listen", s.listen, "--token-file", s.tokenFile, "--until-stdin-closes", "--quiet",
	}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, simulatorStartFor)
	defer cancel()
	if err := answers(ctx, s.url+"/healthz", process.Done()); err != nil {
		err = errors.Join(err, process.Stop(ctx))
		return fmt.Errorf("the simulator %s did not start: %w (%w)", s.name, err, process.Err())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.process = process
	return nil
}

// answers polls until the address answers or gone is closed.
func answers(ctx context.Context, url string, gone <-chan struct{}) error {
	client := http.Client{Timeout: time.Second}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		if reply, err := client.Do(request); err == nil {
			_ = reply.Body.Close()
			if reply.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-tick.C:
		case <-gone:
			return errors.New("it ended")
		case <-ctx.Done():
			return errors.New("it does not answer")
		}
	}
}

// supervise starts the platform again whenever it ends by itself, until stop.
func (s *simulator) supervise(ctx context.Context) {
	defer close(s.done)
	for {
		process := s.current()
		if process == nil {
			return
		}
		<-process.Done()
		if s.current() == nil {
			return
		}
		s.log.Warn("a simulator ended and is started again; it has forgotten everything", "simulator", s.name, "error", process.Err())
		for s.current() != nil && s.start(ctx) != nil {
			time.Sleep(simulatorPause)
		}
	}
}

// current is the running process, nil once the end has begun.
func (s *simulator) current() *child.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending {
		return nil
	}
	return s.process
}

func (s *simulator) stop(ctx context.Context) error {
	s.mu.Lock()
	s.ending = true
	process := s.process
	s.mu.Unlock()
	if process == nil {
		return nil // not ours
	}
	err := process.Stop(ctx)
	select {
	case <-s.done:
		return err
	case <-ctx.Done():
		return errors.Join(err, ctx.Err())
	}
}

// String is the platform as the banner shows it.
func (s *simulator) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return s.url + " (simulated platform, started by somebody else)"
	}
	return fmt.Sprintf("%s (simulated platform, process %d; it forgets at a restart)", s.url, s.process.PID)
}
