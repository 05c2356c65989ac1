package pglocal

import "syscall"

// needsWatch: the kernel itself tells the server of our death.
const needsWatch = false

// dieWithParent has the kernel ask the server for a fast shutdown when the thread that started it ends (see spawn).
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGINT }
