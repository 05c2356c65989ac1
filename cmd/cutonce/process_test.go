package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// binary is the program as users have it, built once.
var binary string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "cutonce-binary-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "cutonce")
		build := exec.Command("go", "build", "-o", binary, ".")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "building the program: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// patience bounds every wait for a process; it is only reached when something is broken.
const patience = 60 * time.Second

// process is a running cutonce.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdout *watched
	stderr *watched
	ended  chan struct{}
	err    error
}

// begin starts the program in dir with nothing in its environment but env.
func begin(t *testing.T, dir string, env []string, args ...string) *process {
	t.Helper()
	p := &process{t: t, stdout: newWatched(), stderr: newWatched(), ended: make(chan struct{})}
	p.cmd = exec.Command(binary, args...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = dir, p.stdout, p.stderr
	p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "PGBIN=" + os.Getenv("PGBIN")}, env...)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.err = p.cmd.Wait(); close(p.ended) }()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%v\nstdout:\n%s\nstderr:\n%s", args, p.stdout, p.stderr)
		}
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.ended:
		case <-time.After(patience):
			_ = p.cmd.Process.Kill()
		}
	})
	return p
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// wait returns the exit code.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.t.Fatal("the process does not end")
	}
	var exit *exec.ExitError
	switch {
	case p.err == nil:
		return 0
	case errors.As(p.err, &exit):
		return exit.ExitCode()
	}
	p.t.Fatal(p.err)
	return -1
}

// saw waits until the output matches, and returns the submatches.
func (p *process) saw(w *watched, pattern string) []string {
	p.t.Helper()
	re := regexp.MustCompile(pattern)
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	for {
		news := w.news()
		if found := re.FindStringSubmatch(w.String()); found != nil {
			return found
		}
		select {
		case <-news:
		case <-p.ended:
			// What was written last may have arrived with the end.
			if found := re.FindStringSubmatch(w.String()); found != nil {
				return found
			}
			p.t.Fatalf("the process ended without saying %q", pattern)
		case <-ctx.Done():
			p.t.Fatalf("the process does not say %q", pattern)
		}
	}
}

// watched is an output that can be waited for.
type watched struct {
	mu     sync.Mutex
	buffer bytes.Buffer
	more   chan struct{}
}

func newWatched() *watched { return &watched{more: make(chan struct{})} }

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.more)
	w.more = make(chan struct{})
	return w.buffer.Write(p)
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buffer.String()
}

func (w *watched) news() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.more
}

// refused runs the program, which must end by itself with an error, and returns what it said.
func refused(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	p := begin(t, dir, env, args...)
	if code := p.wait(); code != 1 && code != exitUsage {
		t.Errorf("got exit code %d, want that of a failure or of a refused configuration", code)
	}
	return p.stderr.String()
}

// until polls for what no signal tells, such as the end of a process that is not our child.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// gone reports whether a process has ended. A zombie that nobody has collected yet has.
func gone(pid int) bool {
	if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
		return true
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err == nil && strings.Contains(string(status), "State:\tZ")
}
