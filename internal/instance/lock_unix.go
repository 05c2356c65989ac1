//go:build unix

package instance

import (
	"errors"
	"os"
	"syscall"
)

// tryLock takes the file's lock, which the kernel frees with the process, however that ends.
func tryLock(file *os.File) (bool, error) {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}
