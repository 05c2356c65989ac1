package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/cutonce/cutonce/internal/config"
)

// healthFor is less than what supervisors give a health check.
const healthFor = 3 * time.Second

func healthCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "health [URL]",
		Short: "Ask a running service whether it is well, for a supervisor that can only run a program",
		Long: "Asks the URL, /healthz of the service on this machine (CUTONCE_LISTEN) if none is given, and ends with 0 if it answers 200.\n" +
			"/healthz says that the process runs, /readyz that its database answers too.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return healthy(cmd.Context(), args[0])
			}
			url, err := ownHealth(os.Getenv(config.Prefix + "LISTEN"))
			if err != nil {
				return err
			}
			return healthy(cmd.Context(), url)
		},
	}
}

// ownHealth is where a service that listens on this address is asked from its own machine.
func ownHealth(listen string) (string, error) {
	at, err := net.ResolveTCPAddr("tcp", cmp.Or(listen, defaultListen))
	if err != nil {
		return "", fmt.Errorf("reading CUTONCE_LISTEN: %w", err)
	}
	return "http://" + loopbackOf(at) + "/healthz", nil
}

func healthy(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, healthFor)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		return nil
	}
	const enough = 512
	said, _ := io.ReadAll(io.LimitReader(response.Body, enough)) // only to explain
	return fmt.Errorf("%s answers %s: %s", url, response.Status, said)
}
