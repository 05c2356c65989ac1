//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package audit

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// A lock is tried for two seconds: who holds one reads and writes one small file. Whoever waits in vain tries again in its next pass.
const (
	lockTries = 200
	lockPause = 10 * time.Millisecond
)

// lock keeps other processes that share a witness out. The lock ends with its holder, however that ends.
func lock(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking: %w", err)
	}
	for range lockTries {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			break
		}
		time.Sleep(lockPause)
	}
	return nil, errors.Join(fmt.Errorf("locking %s: %w", path, err), file.Close())
}
