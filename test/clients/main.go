// Command clients drives a running cutonce with MCP clients that others have written: the TypeScript client (2026-07-28, over
// HTTP and, through the bridge, over standard input and output), the TypeScript SDK of the older line (2025-11-25, over both
// as well), and the command line of the MCP Inspector.
//
// It promises to bring what it needs (Node from npm if the machine's is too old, the clients in the exact versions of
// package-lock.json, an instance with a database of its own), to end all of it, and to say why if it cannot begin. The cases
// are in story.mjs, one line is printed for each, and the last line counts them.
//
// It does not promise to work without npm and its registry. Start at main, then story.mjs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// whole bounds everything, the fetching included.
const whole = 4 * time.Minute

func main() {
	binary := flag.String("binary", "bin/cutonce", "the program to test")
	cache := flag.String("cache", ".cache", "folder for what is fetched")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, whole)
	defer cancel()
	switch err := run(ctx, *binary, *cache); {
	case errors.Is(err, errSaid) && ctx.Err() == nil:
		os.Exit(1)
	case err != nil:
		fmt.Fprintf(os.Stderr, "clients: not run to the end: %v\n", errors.Join(err, ctx.Err()))
		os.Exit(1)
	}
}

// errSaid is the end of cases that have said what is wrong.
var errSaid = errors.New("not every case passed")

func run(ctx context.Context, binary, cache string) error {
	binary, err := filepath.Abs(binary)
	if err != nil {
		return err
	}
	node, dir, err := fetch(ctx, cache)
	if err != nil {
		return err
	}
	w, stop, err := startWorld(ctx, binary)
	defer stop()
	if err != nil {
		return err
	}
	cases := exec.CommandContext(ctx, node, filepath.Join(dir, "run.mjs"), w.file)
	cases.Cancel = func() error { return cases.Process.Signal(syscall.SIGTERM) }
	cases.WaitDelay = 5 * time.Second
	cases.Stdout, cases.Stderr = os.Stdout, os.Stderr
	cases.Env = []string{"PATH=" + filepath.Dir(node) + ":" + os.Getenv("PATH"), "HOME=" + w.dir, "NO_COLOR=1"}
	var exit *exec.ExitError
	if err := cases.Run(); errors.As(err, &exit) {
		return fmt.Errorf("%w (%w)", errSaid, err)
	} else if err != nil {
		return fmt.Errorf("starting the cases: %w", err)
	}
	return nil
}
