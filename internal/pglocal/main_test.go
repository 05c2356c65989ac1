package pglocal_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/internal/pglocal"
)

// holdIn makes the test binary, run again, a process that holds the cluster in that folder until it is killed.
const holdIn = "PGLOCAL_TEST_HOLD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(holdIn); dir != "" {
		hold(dir)
	}
	os.Exit(m.Run())
}

func hold(dir string) {
	c, err := pglocal.Open(context.Background(), config(dir))
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	fmt.Println(c.URL())
	io.Copy(io.Discard, os.Stdin) // until the parent ends, at the latest
	os.Exit(0)
}

// holder starts such a process and waits until its cluster is up.
func holder(t *testing.T, dir string) (process *os.Process, url string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holdIn+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "postgres://") {
		t.Fatalf("got %q (%v) from the holder, want a URL", line, err)
	}
	return cmd.Process, strings.TrimSpace(line)
}

func config(dir string) pglocal.Config {
	return pglocal.Config{Dir: dir, Name: "test", Volatile: true, Settings: map[string]string{"shared_buffers": "16MB"}}
}

// folder is one that the server's account can enter; t.TempDir is not when the tests run as root.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "cutonce-pglocal-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func open(t *testing.T, cfg pglocal.Config) *pglocal.Cluster {
	t.Helper()
	begun := time.Now()
	c, err := pglocal.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("up in %v: %s", time.Since(begun).Round(time.Millisecond), c.Describe())
	t.Cleanup(func() { shut(t, c) })
	return c
}

func shut(t *testing.T, c *pglocal.Cluster) {
	t.Helper()
	if err := c.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

func exec1(t *testing.T, url, sql string) {
	t.Helper()
	conn := connect(t, url)
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func ask(t *testing.T, url, sql string) (answer string) {
	t.Helper()
	if err := connect(t, url).QueryRow(t.Context(), sql).Scan(&answer); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return answer
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}
