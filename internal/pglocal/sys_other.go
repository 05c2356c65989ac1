//go:build !unix

package pglocal

import (
	"errors"
	"os"
	"syscall"
)

var errUnsupported = errors.New("a private Postgres is not supported on this system; set CUTONCE_DATABASE_URL")

func ownerOf(os.FileInfo) int { return os.Geteuid() }

func groupOf(os.FileInfo) int { return os.Getegid() }

func tryLock(*os.File) (bool, error) { return false, errUnsupported }

func attributes(account) *syscall.SysProcAttr { return nil }

const needsWatch = false

func watch(int, account) (callOff func(), err error) { return nil, errUnsupported }

func alive(int) bool { return false }

var stopFast, stopImmediate = os.Interrupt, os.Kill
