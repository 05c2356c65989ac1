package pglocal

import (
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
	c := &Cluster{url: composeURL()}
	version, err := serverVersion(ctx, c.url)
	if err != nil { // not up yet, so that who starts it stops it
		c.release = func(ctx context.Context) error { return compose(ctx, "stop", composeService) }
		if version, err = composeUp(ctx, compose, c.url); err != nil {
			return nil, errors.Join(err, c.Close(context.WithoutCancel(ctx)))
		}
	}
	c.describe = fmt.Sprintf("Postgres %s in a container (service %q of %s)", version, composeService, cfg.ComposeFile)
	return c, nil
}

// composeUp waits by asking the server itself, as the older compose has no --wait.
func composeUp(ctx context.Context, compose composer, url string) (version string, err error) {
	if err := compose(ctx, "up", "-d", composeService); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, startFor)
	defer cancel()
	var last error
	err = poll(ctx, 100*time.Millisecond, func() (bool, error) {
		version, last = serverVersion(ctx, url)
		return last == nil, nil
	})
	if err != nil {
		return "", fmt.Errorf("wait for the container's Postgres (%w): %w", err, last)
	}
	return version, nil
}

// composer runs one compose command on the file.
type composer func(ctx context.Context, args ...string) error

// composeCommand prefers the plugin and takes the older stand-alone program.
func composeCommand(ctx context.Context, file string) (composer, error) {
	words := []string{"docker", "compose"}
	if exec.CommandContext(ctx, words[0], words[1], "version").Run() != nil {
		words = []string{"docker-compose"}
		if _, err := exec.LookPath(words[0]); err != nil {
			return nil, fmt.Errorf("%w: a container engine answers, but it has no compose; %s", ErrNoPostgres, installHint())
		}
	}
	return func(ctx context.Context, args ...string) error {
		all := append(append(words[1:len(words):len(words)], "-f", file), args...)
		if said, err := exec.CommandContext(ctx, words[0], all...).CombinedOutput(); err != nil {
			return fmt.Errorf("docker compose %s (%w): %s", args[0], err, lastLines(said))
		}
		return nil
	}, nil
}

func composeURL() string {
	u := url.URL{Scheme: "postgres", Path: "/" + database, RawQuery: "sslmode=disable",
		User: url.UserPassword(superuser, cmp.Or(os.Getenv("CUTONCE_POSTGRES_PASSWORD"), composePassword)),
		Host: net.JoinHostPort("127.0.0.1", cmp.Or(os.Getenv("CUTONCE_POSTGRES_PORT"), composePort))}
	return u.String()
}
