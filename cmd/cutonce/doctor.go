package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/cutonce/cutonce/doctor"
	"github.com/cutonce/cutonce/internal/actor"
	"github.com/cutonce/cutonce/internal/config"
	"github.com/cutonce/cutonce/internal/signin"
	"github.com/cutonce/cutonce/policy"
	"github.com/cutonce/cutonce/web"
)

func doctorCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look at a deployment before it serves, and say what to mend",
		Long: "Reads the configuration of serve from the environment and looks at what it names: settings, identity providers and their keys,\n" +
			"clocks, the database's durability and role, migrations, the policy, seals, and the platforms. It changes nothing: the database\n" +
			"is read in a transaction that can only read, and platforms are dialled and told nothing. One line a finding, with what to do.\n\n" +
			"Exit code: 0 nothing failed (there may be warnings), 1 something failed, 2 the configuration is refused, and all that is\n" +
			"wrong with it was listed.",
		Args: exactly(0, "doctor takes no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return examine(cmd.Context(), os.Environ(), cmd.OutOrStdout(), cmd.ErrOrStderr(), asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the report as JSON")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return misused(cmd, err.Error()) })
	return cmd
}

func examine(ctx context.Context, environ []string, out, problems io.Writer, asJSON bool) error {
	settings, err := config.Load(environ)
	if err == nil {
		err = settings.CheckServe()
	}
	if err != nil {
		return said(problems, badConfiguration, err)
	}
	patient, done := deployment(settings)
	defer done()
	lines := out
	if asJSON {
		lines = io.Discard
	}
	report := doctor.Run(ctx, doctor.Checks(patient), func(f doctor.Finding) { fmt.Fprintln(lines, f) })
	if ctx.Err() != nil {
		return context.Canceled
	}
	if asJSON {
		if err := printJSON(out, report); err != nil {
			return err
		}
	}
	fmt.Fprintln(lines, report.Summary())
	if report.Code != 0 {
		return exitCode(report.Code)
	}
	return nil
}

// deployment makes what serve would make of the settings, as far as that asks nobody.
func deployment(settings config.Settings) (d *doctor.Deployment, done func()) {
	quiet := slog.New(slog.DiscardHandler)
	rules := os.DirFS(settings.PolicyDir)
	d = &doctor.Deployment{
		Settings: settings, Tokens: verifierOf(settings, quiet), Rules: rules, Actions: knownActions, Now: time.Now,
		RedirectURL: origin(settings) + web.SignInDone,
	}
	parts := service{blueprint: blueprint{settings: settings, rules: rules, log: quiet}}
	d.Connectors, d.ConnectorsErr = parts.connectors()
	d.Policy, d.PolicyErr = policy.Load(rules)
	d.Key, _, d.KeyErr = sealKey(settings)
	told, _, err := readNotify(settings)
	d.Receivers, d.NotifyErr = len(told.Receivers), err
	if settings.SignIn.ClientID != "" {
		d.SignIn = func(ctx context.Context) (string, error) { return provider(ctx, settings, d.RedirectURL) }
	}
	return d, parts.close
}

// provider asks where people sign in. Nobody is signed in by this.
func provider(ctx context.Context, settings config.Settings, redirect string) (authorize string, err error) {
	s, err := signin.New(signin.Config{
		Issuer: settings.SignInIssuer(), ClientID: settings.SignIn.ClientID, RedirectURL: redirect, Key: make([]byte, 32), Now: time.Now, Rand: rand.Reader,
		Person: func(map[string]any, []string) (actor.Actor, error) { return actor.Actor{}, nil },
	})
	if err != nil {
		return "", err
	}
	return s.Reach(ctx)
}
