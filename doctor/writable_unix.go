//go:build unix

package doctor

import "syscall"

// mayWrite is the W_OK of access(2), and mayEnter its X_OK.
const (
	mayWrite = 0x2
	mayEnter = 0x1
)

// writable reports whether files can be made in a folder. It makes none.
func writable(folder string) bool { return syscall.Access(folder, mayWrite|mayEnter) == nil }
