package pgtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
)

// Migrated is the template that build makes of the files, such as numbered migrations. It is built anew when a file changes.
func Migrated(files fs.FS, build func(ctx context.Context, url string) error) Template {
	sum := sha256.New()
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, path)
		fmt.Fprintf(sum, "%q %d\n%s", path, len(text), text)
		return err
	})
	if err != nil {
		return Template{Name: "unreadable", Build: func(context.Context, string) error {
			return fmt.Errorf("read the migrations: %w", err)
		}}
	}
	return Template{Name: hex.EncodeToString(sum.Sum(nil)), Build: build}
}
