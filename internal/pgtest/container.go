package pgtest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/modules/postgres"
)

const (
	defaultImage = "postgres:17.10"
	probeFor     = 500 * time.Millisecond
)

// engineAnswers pings the engine's socket, which costs nothing where there is none.
func engineAnswers(ctx context.Context) bool {
	for _, address := range engineAddresses() {
		if pings(ctx, address) {
			return true
		}
	}
	return false
}

func engineAddresses() []string {
	if host := os.Getenv("DOCKER_HOST"); host != "" {
		return []string{host}
	}
	addresses := []string{"unix:///var/run/docker.sock"}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		addresses = append(addresses, "unix://"+filepath.Join(dir, "docker.sock"))
	}
	if home, err := os.UserHomeDir(); err == nil {
		addresses = append(addresses, "unix://"+filepath.Join(home, ".docker/run/docker.sock"))
	}
	return addresses
}

func pings(ctx context.Context, address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	network, at := "tcp", u.Host
	if u.Scheme == "unix" {
		network, at = "unix", u.Path
	}
	client := http.Client{Timeout: probeFor, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{Timeout: probeFor}).DialContext(ctx, network, at)
		},
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://engine/_ping", nil)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// inContainer starts one container for this test binary; testcontainers' own reaper removes it afterwards.
func inContainer(ctx context.Context, image string) (*server, error) {
	c, err := postgres.Run(ctx, image,
		postgres.WithUsername("cutonce"), postgres.WithPassword("cutonce-test"), postgres.WithDatabase("cutonce"),
		testcontainers.WithCmd("postgres", "-c", "max_connections=300", "-c", "fsync=off", "-c", "full_page_writes=off"),
		postgres.BasicWaitStrategies())
	if err != nil {
		return nil, fmt.Errorf("start %s in a container: %w", image, err)
	}
	at, err := c.ConnectionString(ctx, "sslmode=disable")
	if err != nil {
		return nil, fmt.Errorf("find the container's port: %w", err)
	}
	return &server{url: withDatabase(at, "postgres"), describe: "Postgres in a container of " + image}, nil
}
