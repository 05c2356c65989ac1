//go:build unix

package pglocal

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// macOS relies on the watch; it is shown everywhere. What the shell sees of our death is the end of its pipe.
func TestTheWatchEndsAProcessWhenThePipeEnds(t *testing.T) {
	t.Parallel()
	who := account{uid: os.Geteuid(), gid: os.Getegid()}
	for name, tc := range map[string]struct{ callOff, want bool }{
		"we die":     {callOff: false, want: true},
		"called off": {callOff: true, want: false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sleep := exec.Command("sleep", "600")
			if err := sleep.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- sleep.Wait() }()
			t.Cleanup(func() { sleep.Process.Kill() })

			pipe, callOff, err := watchWith(sleep.Process.Pid, who)
			if err != nil {
				t.Fatal(err)
			}
			if tc.callOff {
				callOff() // returns when the shell is gone, so nothing can come later
			} else {
				t.Cleanup(callOff)
				if err := pipe.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if got := interrupted(t, ended, tc.want); got != tc.want {
				t.Errorf("got interrupted %v, want %v", got, tc.want)
			}
		})
	}
}

// interrupted waits for the end only where one is expected.
func interrupted(t *testing.T, ended <-chan error, expected bool) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if !expected {
		cancel()
	}
	select {
	case err := <-ended:
		var exit *exec.ExitError
		return errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGINT
	case <-ctx.Done():
		return false
	}
}
