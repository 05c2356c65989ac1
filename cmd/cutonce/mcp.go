package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/cutonce/cutonce/answer"
	"github.com/cutonce/cutonce/internal/bridge"
	"github.com/cutonce/cutonce/internal/catalog"
	"github.com/cutonce/cutonce/internal/config"
)

// The bridge's variables, and no others: an agent's host must not hold what the service holds.
const (
	bridgeURL       = "CUTONCE_URL"
	bridgeToken     = "CUTONCE_TOKEN"
	bridgeTokenFile = "CUTONCE_TOKEN_FILE"
)

type mcpFlags struct{ url, tokenFile, language string }

func mcpCommand() *cobra.Command {
	var f mcpFlags
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve MCP on standard input and output, by asking a running service",
		Long: "For agents' hosts that start their servers as programs. The bridge holds a service's URL (--url or " + bridgeURL + ") and\n" +
			"one token (" + bridgeToken + ", or a file that is read anew for every request: --token-file or " + bridgeTokenFile + ").\n" +
			"It refuses to start if it is given anything that only the service may hold.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runMCP(cmd.Context(), f, os.Environ()) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.url, "url", "", "the service, such as https://cutonce.example (plain http on this machine only)")
	flags.StringVar(&f.tokenFile, "token-file", "", "file that holds the access token")
	flags.StringVar(&f.language, "language", "", "en or ja; if not given, what the token says")
	return cmd
}

func runMCP(ctx context.Context, f mcpFlags, environ []string) error {
	cfg, err := bridgeConfig(f, environ)
	if err != nil {
		return err
	}
	b, err := bridge.New(cfg)
	if err != nil {
		return err
	}
	if err := b.Run(ctx, &mcp.StdioTransport{}); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// bridgeConfig reads flags and environment. Flags win.
func bridgeConfig(f mcpFlags, environ []string) (bridge.Config, error) {
	if names := strangers(environ); len(names) > 0 {
		return bridge.Config{}, fmt.Errorf("an agent's host must not hold what is the service's: unset %s, and start cutonce mcp with %s and %s alone",
			strings.Join(names, ", "), bridgeURL, bridgeToken)
	}
	given := map[string]string{}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		given[name] = value
	}
	url := cmp.Or(f.url, given[bridgeURL])
	if url == "" {
		return bridge.Config{}, errors.New("which service? set " + bridgeURL + " or --url, for example https://cutonce.example")
	}
	token, err := tokenSource(cmp.Or(f.tokenFile, given[bridgeTokenFile]), given[bridgeToken])
	if err != nil {
		return bridge.Config{}, err
	}
	texts, err := catalog.New()
	if err != nil {
		return bridge.Config{}, err
	}
	writer := answer.Writer{Texts: texts.In(f.language)}
	return bridge.Config{
		URL: url, Token: token, Language: f.language, Version: version, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Say: func(refusal error, step bridge.Step) (json.RawMessage, error) {
			body := writer.Fault(refusal)
			body.NextTool, body.NextArguments = step.Tool, step.Arguments
			return json.Marshal(body)
		},
	}, nil
}

// strangers are the product's variables that are none of the bridge's.
func strangers(environ []string) []string {
	return slices.DeleteFunc(config.Given(environ), func(name string) bool {
		return name == bridgeURL || name == bridgeToken || name == bridgeTokenFile
	})
}

// tokenSource reads a file anew for every request, so that whoever renews tokens need not restart the bridge.
func tokenSource(file, token string) (func() (string, error), error) {
	switch {
	case file != "" && token != "":
		return nil, errors.New(bridgeToken + " and a token file are both given: which one?")
	case token != "":
		return func() (string, error) { return token, nil }, nil
	case file == "":
		return nil, errors.New("with which token? set " + bridgeToken + ", or name a file with --token-file or " + bridgeTokenFile)
	}
	read := func() (string, error) {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("reading the token: %w", err)
		}
		if trimmed := strings.TrimSpace(string(text)); trimmed != "" {
			return trimmed, nil
		}
		return "", fmt.Errorf("reading the token: %s is empty", file)
	}
	_, err := read()
	return read, err
}
