//go:build unix && !linux

package pglocal

import "syscall"

// dieWithParent does nothing here: this kernel has no parent-death signal. A server orphaned by a SIGKILL runs on until
// the next Open of its data directory stops it.
func dieWithParent(*syscall.SysProcAttr) {}
