package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cutonce/cutonce/internal/config"
)

func serveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Run the service in production, configured by the environment",
		Long:  "Runs the service, configured by environment variables. Unknown CUTONCE_ variables are refused.\n\n" + settingsHelp(),
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return serve(cmd.Context(), os.Environ()) },
	}
}

func serve(ctx context.Context, environ []string) error {
	settings, err := config.Load(environ)
	if err != nil {
		return err
	}
	if err := settings.CheckServe(); err != nil {
		return err
	}
	log := jsonLog(settings.LogLevel)
	log.Info("cutonce starts", "version", version, "settings", settings)
	l, err := listen(ctx, settings, "CUTONCE_LISTEN", "CUTONCE_METRICS_LISTEN")
	if err != nil {
		return err
	}
	s, err := build(ctx, blueprint{settings: settings, rules: os.DirFS(settings.PolicyDir), log: log})
	if err != nil {
		l.close()
		return err
	}
	return s.run(ctx, l, func() { log.Info("ready", "listen", l.main.Addr().String(), "url", origin(settings)) })
}

func settingsHelp() string {
	var b strings.Builder
	group := "\x00"
	for _, row := range config.Table() {
		if row.Group != group {
			group = row.Group
			fmt.Fprintf(&b, "\n%s:\n", strings.ToUpper(firstOr(group, "the process")))
		}
		fallback := ""
		if row.Default != "" {
			fallback = " (default " + row.Default + ")"
		}
		fmt.Fprintf(&b, "  %s%s\n%s", row.Name, fallback, wrap(row.Doc, "      ", 110))
	}
	b.WriteString("\nGOGC and GOMEMLIMIT are obeyed; without them the service sets 400, and 1 GiB or four fifths of its container.\n")
	return b.String()
}

func firstOr(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}

func wrap(text, indent string, width int) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(text) {
		switch {
		case column == 0:
			b.WriteString(indent)
			column = len(indent)
		case column+1+len(word) > width:
			b.WriteString("\n" + indent)
			column = len(indent)
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String() + "\n"
}

func jsonLog(level slog.Level) *slog.Logger {
	return slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
}
