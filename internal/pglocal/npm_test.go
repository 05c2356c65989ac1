package pglocal

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestNPMsBinariesRunACluster(t *testing.T) {
	t.Parallel()
	if os.Getenv("CUTONCE_TEST_NPM") != "1" {
		t.Skip("downloads 60 MB; set CUTONCE_TEST_NPM=1")
	}
	dir, err := os.MkdirTemp("", "cutonce-pglocal-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	cfg := Config{Dir: dir, Name: "npm", Cache: filepath.Join(dir, "cache"), Volatile: true}.withDefaults()
	bins, err := fromNPM(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := bins.Major, 17; got != want {
		t.Errorf("got Postgres %d, want %d", got, want)
	}
	c, err := openPrivate(t.Context(), cfg, bins)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(c.Describe())
	t.Cleanup(func() { c.Close(context.WithoutCancel(t.Context())) })
	conn, err := pgx.Connect(t.Context(), c.URL())
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
