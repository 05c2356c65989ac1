package fleet

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/cutonce/cutonce/internal/child"
	"github.com/cutonce/cutonce/internal/devissuer"
)

// Replica says how one `cutonce serve` is run.
type Replica struct {
	// Binary is the program; empty means the fleet's.
	Binary string
	// Database is its Postgres, or a proxy before it.
	Database string
	// Target is the ad platform, or a proxy before it; empty means the fleet's own.
	Target string
	// Listen is its address; empty means a free one. A restarted replica keeps its address by it.
	Listen string
	// Stops are points of stops_on.go in cmd/cutonce at which the first call waits.
	Stops []string
	// Env are further settings, NAME=value.
	Env []string
}

// Process is a running replica.
type Process struct {
	// URL is its main door, Metrics its metrics.
	URL, Metrics string
	Replica
	*child.Process
	stops string
	log   string
}

const startFor = time.Minute

// Serve starts one replica and returns when it is ready for calls.
func (f *Fleet) Serve(ctx context.Context, r Replica) (*Process, error) {
	p, err := f.Launch(r)
	if err != nil {
		return nil, err
	}
	return p, p.Ready(ctx)
}

// Launch starts one replica without waiting for it.
func (f *Fleet) Launch(r Replica) (*Process, error) {
	if r.Listen == "" {
		address, err := FreeAddress()
		if err != nil {
			return nil, err
		}
		r.Listen = address
	}
	metrics, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	if r.Target == "" {
		r.Target = f.Ads.BaseURL
	}
	p := &Process{URL: "http://" + r.Listen, Metrics: "http://" + metrics + "/metrics", Replica: r}
	if p.stops, err = os.MkdirTemp(f.Dir, "stops-"); err != nil {
		return nil, err
	}
	log, err := f.log("serve")
	if err != nil {
		return nil, err
	}
	p.log = log.Name()
	p.Process, err = child.Start(child.Config{Path: cmp.Or(r.Binary, f.Binary), Args: []string{"serve"}, Env: f.environment(p, metrics), Log: log})
	if err != nil {
		return nil, err
	}
	f.onClose(func(ctx context.Context) {
		_ = p.Signal(syscall.SIGCONT) // a frozen process hears nothing else
		_ = p.Stop(ctx)
	})
	return p, nil
}

func (f *Fleet) environment(p *Process, metrics string) []string {
	env := []string{
		"CUTONCE_DATABASE_URL=" + p.Database, "CUTONCE_LISTEN=" + p.Listen, "CUTONCE_METRICS_LISTEN=" + metrics, "CUTONCE_PUBLIC_URL=" + p.URL,
		"CUTONCE_SECRET=" + f.Secret, "CUTONCE_POLICY_DIR=" + f.rules, "CUTONCE_AUDIENCES=" + Audience,
		"CUTONCE_ISSUER_URL=" + f.Issuer.URL(), "CUTONCE_ISSUER_JWKS_URL=" + f.Issuer.JWKSURL(),
		"CUTONCE_ISSUER_AGENT_CLIENTS=" + devissuer.AgentClient, "CUTONCE_ISSUER_HUMAN_CLIENTS=" + devissuer.ConsoleClient,
		"CUTONCE_ADS_URL=" + p.Target, "CUTONCE_ADS_TOKEN=" + f.Ads.Token, "CUTONCE_ADS_SYSTEM=ads.example/fleet",
		"CUTONCE_LIMIT_ACTOR=0", "CUTONCE_LIMIT_TENANT=0", "CUTONCE_LIMIT_ACTION=0", "CUTONCE_LIMIT_OPEN=0", // tests call like no agent
		"CUTONCE_LOG_LEVEL=WARN", "CRASH_STOPS=" + strings.Join(p.Stops, ","), "CRASH_STOPS_DIR=" + p.stops,
	}
	for name, value := range f.Clocks {
		env = append(env, "CUTONCE_CLOCK_"+name+"="+value)
	}
	return append(env, p.Env...)
}

// Ready returns when the replica answers that it is ready.
func (p *Process) Ready(ctx context.Context) error { return answers(ctx, p.URL+"/readyz", p.Process) }

// Reached returns when a call has come to the stop.
func (p *Process) Reached(ctx context.Context, point string) error {
	return Until(ctx, "the stop "+point, func() bool {
		_, err := os.Stat(filepath.Join(p.stops, point+".reached"))
		return err == nil
	})
}

// Pass lets the call at the stop go on.
func (p *Process) Pass(point string) error {
	return os.WriteFile(filepath.Join(p.stops, point+".go"), nil, 0o600)
}

// Freeze stops the process as a paused machine would, and returns when none of its threads runs any more. Thaw lets it run again.
func (p *Process) Freeze() error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startFor)
	defer cancel()
	return Until(ctx, "the process to be frozen", func() bool { return frozen(p.PID) })
}

// frozen asks the kernel, where it tells; elsewhere a signal has to do.
func frozen(pid int) bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil {
		return true
	}
	for _, thread := range threads {
		stat, err := os.ReadFile(thread)
		// The state follows the name, which ends with the last parenthesis.
		if _, state, ok := strings.Cut(string(stat), ") "); err == nil && ok && !strings.HasPrefix(state, "T") {
			return false
		}
	}
	return true
}

// Thaw ends Freeze.
func (p *Process) Thaw() error { return p.Signal(syscall.SIGCONT) }

// Log is what the process has said so far.
func (p *Process) Log() string {
	said, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(said)
}

// answers asks until the address answers 200 or the process ends.
func answers(ctx context.Context, address string, process *child.Process) error {
	ctx, cancel := context.WithTimeout(ctx, startFor)
	defer cancel()
	var ended error
	err := Until(ctx, address, func() bool {
		select {
		case <-process.Done():
			ended = process.Err()
			return true
		default:
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			ended = err
			return true
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	if ended != nil {
		return ended
	}
	return err
}

// Until polls until it is so, or the context ends.
func Until(ctx context.Context, what string, is func() bool) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		case <-tick.C:
		}
	}
	return nil
}
