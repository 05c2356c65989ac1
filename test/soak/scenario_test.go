package main

import (
	"bytes"
	"context"
	"flag"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// writeFor is how long the writers of scenario 4 go on: `go test ./test/soak -run HeadToHead04 -write-for 60s` is the whole of it, and
// `make test/soak` is the same while processes are killed.
var writeFor = flag.Duration("write-for", 4*time.Second, "how long the writers of scenario 4 go on")

// Three replicas and eight writers at each of them, then every chain is verified: none is broken.
func TestHeadToHead04_ThreeReplicasEightWritersEach(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it runs three replicas for seconds")
	}
	ctx, cancel := context.WithTimeout(t.Context(), *writeFor+3*time.Minute)
	defer cancel()
	binary := filepath.Join(t.TempDir(), "cutonce")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, "../../cmd/cutonce").CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	var out bytes.Buffer
	v, err := soak(ctx, Options{Binary: binary, For: *writeFor, Seed: 4, Calm: true}, &out)
	t.Logf("%s", &out)
	if err != nil {
		t.Fatal(err)
	}
	if v.violations != 0 || v.breaks != 0 || v.events < 3*v.changes || v.changes < clients {
		t.Errorf("got %+v, want whole chains and nothing else, of at least one change for each writer", v)
	}
}
