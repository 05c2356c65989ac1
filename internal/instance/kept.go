package instance

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
)

// Kept returns a secret of 32 random bytes in hex, the same at every start: it is made at the first, and later ones read it.
// The caller holds the folder, so nobody else makes it at the same time.
func (d *Dir) Kept(name string, random io.Reader) (string, error) {
	path := d.File(name)
	text, err := os.ReadFile(path)
	if err == nil && len(text) == 64 {
		return string(text), nil
	}
	if err == nil {
		return "", fmt.Errorf("%s does not hold what was written there; remove it to start with a new secret", path)
	}
	if !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("reading a kept secret: %w", err)
	}
	raw := make([]byte, 32)
	if _, err := io.ReadFull(random, raw); err != nil {
		return "", fmt.Errorf("making a secret: %w", err)
	}
	secret := hex.EncodeToString(raw)
	if err := writeWhole(path, secret); err != nil {
		return "", fmt.Errorf("keeping a secret: %w", err)
	}
	return secret, nil
}

// writeWhole leaves the old file or the whole new one, whenever the process dies.
func writeWhole(path, text string) error {
	temporary := path + ".new"
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
