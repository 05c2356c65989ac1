//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package audit

// lock does nothing where files cannot be locked: each process then needs a witness of its own.
func lock(string) (unlock func(), err error) { return func() {}, nil }
