package pgtest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// setupFor bounds each step that a test waits for before it begins; fetching an image is the longest.
const setupFor = 5 * time.Minute

// Option changes what New and URL give.
type Option interface{ apply(*settings) }

type settings struct {
	template Template
	maxConns int32
}

// Template is a database that is built once per server and cloned for each test. Name must change whenever what Build
// makes changes, so it should hold a hash of the migrations. The zero Template is an empty database.
type Template struct {
	Name  string
	Build func(ctx context.Context, url string) error
}

func (t Template) apply(s *settings) { s.template = t }

// MaxConns is the size of the pool that New gives; 10 unless set.
type MaxConns int32

func (n MaxConns) apply(s *settings) { s.maxConns = int32(n) }

// New gives a pool on a fresh database, which is closed and dropped when the test ends.
func New(t testing.TB, options ...Option) *pgxpool.Pool {
	t.Helper()
	return pool(t, URL(t, options...), options)
}

// URL gives the connection string of a fresh database, which is dropped when the test ends, whoever is connected.
func URL(t testing.TB, options ...Option) string {
	t.Helper()
	return shared(t).clone(t, options...)
}

// Admin gives a connection to the shared server's maintenance database, as the role that owns the test databases.
func Admin(t testing.TB) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), shared(t).url)
	if err != nil {
		t.Fatalf("pgtest: connect to the server: %v", err)
	}
	t.Cleanup(func() { conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

// Terminate ends every other session of the pool's database, as a failover or an operator would, and returns their number.
func Terminate(t testing.TB, pool *pgxpool.Pool) int {
	t.Helper()
	const sql = `select count(*) filter (where pg_terminate_backend(pid)) from pg_stat_activity where datname = $1 and pid <> pg_backend_pid()`
	var ended int
	if err := Admin(t).QueryRow(t.Context(), sql, pool.Config().ConnConfig.Database).Scan(&ended); err != nil {
		t.Fatalf("pgtest: terminate sessions: %v", err)
	}
	return ended
}

func pool(t testing.TB, url string, options []Option) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatalf("pgtest: read the database URL: %v", err)
	}
	config.MaxConns = collect(options).maxConns
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatalf("pgtest: open a pool: %v", err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func collect(options []Option) settings {
	s := settings{maxConns: 10}
	for _, o := range options {
		o.apply(&s)
	}
	return s
}

func ident(name string) string { return pgx.Identifier{name}.Sanitize() }

// do runs one statement on a connection of its own.
func do(ctx context.Context, url, sql string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("connect to the test server: %w", err)
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, sql)
	return err
}
