package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrNoWitness says that a file is there and cannot be trusted to be the witness.
var ErrNoWitness = errors.New("this is no witness")

// ReadWitness reads the last seal that was witnessed outside the database, nil if there is none yet.
func ReadWitness(path string) (*Seal, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the witness: %w", err)
	}
	var r Record
	if err := json.Unmarshal(raw, &r); err != nil || r.Record != recordSeal {
		return nil, fmt.Errorf("%w: %s is not readable", ErrNoWitness, path)
	}
	s := r.seal()
	return &s, nil
}

// WriteWitness replaces the witness that was read as old (nil for none), whole or not at all, and returns once it is durable. Where
// another process has replaced it meanwhile, or nothing is new, it changes nothing.
func WriteWitness(path string, old *Seal, s Seal) error {
	if same(old, &s) {
		return nil
	}
	unlock, err := lock(path + ".lock")
	if err != nil {
		return fmt.Errorf("writing the witness: %w", err)
	}
	defer unlock()
	now, err := ReadWitness(path)
	if err != nil || !same(now, old) {
		return err
	}
	return replaceWitness(path, s)
}

func same(a, b *Seal) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Number == b.Number && bytes.Equal(a.Hash, b.Hash)
}

func replaceWitness(path string, s Seal) (err error) {
	raw, err := json.Marshal(sealRecord(s))
	if err != nil {
		return fmt.Errorf("writing the witness: %w", err)
	}
	draft, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("writing the witness: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(draft.Name())
		}
	}()
	_, err = draft.Write(append(raw, '\n'))
	if err = errors.Join(err, draft.Sync(), draft.Close()); err != nil {
		return fmt.Errorf("writing the witness: %w", err)
	}
	if err = os.Rename(draft.Name(), path); err != nil {
		return fmt.Errorf("writing the witness: %w", err)
	}
	return syncFolder(filepath.Dir(path))
}

// CheckWritable reports whether a witness can be written, before the first one is.
func CheckWritable(path string) error {
	draft, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("the witness cannot be written: %w", err)
	}
	return errors.Join(draft.Close(), os.Remove(draft.Name()))
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("writing the witness: %w", err)
	}
	if err := errors.Join(folder.Sync(), folder.Close()); err != nil {
		return fmt.Errorf("writing the witness: %w", err)
	}
	return nil
}

// History is the seals of a database.
type History interface {
	// SealAt gives one seal, nil if there is none of this number.
	SealAt(ctx context.Context, number int64) (*Seal, error)
}

// Forgotten reports whether a database does not know what was witnessed: it was restored from a backup, or it is another one.
// A database that was promoted knows it, because a witness is written only once the seal is durable.
func Forgotten(ctx context.Context, h History, witness Seal) (bool, error) {
	known, err := h.SealAt(ctx, witness.Number)
	if err != nil {
		return false, err
	}
	return known == nil || !bytes.Equal(known.Hash, witness.Hash), nil
}
