package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cutonce/cutonce/internal/auth"
	"github.com/cutonce/cutonce/internal/config"
	"github.com/cutonce/cutonce/internal/pglocal"
	"github.com/cutonce/cutonce/verify"
)

// The exit codes of the commands that hold something up against its promises.
const (
	badConfiguration exitCode = 2
	couldNotRun      exitCode = 3
)

type verifyFlags struct {
	json, list bool
	junit      string
	only       []string
}

func verifyCommand() *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check the guarantees against your own configuration, in a scratch schema",
		Long: "Reads the configuration of serve from the environment and shows the guarantees of --list on it: your database,\n" +
			"policy, secret, clocks and identity provider. It works in a schema of its own (cutonce_verify_…), which it drops at\n" +
			"the end, and changes nothing in the real tables. Nothing is sent to your targets: a counting target of its own\n" +
			"stands in. Your database and your identity provider's key address are the only things that are asked.\n\n" +
			"Each check has a positive control beside the refusal. PASS, FAIL, or N-A with the reason; N-A never counts as a pass.\n\n" +
			"Exit code: 0 nothing failed and something passed, 1 something failed, 2 the configuration is refused, 3 it could not run.\n\n" +
			"Full account: docs/verify.md",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return verifyConfiguration(cmd.Context(), os.Environ(), cmd.OutOrStdout(), cmd.ErrOrStderr(), f)
		},
	}
	cmd.Flags().BoolVar(&f.json, "json", false, "print the report as JSON")
	cmd.Flags().BoolVar(&f.list, "list", false, "list the checks and what each promises")
	cmd.Flags().StringVar(&f.junit, "junit", "", "also write the report to this file, as JUnit XML")
	cmd.Flags().StringSliceVar(&f.only, "only", nil, "run only these checks (comma-separated)")
	return cmd
}

func verifyConfiguration(ctx context.Context, environ []string, out, problems io.Writer, f verifyFlags) error {
	checks, err := verify.Pick(f.only)
	if err != nil {
		return said(problems, badConfiguration, err)
	}
	if f.list {
		for _, c := range checks {
			fmt.Fprintf(out, "%-16s %s\n", c.ID, c.Promise)
		}
		return nil
	}
	cfg, stop, err := verifyConfig(ctx, environ)
	defer stop()
	if err != nil {
		return said(problems, badConfiguration, err)
	}
	if foreign := (*pglocal.ForeignTablesError)(nil); errors.As(refuseForeign(ctx, cfg.URL), &foreign) {
		return said(problems, badConfiguration, foreign)
	}
	table := io.Discard
	if !f.json {
		table = out
	}
	report, err := verify.Run(ctx, cfg, checks, func(r verify.Result) { printResult(table, r) })
	switch {
	case ctx.Err() != nil:
		return context.Canceled // what was made is gone again
	case err != nil:
		return said(problems, couldNotRun, err)
	}
	if err := writeReport(out, f, report); err != nil {
		return said(problems, couldNotRun, err)
	}
	printSummary(table, report)
	if code := report.Code(); code != 0 {
		return exitCode(code)
	}
	return nil
}

// said tells a problem and ends with its code.
func said(problems io.Writer, code exitCode, err error) error {
	fmt.Fprintf(problems, "cutonce: %v\n", err)
	return code
}

// verifyConfig is the configuration of serve, in the words of package verify. stop ends what reads the issuers' keys.
func verifyConfig(ctx context.Context, environ []string) (cfg verify.Config, stop func(), err error) {
	keys, stop := context.WithCancel(ctx)
	settings, err := config.Load(environ)
	if err != nil {
		return cfg, stop, err
	}
	if err := settings.CheckServe(); err != nil {
		return cfg, stop, err
	}
	quiet := slog.New(slog.DiscardHandler)
	s := &service{blueprint: blueprint{settings: settings, rules: os.DirFS(settings.PolicyDir), log: quiet}}
	defer s.close()
	rules, err := s.loadActions()
	if err != nil {
		return cfg, stop, err
	}
	tokens, err := auth.New(keys, verifierOf(settings, quiet))
	if err != nil {
		return cfg, stop, err
	}
	return verify.Config{
		URL: string(settings.DatabaseURL), PoolSize: int32(settings.DatabasePool), AllowUnsafe: settings.AllowUnsafe == config.Unsafe,
		Rules: rules, Secret: []byte(settings.Secret), Clocks: clocksOf(settings.Clock), SendMargin: settings.Clock.SendMargin,
		Tokens: verify.Tokens{Verify: tokens.Verify, Unreachable: auth.ErrIssuerUnreachable, StandIn: standIn(keys, settings), Issuers: tokenIssuers(settings)},
		Now:    time.Now, Log: quiet,
	}, stop, nil
}

func tokenIssuers(s config.Settings) []verify.TokenIssuer {
	var all []verify.TokenIssuer
	for _, i := range []config.Issuer{s.Issuer, s.Issuer2, s.Issuer3} {
		if i.URL == "" {
			continue
		}
		one := verify.TokenIssuer{URL: i.URL, Audience: audiences(s)[0], Client: i.HumanClients[0], TenantClaim: i.ClaimTenant, Tenant: i.Tenant}
		if len(i.Tenants) > 0 {
			one.Tenant, one.OneTenant = i.Tenants[0], true
		}
		if len(i.AgentClients) > 0 {
			one.AgentClient = i.AgentClients[0]
		}
		one.ClientClaim = i.ClaimClient
		all = append(all, one)
	}
	return all
}

func printResult(out io.Writer, r verify.Result) {
	fmt.Fprintf(out, "%-4s  %-16s %s\n", r.Status, r.ID, r.Promise)
	for _, line := range []struct{ label, text string }{{"works", r.Control}, {"holds", r.Refusal}, {"why", r.Reason}} {
		if line.text != "" && (r.Status == verify.Pass) == (line.label != "why") {
			text := wrap(line.text, "              ", 118)
			fmt.Fprintf(out, "      %-7s %s", line.label, strings.TrimLeft(text, " "))
		}
	}
}

func printSummary(out io.Writer, r verify.Report) {
	fmt.Fprintln(out, "\nclocks: configured, and as used here (deadlines pass by moving the database's clock in the scratch schema)")
	for _, c := range r.Clocks {
		fmt.Fprintf(out, "  %-14s %-10s %s\n", c.Name, c.Configured, c.Used)
	}
	for _, note := range r.Notes {
		fmt.Fprintln(out, "note:", note)
	}
	fmt.Fprintf(out, "\nverify: %d PASS, %d FAIL, %d N-A of %d checks in %.1f s; the scratch schema is gone, nothing was sent to your targets\n",
		r.Count(verify.Pass), r.Count(verify.Fail), r.Count(verify.NotApplicable), len(r.Results), r.Took.Seconds())
}

func writeReport(out io.Writer, f verifyFlags, r verify.Report) (err error) {
	if f.json {
		e := json.NewEncoder(out)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(map[string]any{
			"version": version, "results": r.Results, "clocks": r.Clocks, "notes": r.Notes, "exit_code": r.Code(),
			"pass": r.Count(verify.Pass), "fail": r.Count(verify.Fail), "na": r.Count(verify.NotApplicable), "seconds": r.Took.Seconds(),
		}); err != nil {
			return err
		}
	}
	if f.junit == "" {
		return nil
	}
	file, err := os.Create(f.junit)
	if err != nil {
		return fmt.Errorf("writing the JUnit report: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return r.JUnit(file)
}
