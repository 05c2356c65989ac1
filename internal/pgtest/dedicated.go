package pgtest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cutonce/cutonce/internal/pglocal"
)

// Server is a private server for one test, which may stop it, crash it and start it again.
type Server struct {
	t       testing.TB
	cluster *pglocal.Cluster
	server  *server
}

// NewServer gives the test a server that nothing else uses, whatever TEST_DATABASE_URL says. It ends with the test.
func NewServer(t testing.TB) *Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), setupFor)
	defer cancel()
	cluster, err := openSlot(ctx)
	if err != nil {
		t.Fatalf("pgtest: this test needs a Postgres server of its own: %v", err)
	}
	t.Cleanup(func() {
		if err := cluster.Close(context.WithoutCancel(ctx)); err != nil {
			t.Errorf("pgtest: end the test's server: %v", err)
		}
	})
	return &Server{t: t, cluster: cluster, server: &server{url: withDatabase(cluster.URL(), "postgres"), temporary: true}}
}

// New gives a pool on a fresh database of this server.
func (s *Server) New(options ...Option) *pgxpool.Pool {
	s.t.Helper()
	return pool(s.t, s.URL(options...), options)
}

// URL gives the connection string of a fresh database of this server; it stays the same over Stop and Start.
func (s *Server) URL(options ...Option) string {
	s.t.Helper()
	return s.server.clone(s.t, options...)
}

// Stop shuts the server down cleanly: sessions are ended, connections refused.
func (s *Server) Stop() { s.must("stop", s.cluster.Stop) }

// Crash ends the server as a crash would; the next Start recovers from the log.
func (s *Server) Crash() { s.must("crash", s.cluster.Kill) }

// Start brings the server back and returns when it takes connections. On a running server it does nothing.
func (s *Server) Start() { s.must("start", s.cluster.Start) }

func (s *Server) must(what string, do func(context.Context) error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), setupFor)
	defer cancel()
	if err := do(ctx); err != nil {
		s.t.Fatalf("pgtest: %s the server: %v", what, err)
	}
}
