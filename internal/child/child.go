// Package child runs another program for as long as this one lives, and no longer.
//
// It promises that the program ends when Stop is called, and when this process ends, however it ends: its standard input
// closes then, which the program must take as the order to stop, and on Linux the kernel sends it a signal as well. It
// does not start the program again by itself. Start at Start.
package child

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Process is a running child.
type Process struct {
	PID   int
	cmd   *exec.Cmd
	stdin io.Closer
	tail  *tail
	done  chan struct{}
	err   error
}

// Config says what to run.
type Config struct {
	Path string
	Args []string
	// Env is the whole environment; nil means none at all, so that no secret of this process is inherited by accident.
	Env []string
	// Log gets what the child writes to its two outputs.
	Log io.Writer
}

// Start runs the program. It is a process group of its own, so that a Ctrl-C at the terminal reaches only us and the child
// outlives the drain.
func Start(c Config) (*Process, error) {
	p := &Process{done: make(chan struct{}), tail: &tail{next: c.Log}}
	p.cmd = exec.Command(c.Path, c.Args...)
	p.cmd.Env = append([]string{}, c.Env...)
	p.cmd.Stdout, p.cmd.Stderr = p.tail, p.tail
	p.cmd.SysProcAttr = attributes()
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("preparing %s: %w", c.Path, err)
	}
	p.stdin = stdin
	started := make(chan error, 1)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.Path, err)
	}
	return p, nil
}

// run keeps the OS thread that forked until the child has ended: the kernel sends the parent-death signal when that thread
// ends, and Go ends idle threads as it likes.
func (p *Process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	if err == nil {
		p.PID = p.cmd.Process.Pid
	}
	started <- err
	if err != nil {
		return
	}
	p.err = p.cmd.Wait()
	close(p.done)
}

// Done is closed when the child has ended, whoever ended it.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err says how the child ended, with the end of what it wrote. Call it after Done.
func (p *Process) Err() error {
	if p.err == nil {
		return fmt.Errorf("it ended by itself: %s", p.tail)
	}
	return fmt.Errorf("%w: %s", p.err, p.tail)
}

// Stop asks the child to end and waits; when ctx ends first, it is killed.
func (p *Process) Stop(ctx context.Context) error {
	_ = p.stdin.Close()
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // an ended child is fine
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
	}
	_ = p.cmd.Process.Kill()
	select {
	case <-p.done:
		return nil
	case <-time.After(5 * time.Second):
		return fmt.Errorf("process %d does not end", p.PID)
	}
}

// Signal sends the child a signal, such as SIGSTOP.
func (p *Process) Signal(s syscall.Signal) error { return p.cmd.Process.Signal(s) }

// Kill ends the child as a crash would (SIGKILL) and returns when it is gone.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // an ended child is fine
	<-p.done
}

// tail keeps the last lines for an error and passes everything on.
type tail struct {
	mu   sync.Mutex
	kept bytes.Buffer
	next io.Writer
}

const kept = 2048

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept.Write(p)
	if over := t.kept.Len() - kept; over > 0 {
		t.kept.Next(over)
	}
	if t.next != nil {
		_, _ = t.next.Write(p)
	}
	return len(p), nil
}

// String is the end of the output.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.kept.Bytes()))
}

// WaitFor ends when r does, which is when the parent closes it or dies. It is what a child calls on its standard input.
func WaitFor(r io.Reader) {
	_, _ = io.Copy(io.Discard, r)
}
