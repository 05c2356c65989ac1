package pglocal

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"time"
)

// What docker-compose.yml uses where the environment says nothing; a test compares the two.
const (
	composeService  = "postgres"
	composePort     = "54330"
	composePassword = "cutonce-dev"
	engineTimeout   = 5 * time.Second
)

// engineAnswers asks the container engine itself: a docker program without an engine behind it is common.
func engineAnswers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, engineTimeout)
	defer cancel()
	return exec.CommandContext(ctx, "docker", "info").Run() == nil
}

func openCompose(ctx context.Context, cfg Config) (*Cluster, error) {
	if _, err := os.Stat(cfg.ComposeFile); err != nil {
		return nil, fmt.Errorf("%w: a container engine answers, but there is no %s here; %s", ErrNoPostgres, cfg.ComposeFile, installHint())
	}
	compose, err := composeCommand(ctx, cfg.ComposeFile)
	if err != nil {
		return nil, err
	}
	running, err := compose(ctx, "ps", "--quiet", "--status", "running", composeService)
	if err != nil {
		return nil, err
	}
	if _, err := compose(ctx, "up", "-d", "--wait", composeService); err != nil {
		return nil, err
	}
	c := &Cluster{url: composeURL()}
	if len(bytes.TrimSpace(running)) == 0 { // who started it stops it
		c.release = func(ctx context.Context) error {
			_, err := compose(ctx, "stop", composeService)
			return err
		}
	}
	version, err := serverVersion(ctx, c.url)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reach the container's Postgres: %w", err), c.Close(context.WithoutCancel(ctx)))
	}
	c.describe = fmt.Sprintf("Postgres %s in a container (service %q of %s)", version, composeService, cfg.ComposeFile)
	return c, nil
}

// composeCommand prefers the plugin and takes the older stand-alone program.
func composeCommand(ctx context.Context, file string) (func(context.Context, ...string) ([]byte, error), error) {
	words := []string{"docker", "compose"}
	if exec.CommandContext(ctx, words[0], words[1], "version").Run() != nil {
		words = []string{"docker-compose"}
		if _, err := exec.LookPath(words[0]); err != nil {
			return nil, fmt.Errorf("%w: a container engine answers, but it has no compose; %s", ErrNoPostgres, installHint())
		}
	}
	return func(ctx context.Context, args ...string) ([]byte, error) {
		all := append(append(words[1:len(words):len(words)], "-f", file), args...)
		var said bytes.Buffer
		cmd := exec.CommandContext(ctx, words[0], all...)
		cmd.Stderr = &said
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("docker compose %s (%w): %s", args[0], err, lastLines(said.Bytes()))
		}
		return out, nil
	}, nil
}

func composeURL() string {
	u := url.URL{Scheme: "postgres", Path: "/" + database, RawQuery: "sslmode=disable",
		User: url.UserPassword(superuser, cmp.Or(os.Getenv("CUTONCE_POSTGRES_PASSWORD"), composePassword)),
		Host: net.JoinHostPort("127.0.0.1", cmp.Or(os.Getenv("CUTONCE_POSTGRES_PORT"), composePort))}
	return u.String()
}
