package fleet

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestAReplicaIsKilledAndComesBack runs the whole fleet once: stop, kill, restart, one effect.
func TestAReplicaIsKilledAndComesBack(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	binary := filepath.Join(t.TempDir(), "cutonce")
	if out, err := exec.CommandContext(ctx, "go", "build", "-tags", "stops", "-o", binary, "../../cmd/cutonce").CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	f, err := Start(ctx, Config{Binary: binary, Clocks: map[string]string{
		"SEND": "500ms", "LEASE": "1500ms", "SEND_MARGIN": "100ms", "SETTLE": "500ms", "SWEEP": "200ms", "PROBE_BASE": "100ms",
	}})
	if f != nil {
		t.Cleanup(f.Close)
	}
	if err != nil {
		t.Fatal(err)
	}
	database, err := f.Database(ctx)
	if err != nil {
		t.Fatal(err)
	}
	first, err := f.Serve(ctx, Replica{Database: database, Stops: []string{"before-record"}})
	if err != nil {
		t.Fatal(err)
	}
	agent, err := f.As("agent", first)
	if err != nil {
		t.Fatal(err)
	}
	campaign, err := f.Campaign(ctx)
	if err != nil {
		t.Fatal(err)
	}
	made, err := agent.Prepare(ctx, campaign, Budget+1000, "")
	if err != nil || made.Status != "approved" {
		t.Fatalf("got %+v, %v, want an approved change", made, err)
	}
	lost := make(chan error, 1)
	go func() { _, err := agent.Apply(ctx, made.PreviewID); lost <- err }()
	if err := first.Reached(ctx, "before-record"); err != nil {
		t.Fatal(err)
	}
	first.Kill()
	if err := <-lost; err == nil {
		t.Error("an apply was answered by a process that was killed before it recorded")
	}
	second, err := f.Serve(ctx, Replica{Database: database, Listen: first.Listen})
	if err != nil {
		t.Fatal(err)
	}
	err = Until(ctx, "the change to be settled", func() bool {
		r, err := agent.At(second).Status(ctx, made.PreviewID, 0)
		return err == nil && r.Status == "applied"
	})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := f.Effects(ctx, made.PreviewID); err != nil || n != 1 {
		t.Errorf("got %d effects, %v, want 1", n, err)
	}
}
