package pgtest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	testPrefix     = "cutonce_test_"
	templatePrefix = "cutonce_template_"
)

// namer numbers this binary's databases.
type namer struct{ last atomic.Int64 }

func (n *namer) next() string { return fmt.Sprintf("%s%d_%d", testPrefix, os.Getpid(), n.last.Add(1)) }

func (s *server) clone(t testing.TB, options ...Option) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), setupFor)
	defer cancel()
	source, err := s.template(collect(options).template)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	name := s.names.next()
	if err := do(ctx, s.url, "create database "+ident(name)+" template "+ident(source)); err != nil {
		t.Fatalf("pgtest: clone %s: %v", source, err)
	}
	if s.temporary {
		return withDatabase(s.url, name) // its next user drops it; this one may have stopped the server
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), setupFor)
		defer cancel()
		if err := do(ctx, s.url, "drop database if exists "+ident(name)+" with (force)"); err != nil {
			t.Errorf("pgtest: drop %s: %v", name, err)
		}
	})
	return withDatabase(s.url, name)
}

// template gives the name of the database to clone, built at most once per server. No single test's end cancels it.
func (s *server) template(t Template) (string, error) {
	if t.Build == nil {
		return "template0", nil
	}
	name := templateName(t.Name)
	build := sync.OnceValue(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), setupFor)
		defer cancel()
		return buildTemplate(ctx, s.url, name, t.Build)
	})
	shared, _ := s.built.LoadOrStore(name, build)
	return name, shared.(func() error)()
}

func templateName(name string) string {
	h := fnv.New64a()
	h.Write([]byte(name))
	return fmt.Sprintf("%s%016x", templatePrefix, h.Sum64())
}

// buildTemplate builds under another name and renames at the end, so that a template that exists is complete. Test binaries
// that share a server wait for each other at an advisory lock.
func buildTemplate(ctx context.Context, url, name string, build func(context.Context, string) error) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("connect to the test server: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) // and the lock with it
	if _, err := conn.Exec(ctx, `select pg_advisory_lock(hashtext($1))`, name); err != nil {
		return fmt.Errorf("wait for the template's lock: %w", err)
	}
	var there bool
	if err := conn.QueryRow(ctx, `select exists (select from pg_database where datname = $1)`, name).Scan(&there); err != nil || there {
		return err
	}
	draft := name + "_draft"
	if _, err := conn.Exec(ctx, "drop database if exists "+ident(draft)+" with (force)"); err != nil {
		return fmt.Errorf("clear an unfinished template: %w", err)
	}
	if _, err := conn.Exec(ctx, "create database "+ident(draft)+" template template0"); err != nil {
		return fmt.Errorf("create the template: %w", err)
	}
	if err := build(ctx, withDatabase(url, draft)); err != nil {
		return fmt.Errorf("build the template: %w", err)
	}
	return publish(ctx, conn, draft, name)
}

// publish gives the finished template its name. The sessions that built it may take a moment to go.
func publish(ctx context.Context, conn *pgx.Conn, draft, name string) error {
	if _, err := conn.Exec(ctx, "alter database "+ident(draft)+" with allow_connections false"); err != nil {
		return fmt.Errorf("close the template: %w", err)
	}
	for {
		const terminate = `select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = $1`
		if _, err := conn.Exec(ctx, terminate, draft); err != nil {
			return fmt.Errorf("disconnect the template's builders: %w", err)
		}
		_, err := conn.Exec(ctx, "alter database "+ident(draft)+" rename to "+ident(name))
		var refused *pgconn.PgError
		if !errors.As(err, &refused) || refused.Code != "55006" { // object_in_use
			return err
		}
	}
}
