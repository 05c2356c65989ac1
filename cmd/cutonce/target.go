package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/cutonce/cutonce/internal/child"
	"github.com/cutonce/cutonce/internal/httpserve"
	"github.com/cutonce/cutonce/internal/target"
)

func targetCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "target",
		Short: "Simulated systems to change, for development, tests and the demo",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(
		simulatorCommand("ads", "A simulated ad platform: campaigns, budgets, scripted faults, counters", defaultAdsListen, newAds),
		simulatorCommand("deploys", "A simulated deployment platform: services, deployments, scripted faults, counters", defaultDeploysListen, newDeploys),
	)
	return cmd
}

func newAds(seed int64, c target.PlatformConfig) http.Handler {
	return target.NewAds(target.AdsConfig{Seed: seed, PlatformConfig: c})
}

func newDeploys(seed int64, c target.PlatformConfig) http.Handler {
	return target.NewDeploys(target.DeploysConfig{Seed: seed, PlatformConfig: c})
}

// targetToken is where a simulator's credential may come from. It is not one of the service's settings.
const targetToken = "CUTONCE_TARGET_TOKEN"

type simulatorFlags struct {
	listen, tokenFile string
	seed              int64
	honourKeys        bool
	keyTTL            time.Duration
	untilStdinCloses  bool
	quiet             bool
}

type newPlatform func(seed int64, c target.PlatformConfig) http.Handler

func simulatorCommand(name, short, listen string, platform newPlatform) *cobra.Command {
	var f simulatorFlags
	cmd := &cobra.Command{
		Use:   name,
		Short: short,
		Long: short + ".\n\nA simulator, not a product's API: a real HTTP server with seeded data, versions, permissions, a log that names\n" +
			"the human, scripted faults and counters of effects. It forgets everything when it ends. Its API is documented in\n" +
			"the package internal/target.\n\nThe bearer credential comes from --token-file or " + targetToken + ".",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return simulate(cmd.Context(), name, f, platform) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", listen, "address to listen on")
	flags.StringVar(&f.tokenFile, "token-file", "", "file that holds the bearer credential")
	flags.Int64Var(&f.seed, "seed", 1, "decides the generated data")
	flags.BoolVar(&f.honourKeys, "honour-keys", false, "answer a repeated idempotency key with the first answer")
	flags.DurationVar(&f.keyTTL, "key-ttl", 24*time.Hour, "how long an answer is kept for its key")
	flags.BoolVar(&f.quiet, "quiet", false, "log nothing but problems")
	flags.BoolVar(&f.untilStdinCloses, "until-stdin-closes", false, "end when standard input closes (for a parent process)")
	return cmd
}

func simulate(ctx context.Context, name string, f simulatorFlags, platform newPlatform) error {
	token, err := simulatorToken(f.tokenFile)
	if err != nil {
		return err
	}
	listener, err := httpserve.Listen(ctx, f.listen, "the simulated platform", "--listen")
	if err != nil {
		return err
	}
	if f.untilStdinCloses {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		go func() { child.WaitFor(os.Stdin); cancel() }()
	}
	level := slog.LevelInfo
	if f.quiet {
		level = slog.LevelWarn
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})).With("simulator", name)
	log.Info("the simulated platform listens", "url", "http://"+listener.Addr().String())
	return target.Serve(ctx, listener, platform(f.seed, target.PlatformConfig{
		Token: token, HonourKeys: f.honourKeys, KeyTTL: f.keyTTL, Clock: time.Now, Log: log,
	}))
}

func simulatorToken(file string) (string, error) {
	if file == "" {
		if token := os.Getenv(targetToken); token != "" {
			return token, nil
		}
		return "", errors.New("the simulator needs a credential that its callers must show: --token-file or " + targetToken)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("reading the simulator's credential: %w", err)
	}
	if token := strings.TrimSpace(string(text)); token != "" {
		return token, nil
	}
	return "", fmt.Errorf("%s is empty: it must hold the simulator's credential", file)
}
