package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cutonce/cutonce/internal/target"
)

// demoTenant is the tenant of everybody in the demo.
const demoTenant = "dev"

// demoClocks are shorter than the defaults, so that lapses and expiries fit into the demo. Each is printed beside its default.
var demoClocks = map[string]string{
	"PREVIEW_TTL": "4s", "APPROVAL": "60s", "APPLY_WINDOW": "60s", "SEND": "1s", "LEASE": "3s", "SEND_MARGIN": "200ms",
	"SETTLE": "1s", "SWEEP": "300ms", "PROBE_BASE": "200ms", "APPLY_WAIT": "20s",
}

// demo is the story's world: two service processes, two simulated platforms, and the people.
type demo struct {
	out    io.Writer
	secret string
	// agent and second are the ad agency's agent on the two processes; mori and ono are the platform team's agents of two people.
	agent, second, mori, ono *demoAgent
	approver, operatorAt     demoPerson
	manager, moriHerself     demoPerson
	control, deploys         target.Control
	// previews are all IDs of the story; applied counts the effects that each must have had.
	previews []string
	applied  map[string]int
	// ofDeploys are the IDs whose target is the deployment platform.
	ofDeploys map[string]bool
	large     string
	rolled    string
}

func demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Tell the whole story in under 90 seconds, against an instance of its own",
		Long: "Starts a private Postgres, two simulated platforms and two service processes on free ports, goes through the\n" +
			"story step by step, and ends all of it. The exit code is not zero if a step does not keep its promise.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDemo(cmd.Context(), os.Stdout) },
	}
}

func runDemo(ctx context.Context, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	began := time.Now()
	d, stop, err := startDemo(ctx, out)
	defer stop()
	if err != nil {
		return fmt.Errorf("starting the demo's instance: %w", err)
	}
	d.printClocks()
	ok := d.tell(ctx)
	total := len(d.steps())
	fmt.Fprintf(out, "demo: %d/%d steps ok (%.0f s)\n", ok, total, time.Since(began).Seconds())
	if ok != total {
		return exitCode(1)
	}
	return nil
}

// tell runs the steps in order. A step that fails does not stop the later ones: each has targets of its own.
func (d *demo) tell(ctx context.Context) (ok int) {
	steps := d.steps()
	for i, step := range steps {
		line, err := step.run(ctx)
		mark := "ok"
		if err != nil {
			mark, line = "NOT AS PROMISED", strings.TrimSpace(line+" | "+err.Error())
		} else {
			ok++
		}
		fmt.Fprintf(d.out, "%2d/%d %s: %s\n      %s\n", i+1, len(steps), mark, step.title, line)
	}
	return ok
}

func (d *demo) printClocks() {
	var parts []string
	for name, value := range demoClocks {
		parts = append(parts, fmt.Sprintf("%s %s (default %s)", strings.ToLower(name), value, clockDefault(name)))
	}
	slices.Sort(parts)
	fmt.Fprintf(d.out, "clocks of this demo: %s\n", strings.Join(parts, ", "))
}
