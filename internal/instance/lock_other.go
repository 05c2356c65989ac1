//go:build !unix

package instance

import "os"

// tryLock cannot lock here; the ports still keep a second run from starting.
func tryLock(*os.File) (bool, error) { return true, nil }
