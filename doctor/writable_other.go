//go:build !unix

package doctor

import "os"

// writable reports whether a folder is there; only making a file would tell more.
func writable(folder string) bool {
	info, err := os.Stat(folder)
	return err == nil && info.IsDir()
}
