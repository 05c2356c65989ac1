package pgtest

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"sync"
	"testing"

	"github.com/cutonce/cutonce/internal/pglocal"
)

// server is where this test binary's databases live.
type server struct {
	url       string // of its maintenance database
	describe  string
	temporary bool             // ends with the test
	cluster   *pglocal.Cluster // kept for as long as the binary runs; nil if the server is not ours
	names     namer
	built     sync.Map // template name → func() error, which builds it once
}

var sharedServer = sync.OnceValues(func() (*server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), setupFor)
	defer cancel()
	return choose(ctx)
})

var announce sync.Once

func shared(t testing.TB) *server {
	t.Helper()
	s, err := sharedServer()
	if err != nil {
		t.Fatalf("pgtest: these tests need a real Postgres: %v", err)
	}
	announce.Do(func() { t.Logf("pgtest: using %s", s.describe) })
	return s
}

func choose(ctx context.Context) (*server, error) {
	if os.Getenv("CUTONCE_TEST_POSTGRES_MAJOR") != "" {
		return inSlot(ctx, "")
	}
	if given := os.Getenv("TEST_DATABASE_URL"); given != "" {
		c, err := pglocal.Open(ctx, pglocal.Config{URL: given})
		if err != nil {
			return nil, fmt.Errorf("TEST_DATABASE_URL: %w", err)
		}
		return &server{url: given, describe: c.Describe()}, nil
	}
	note := ""
	if wanted := os.Getenv("CUTONCE_TEST_CONTAINERS"); wanted != "0" && (wanted == "1" || engineAnswers(ctx)) {
		s, err := inContainer(ctx, cmp.Or(os.Getenv("CUTONCE_TEST_POSTGRES_IMAGE"), defaultImage))
		if err == nil || wanted == "1" {
			return s, err
		}
		note = fmt.Sprintf(" (a container engine answers, but: %v)", err)
	}
	return inSlot(ctx, note)
}

func inSlot(ctx context.Context, note string) (*server, error) {
	c, err := openSlot(ctx)
	if err != nil {
		return nil, err
	}
	return &server{url: withDatabase(c.URL(), "postgres"), describe: c.Describe() + note, cluster: c}, nil
}

func withDatabase(server, name string) string {
	u, err := url.Parse(server)
	if err != nil {
		return server
	}
	u.Path = "/" + name
	return u.String()
}
