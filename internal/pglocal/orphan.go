package pglocal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// clearOrphan deals with what a killed predecessor may have left: a server that still runs or still shuts down (it is
// stopped), or a postmaster.pid whose number now belongs to an unrelated process (it is removed, as Postgres would take
// that process for a server). A pid file of a dead process is Postgres's own to clean up. The caller holds the lock, so
// no other process of ours is about to start here.
func clearOrphan(ctx context.Context, data string) error {
	pidFile := filepath.Join(data, "postmaster.pid")
	pid, err := pidIn(pidFile)
	if err != nil || pid == 0 || !alive(pid) {
		return err
	}
	if !serves(ctx, pid, data) {
		return os.Remove(pidFile)
	}
	proc, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	gone := func() (bool, error) { return !alive(pid) || !serves(ctx, pid, data), nil }
	for _, signal := range []os.Signal{stopFast, stopImmediate, os.Kill} {
		if err := proc.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("stop the server left behind in %s (process %d): %w", data, pid, err)
		}
		wait, cancel := context.WithTimeout(ctx, 10*time.Second)
		err := poll(wait, 20*time.Millisecond, gone)
		cancel()
		if err == nil {
			return nil
		}
	}
	return fmt.Errorf("the server left behind in %s (process %d) does not end; kill it and start again", data, pid)
}

func pidIn(path string) (int, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil || pid <= 0 {
		return 0, nil // torn by a crash; Postgres says so itself if it minds
	}
	return pid, nil
}

// serves reports whether the process is a server of this data directory, by the -D that every server of ours is given. A
// pid alone proves nothing: it may have been given to another process since.
func serves(ctx context.Context, pid int, data string) bool {
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err == nil {
		words := strings.Split(string(args), "\x00")
		at := slices.Index(words, "-D")
		return at >= 0 && at+1 < len(words) && words[at+1] == data
	}
	if _, err := os.Stat("/proc/self"); err == nil {
		return false // there is a /proc, and the process is not in it
	}
	out, err := exec.CommandContext(ctx, "ps", "-ww", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && strings.Contains(string(out), " -D "+data+" ")
}
