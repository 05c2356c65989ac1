//go:build unix

package pglocal

import (
	"errors"
	"os"
	"syscall"
)

func ownerOf(info os.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }

func groupOf(info os.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Gid) }

// tryLock takes the file's lock, which the kernel frees with the process, however that ends.
func tryLock(file *os.File) (bool, error) {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// attributes puts a child into its own process group, so that a Ctrl-C at the terminal reaches only us and the database
// outlives the drain, and gives it the account.
func attributes(a account) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if a.drop {
		attr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
	dieWithParent(attr)
	return attr
}

func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

// Postgres's three ways to stop.
var (
	stopFast      os.Signal = syscall.SIGINT  // disconnect clients, write everything, end
	stopImmediate os.Signal = syscall.SIGQUIT // end now; the next start recovers
)
