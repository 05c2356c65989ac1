package pglocal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"time"
)

// How long a server may take for each way to stop before the next, rougher one.
const (
	fastFor      = 20 * time.Second
	immediateFor = 5 * time.Second
)

// server is a running postgres, a direct child of this process.
type server struct {
	process *os.Process
	callOff func()        // ends the watch, where there is one
	done    chan struct{} // closed when it has ended
	err     error         // how it ended; read after done
}

// spawn starts the command on an OS thread of its own and keeps that thread until the child has ended: the kernel sends
// the parent-death signal when the *thread* that forked ends, and Go ends idle threads as it likes. The lock lives at least
// as long as the child, even if the caller forgets its Cluster: collecting the file would free it under a running server.
func spawn(cmd *exec.Cmd, who account, lock *os.File) (*server, error) {
	s := &server{done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := s.begin(cmd, who)
		started <- err
		if err == nil {
			s.err = cmd.Wait()
			s.callOff()
			close(s.done)
			runtime.KeepAlive(lock)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return s, nil
}

func (s *server) begin(cmd *exec.Cmd, who account) error {
	s.callOff = func() {}
	if err := cmd.Start(); err != nil {
		return err
	}
	s.process = cmd.Process
	if !needsWatch {
		return nil
	}
	callOff, err := watch(cmd.Process.Pid, who)
	if err != nil {
		return errors.Join(fmt.Errorf("watch over postgres: %w", err), cmd.Process.Kill(), cmd.Wait())
	}
	s.callOff = callOff
	return nil
}

func (s *server) ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// stop ends the server: cleanly, or at once if it does not obey or the context has ended.
func (s *server) stop(ctx context.Context) error {
	if s.signal(ctx, stopFast, fastFor) {
		return nil
	}
	return s.kill(context.WithoutCancel(ctx))
}

// kill ends the server without a shutdown checkpoint, as a crash would; the next start recovers.
func (s *server) kill(ctx context.Context) error {
	if s.signal(ctx, stopImmediate, immediateFor) || s.signal(ctx, os.Kill, immediateFor) {
		return nil
	}
	return fmt.Errorf("postgres (process %d) does not end", s.process.Pid)
}

func (s *server) signal(ctx context.Context, signal os.Signal, wait time.Duration) bool {
	if err := s.process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	select {
	case <-s.done:
		return true
	case <-ctx.Done():
		return s.ended()
	}
}
