package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cutonce/cutonce/connector"
	"github.com/cutonce/cutonce/connector/trial"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/config"
)

func connectorCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "connector", Short: "For those who write connectors", Args: cobra.NoArgs}
	cmd.AddCommand(connectorTestCommand())
	return cmd
}

type trialFlags struct {
	simulator, json bool
	input, human    string
}

func connectorTestCommand() *cobra.Command {
	var f trialFlags
	cmd := &cobra.Command{
		Use:   "test NAME",
		Short: "Try a connector out against a sandbox or a simulator: lost replies, slow writes, duplicates, stale reads …",
		Long: "Puts a faulting link between the connector and its target, makes one change for each check, and prints what the\n" +
			"connector called it, what it should be called, and at the end which guarantee the connector has earned.\n\n" +
			"NAME is an action or its platform: " + knownTrials() + ".\n\n" +
			"Checks change the target. So nothing is sent, and the target is not even dialled, unless it is declared a sandbox\n" +
			"(such as CUTONCE_ADS_SANDBOX=true) or is the built-in simulator (--simulator). Nothing overrides this. The connector\n" +
			"is configured as for serve, by the environment; with --simulator only what it declares of the platform is read\n" +
			"(_HONOURS_KEYS, _KEY_RETENTION, _NO_LOOKUP). A sandbox needs --input: a change that can be made there again and again,\n" +
			"because after each check the target is put back.\n\n" +
			"Exit code: 0 nothing failed and a check that sends passed, 1 something failed, 2 the configuration is refused,\n" +
			"3 nothing could be shown.\n\nFull account: docs/verify.md",
		Args: exactly(1, "which connector? "+knownTrials()),
		RunE: func(cmd *cobra.Command, args []string) error {
			return tryConnector(cmd.Context(), os.Environ(), args[0], cmd.OutOrStdout(), cmd.ErrOrStderr(), f)
		},
	}
	cmd.Flags().BoolVar(&f.simulator, "simulator", false, "use the built-in simulator of the platform, one for each check")
	cmd.Flags().StringVar(&f.input, "input", "", "a file with the change to make, as JSON: the action's input")
	cmd.Flags().StringVar(&f.human, "for", "", "the person on whose behalf the change is made, as the platform knows them")
	cmd.Flags().BoolVar(&f.json, "json", false, "print the report as JSON")
	return cmd
}

// candidate is a connector that can be tried out.
type candidate struct {
	action, platform string
	// make makes the connector from settings whose target is where it says.
	make func(config.Settings) (connector.Connector, error)
	// target is its part of the settings.
	target func(*config.Settings) *config.Target
	// simulate starts a simulator for one check; human and input are a change that it knows.
	simulate func(token string, keys bool) (simulated, error)
	human    string
	input    connector.Input
}

func knownTrials() string {
	var names []string
	for _, c := range candidates() {
		names = append(names, c.action+" ("+c.platform+")")
	}
	return strings.Join(names, ", ")
}

func tryConnector(ctx context.Context, environ []string, name string, out, problems io.Writer, f trialFlags) error {
	subject, err := subjectOf(environ, name, f)
	if err != nil {
		return said(problems, badConfiguration, err)
	}
	table := io.Discard
	if !f.json {
		table = out
	}
	report, err := trial.Run(ctx, subject, func(r trial.Result) { printTrial(table, r) })
	switch {
	case ctx.Err() != nil:
		return context.Canceled
	case err != nil:
		return said(problems, couldNotRun, err)
	}
	if f.json {
		e := json.NewEncoder(out)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(struct {
			trial.Report
			Code int `json:"exit_code"`
		}{report, report.Code()}); err != nil {
			return said(problems, couldNotRun, err)
		}
	}
	printEarned(table, report)
	if code := report.Code(); code != 0 {
		return exitCode(code)
	}
	return nil
}

// subjectOf reads the configuration. It dials nobody.
func subjectOf(environ []string, name string, f trialFlags) (trial.Subject, error) {
	var s trial.Subject
	chosen, err := candidateOf(name)
	if err != nil {
		return s, err
	}
	settings, err := config.Load(environ)
	if err != nil {
		return s, err
	}
	s.Action, s.Input = chosen.action, chosen.input
	if f.input != "" {
		if s.Input, err = readInput(f.input); err != nil {
			return s, err
		}
	}
	human := cmp.Or(f.human, chosen.human)
	s.Actor = actor.Actor{Tenant: "cutonce-trial", Kind: actor.Agent, Issuer: "https://trial.invalid", Subject: "cutonce-trial", For: human, Owner: human}
	t := chosen.target(&settings)
	if f.simulator {
		t.URL, t.Token, t.TokenFile, t.System, t.Sandbox = "http://127.0.0.1:1", config.Secret(randomHex()), "", "simulator.example/"+chosen.platform, true
		s.Open = func(context.Context) (trial.Rig, error) { return chosen.simulator(settings) }
	} else {
		prefix := config.Prefix + strings.ToUpper(chosen.platform)
		if t.URL == "" || t.Token == "" || t.System == "" {
			return s, fmt.Errorf("%s_URL, %s_TOKEN (or _FILE) and %s_SYSTEM say where the sandbox is; --simulator needs none of them", prefix, prefix, prefix)
		}
		if t.Sandbox && (f.input == "" || f.human == "") {
			return s, errors.New("a sandbox needs --input FILE (which change?) and --for PERSON (on whose behalf?)")
		}
		s.Open = func(context.Context) (trial.Rig, error) { return chosen.sandbox(settings) }
	}
	s.Connector, err = chosen.make(settings)
	return s, err
}

func candidateOf(name string) (candidate, error) {
	for _, c := range candidates() {
		if name == c.action || name == c.platform {
			return c, nil
		}
	}
	return candidate{}, fmt.Errorf("there is no connector %q; there are: %s", name, knownTrials())
}

func readInput(path string) (in connector.Input, err error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, fmt.Errorf("%s is no JSON object: %w", path, err)
	}
	return in, nil
}

// at makes the connector with its target at another address, by plain HTTP on loopback.
func (c candidate) at(settings config.Settings, path string) func(address string) (connector.Connector, error) {
	return func(address string) (connector.Connector, error) {
		moved := settings
		c.target(&moved).URL = "http://" + address + path
		return c.make(moved)
	}
}

// sandbox is the configured target itself.
func (c candidate) sandbox(settings config.Settings) (trial.Rig, error) {
	u, err := url.Parse(c.target(&settings).URL)
	if err != nil {
		return trial.Rig{}, err
	}
	up := trial.Upstream{Address: u.Host, Host: u.Host}
	port := "80"
	if u.Scheme == "https" {
		port, up.TLS = "443", &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	}
	if u.Port() == "" {
		up.Address = net.JoinHostPort(u.Hostname(), port)
	}
	return trial.Rig{Upstream: up, At: c.at(settings, strings.TrimSuffix(u.Path, "/"))}, nil
}

// simulator is a platform of the check's own.
func (c candidate) simulator(settings config.Settings) (trial.Rig, error) {
	s, err := c.simulate(string(c.target(&settings).Token), c.target(&settings).HonoursKeys)
	if err != nil {
		return trial.Rig{}, err
	}
	return trial.Rig{Upstream: trial.Upstream{Address: s.address}, At: c.at(settings, ""), Effects: s.effects, Close: s.stop}, nil
}

func printTrial(out io.Writer, r trial.Result) {
	fmt.Fprintf(out, "%-4s  %-15s %s\n", r.Status, r.ID, r.Did)
	for _, line := range []struct{ label, text string }{{"got", r.Got}, {"want", r.Want}, {"why", r.Reason}} {
		if line.text != "" {
			fmt.Fprintf(out, "      %-5s %s\n", line.label, line.text)
		}
	}
}

func printEarned(out io.Writer, r trial.Report) {
	fmt.Fprintf(out, "\n%s at %s declares: %s\n", r.Action, r.System, cmp.Or(strings.Join(r.Able, "; "), "nothing"))
	for _, note := range r.Notes {
		fmt.Fprintln(out, "note:", note)
	}
	fmt.Fprintln(out, "\nthe guarantee that it has earned:")
	for _, e := range r.Guarantee {
		fmt.Fprintf(out, "  %s:\n%s", e.What, wrap(e.How, "      ", 110))
	}
	fmt.Fprintf(out, "\nconnector test: %d PASS, %d FAIL, %d N-A of %d checks\n",
		r.Count(trial.Pass), r.Count(trial.Fail), r.Count(trial.NotApplicable), len(r.Results))
}
