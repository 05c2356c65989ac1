//go:build unix && !linux

package pglocal

import "syscall"

// needsWatch: this kernel has no parent-death signal.
const needsWatch = true

func dieWithParent(*syscall.SysProcAttr) {}
