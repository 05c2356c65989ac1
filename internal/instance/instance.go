// Package instance is a development instance's place on disk: its lock, its secrets, and who runs it.
//
// It promises that at most one live process holds a folder, that the second is told the first one's process and address, that
// a killed holder blocks nobody (the kernel frees the lock), and that a secret is made once, whole, readable by its owner
// alone. It does not keep Postgres's data. Start at Open.
package instance

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Dir is a held folder. Close lets go of it.
type Dir struct {
	Path string
	lock *os.File
}

// HeldError says that another live process has the folder.
type HeldError struct {
	Path string
	// PID and URL are zero if the holder has not written them yet.
	PID int
	URL string
}

// Error names the holder and what to do.
func (e *HeldError) Error() string {
	who := "another process"
	if e.PID != 0 {
		who = fmt.Sprintf("process %d", e.PID)
	}
	if e.URL != "" {
		who += " at " + e.URL
	}
	return fmt.Sprintf("already running: %s holds %s; use that one, stop it, or choose another --state-dir", who, e.Path)
}

type holder struct {
	PID int    `json:"pid"`
	URL string `json:"url,omitempty"`
}

// Open makes the folder if need be and takes its lock. The error is a *HeldError if somebody else has it.
func Open(path string) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("finding the state folder: %w", err)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("making the state folder: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(path, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the state folder's lock: %w", err)
	}
	got, err := tryLock(file)
	if err == nil && !got {
		err = held(path, file)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	d := &Dir{Path: path, lock: file}
	if err := d.Announce(""); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return d, nil
}

func held(path string, file *os.File) error {
	var h holder
	text, err := io.ReadAll(file)
	if err == nil {
		_ = json.Unmarshal(text, &h) // a holder that has only just begun has written nothing yet
	}
	return &HeldError{Path: path, PID: h.PID, URL: h.URL}
}

// Announce tells later comers which process this is and where it answers.
func (d *Dir) Announce(url string) error {
	text, err := json.Marshal(holder{PID: os.Getpid(), URL: url})
	if err == nil {
		err = d.lock.Truncate(0)
	}
	if err == nil {
		_, err = d.lock.WriteAt(append(text, '\n'), 0)
	}
	if err != nil {
		return fmt.Errorf("writing the state folder's lock: %w", err)
	}
	return nil
}

// Close lets go of the folder. Its contents stay.
func (d *Dir) Close() error { return d.lock.Close() }

// File is the path of a file in the folder.
func (d *Dir) File(name string) string { return filepath.Join(d.Path, name) }
