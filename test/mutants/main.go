// Command mutants shows that `cutonce verify` can fail: it takes the guards out of the program one at a time, and each time
// the check that is about that guard must turn red.
//
// Every mutant is built by `go build -overlay` from copies of the files that hold the guard, with exactly the guard taken out;
// nothing in the working tree changes. A fragment that is not found exactly once is an error: then the guard has moved, and the
// mutant with it. The unmutated program must be green on the same database, or red would mean nothing.
//
// Start at list in mutants.go.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/cutonce/cutonce/internal/pglocal"
)

func main() {
	only := flag.String("only", "", "make only the mutants whose name holds this")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *only); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, only string) (err error) {
	root, err := filepath.Abs(".")
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "cutonce-mutants-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	chosen := slices.DeleteFunc(list(), func(m mutant) bool { return !strings.Contains(m.name, only) })
	if len(chosen) == 0 {
		return fmt.Errorf("no mutant's name holds %q", only)
	}
	for _, m := range chosen {
		if err := m.write(root, filepath.Join(dir, m.name)); err != nil {
			return err
		}
	}
	cluster, err := pglocal.Open(ctx, pglocal.Config{Name: "mutants", Cache: ".cache"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Close(context.WithoutCancel(ctx))) }()
	fmt.Printf("database: %s\n", cluster.Describe())
	return judge(ctx, bench{root: root, dir: dir, database: cluster.URL()}, chosen)
}

// bench is where mutants are built and run.
type bench struct{ root, dir, database string }

// judge builds one mutant while the one before it is being run.
func judge(ctx context.Context, b bench, chosen []mutant) error {
	builds := make(chan built)
	building, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		defer close(builds)
		for _, m := range append([]mutant{{name: "control"}}, chosen...) {
			path, err := b.build(building, m)
			select {
			case builds <- built{m, path, err}:
			case <-building.Done():
				return
			}
		}
	}()
	red, control := 0, "red"
	for one := range builds {
		if one.err != nil {
			return one.err
		}
		r, err := b.verify(ctx, one.path)
		if err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
		_ = os.Remove(one.path) // the folder goes at the end anyway
		switch {
		case one.check == "" && r.Code == 0:
			control = "green"
			fmt.Printf("%-22s green  %d checks pass\n", one.name, r.Pass)
		case one.check == "":
			return fmt.Errorf("the unmutated program is not green (exit code %d): %s", r.Code, r.failed())
		case r.Code == 1 && r.fails(one.check):
			red++
			fmt.Printf("%-22s red    %s: %s\n", one.name, one.check, r.why(one.check))
		default:
			fmt.Printf("%-22s LIVES  want %s to fail; exit code %d, failed: %s\n", one.name, one.check, r.Code, r.failed())
		}
	}
	fmt.Printf("mutants: %d/%d red, control %s\n", red, len(chosen), control)
	if red != len(chosen) || control != "green" {
		return errors.New("a guard can be taken out without verify noticing")
	}
	return ctx.Err()
}

type built struct {
	mutant
	path string
	err  error
}

func (b bench) build(ctx context.Context, m mutant) (string, error) {
	path := filepath.Join(b.dir, "cutonce-"+m.name)
	args := []string{"build", "-trimpath", "-ldflags", "-s -w", "-o", path} // as make build does, so that what is unchanged is not built anew
	if len(m.edits) > 0 {
		args = append(args, "-overlay", filepath.Join(b.dir, m.name, overlayFile))
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./cmd/cutonce")...)
	cmd.Dir, cmd.Env = b.root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the mutant %s does not compile: %w\n%s", m.name, err, out)
	}
	return path, nil
}

// report is what verify --json says.
type report struct {
	Code    int `json:"exit_code"`
	Pass    int `json:"pass"`
	Results []struct{ ID, Status, Reason string }
}

func (b bench) verify(ctx context.Context, binary string) (r report, err error) {
	cmd := exec.CommandContext(ctx, binary, "verify", "--json")
	cmd.Dir = b.dir
	// Nothing at the other ends needs to answer: verify sends nothing to targets, and its check of tokens is N-A without keys.
	cmd.Env = []string{
		"CUTONCE_DATABASE_URL=" + b.database, "CUTONCE_PUBLIC_URL=http://127.0.0.1:8780", "CUTONCE_METRICS_LISTEN=off",
		"CUTONCE_ISSUER_URL=http://127.0.0.1:1/issuer", "CUTONCE_ISSUER_JWKS_URL=http://127.0.0.1:1/jwks",
		"CUTONCE_ISSUER_HUMAN_CLIENTS=console", "CUTONCE_SECRET=0123456789abcdef-a-secret-for-mutants-only",
		"CUTONCE_POLICY_DIR=" + filepath.Join(b.root, "examples", "policies"),
		"CUTONCE_ADS_URL=http://127.0.0.1:1", "CUTONCE_ADS_TOKEN=unused", "CUTONCE_ADS_SYSTEM=ads.example/mutants",
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return r, err
	}
	if jsonErr := json.Unmarshal(out, &r); jsonErr != nil {
		return r, fmt.Errorf("verify did not report (%w): %s", errors.Join(err, jsonErr), stderr.String())
	}
	if r.Code != cmd.ProcessState.ExitCode() {
		return r, fmt.Errorf("the report says exit code %d, the process %d", r.Code, cmd.ProcessState.ExitCode())
	}
	return r, nil
}

func (r report) fails(check string) bool {
	return slices.ContainsFunc(r.Results, func(one struct{ ID, Status, Reason string }) bool { return one.ID == check && one.Status == "FAIL" })
}

func (r report) why(check string) string {
	for _, one := range r.Results {
		if one.ID == check {
			first, _, _ := strings.Cut(one.Reason, "\n")
			return first
		}
	}
	return "no such check"
}

func (r report) failed() string {
	var all []string
	for _, one := range r.Results {
		if one.Status == "FAIL" {
			all = append(all, one.ID+" ("+one.Reason+")")
		}
	}
	return strings.Join(all, ", ")
}
