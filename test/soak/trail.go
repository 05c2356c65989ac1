package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"
)

// sealedWithin is how long the sealers may take, once everything is quiet, to have sealed every event.
const sealedWithin = 30 * time.Second

// witness is where a replica keeps the last seal that it has seen, outside the database.
func (w *world) witness(replica int) string {
	return filepath.Join(w.fleet.Dir, fmt.Sprintf("witness-%d", replica))
}

// trail exports the whole audit trail and verifies it without the database, by the key and by what each replica has witnessed, as an
// auditor does. It returns how much of it is wrong.
func (w *world) trail(ctx context.Context, out io.Writer) (wrong int, err error) {
	said, code, err := w.fleet.Command(ctx, w.database, "restore", "status")
	if err != nil || said != "no restore was ever declared\n" {
		return 1, fmt.Errorf("restarts were taken for a restore from a backup: exit %d, %s (%w)", code, said, err)
	}
	said, code, err = w.fleet.Command(ctx, w.database, "audit", "key")
	if err != nil || code != 0 {
		return 0, fmt.Errorf("asking for the key: exit %d, %s (%w)", code, said, err)
	}
	key, _, _ := strings.Cut(said, "\n")
	file := filepath.Join(w.fleet.Dir, "trail.ndjson")
	for began := time.Now(); ; pause(ctx, 200*time.Millisecond) {
		said, code, err = w.fleet.Command(ctx, w.database, "audit", "export", "--out", file)
		if err != nil || code != 0 {
			return 0, fmt.Errorf("exporting: exit %d, %s (%w)", code, said, err)
		}
		if wrong, said, err = w.verifyTrail(ctx, file, key); err != nil || wrong > 0 {
			break
		}
		if strings.Contains(said, "\n0 events not sealed yet") {
			break
		}
		if time.Since(began) > sealedWithin {
			wrong, said = 1, said+"VIOLATION: the sealers do not keep up\n"
			break
		}
	}
	for line := range strings.Lines(said) {
		fmt.Fprint(out, "trail: ", line)
	}
	return wrong, err
}

// verifyTrail verifies an export once against each witness.
func (w *world) verifyTrail(ctx context.Context, file, key string) (wrong int, said string, err error) {
	for i := range replicas {
		var code int
		said, code, err = w.fleet.Command(ctx, w.database, "audit", "verify", file, "--key", key, "--witness", w.witness(i))
		switch {
		case err != nil || code > 1:
			return 0, said, fmt.Errorf("verifying: exit %d, %s (%w)", code, said, err)
		case code == 1:
			return max(1, strings.Count(said, "BROKEN ")), said, nil
		}
	}
	return 0, said, nil
}
