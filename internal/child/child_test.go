//go:build unix

package child_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cutonce/cutonce/internal/child"
)

// The test binary is its own child: as a parent that can be killed, and as a child that obeys its standard input or not.
func TestMain(m *testing.M) {
	switch os.Getenv("CHILD_TEST") {
	case "obeys":
		fmt.Println("started")
		child.WaitFor(os.Stdin)
		os.Exit(0)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("started")
		select {}
	case "fails":
		fmt.Println("cannot listen")
		os.Exit(3)
	case "parent":
		p, err := child.Start(child.Config{Path: os.Args[0], Env: []string{"CHILD_TEST=obeys"}})
		if err != nil {
			os.Exit(1)
		}
		fmt.Println(p.PID)
		select {}
	}
	os.Exit(m.Run())
}

func start(t *testing.T, as string, log io.Writer) *child.Process {
	t.Helper()
	p, err := child.Start(child.Config{Path: os.Args[0], Env: []string{"CHILD_TEST=" + as}, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(p.PID, syscall.SIGKILL) })
	return p
}

// heard tells when a child has said something.
type heard struct {
	mu   sync.Mutex
	text bytes.Buffer
	once sync.Once
	said chan struct{}
}

func newHeard() *heard { return &heard{said: make(chan struct{})} }

func (h *heard) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer h.once.Do(func() { close(h.said) })
	return h.text.Write(p)
}

func within(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Fatalf("not in time: %s", what)
	}
}

func TestStop(t *testing.T) {
	t.Parallel()
	log := newHeard()
	p := start(t, "obeys", log)
	within(t, "the start", log.said)
	if err := p.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	within(t, "the end", p.Done())
}

func TestStopKillsWhoDoesNotObey(t *testing.T) {
	t.Parallel()
	log := newHeard()
	p := start(t, "stubborn", log)
	within(t, "the start", log.said)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := p.Stop(ctx); err != nil {
		t.Error(err)
	}
	within(t, "the end", p.Done())
}

func TestAnEndByItselfSaysWhy(t *testing.T) {
	t.Parallel()
	p := start(t, "fails", nil)
	within(t, "the end", p.Done())
	if err := p.Err(); err == nil || !strings.Contains(err.Error(), "cannot listen") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("got %v, want the code and the last words", err)
	}
}

func TestAKilledParentLeavesNoChild(t *testing.T) {
	t.Parallel()
	parent := exec.Command(os.Args[0])
	parent.Env = []string{"CHILD_TEST=parent"}
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var line string
	if _, err := fmt.Fscanln(out, &line); err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); !ended(pid); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("process %d outlives its parent", pid)
		}
	}
}

// ended reports whether a process is gone, or a zombie that nobody has collected yet.
func ended(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err == nil && strings.Contains(string(status), "State:\tZ")
}
