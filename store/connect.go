package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Pooler is what stands between this process and Postgres.
type Pooler string

// The poolers. A transaction pooler hands every transaction to whatever session is free: no statement stays prepared there, and nothing
// that is set or locked outlasts its transaction. PgBouncer prepares statements in every session that it uses since 1.21, where
// max_prepared_statements is set, and is as good as none then; so is a session pooler.
const (
	// PoolerAuto looks: where somebody stands between, it is taken for a transaction pooler that prepares nothing.
	PoolerAuto        Pooler = "auto"
	PoolerNone        Pooler = "none"
	PoolerTransaction Pooler = "transaction"
)

// link is how statements travel.
type link struct{ pooled bool }

func (c Config) parse() (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(c.URL)
	if err != nil {
		// The parse error may quote the URL, and the URL holds a password.
		return nil, errors.New("the database URL is not readable: use postgres://user:password@host:port/database")
	}
	config.ConnConfig.RuntimeParams["application_name"] = "cutonce"
	config.ConnConfig.OnNotice = noteWarning
	return config, nil
}

const sqlSession = `select current_setting('transaction_isolation'), pg_backend_pid()`

// look connects once, and refuses a database whose sessions would keep one snapshot for a whole transaction: the second statement of a
// claim must see what was committed while the first one waited for its lock. A start-up parameter would set it, but transaction poolers
// refuse those. A pooler is known by the number of the session, which it makes up for its clients.
func (c Config) look(ctx context.Context) (l link, err error) {
	config, err := c.parse()
	if err != nil {
		return l, err
	}
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return l, passing(fmt.Errorf("connecting to the database: %w", err))
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if c.Vet != nil {
		if err := c.Vet(ctx, conn); err != nil {
			return l, err
		}
	}
	var level string
	var session uint32
	if err := conn.QueryRow(ctx, sqlSession, pgx.QueryExecModeSimpleProtocol).Scan(&level, &session); err != nil {
		return l, passing(fmt.Errorf("connecting to the database: %w", err))
	}
	if level != "read committed" {
		return l, fmt.Errorf("the database's default_transaction_isolation is %q: it must be \"read committed\"", level)
	}
	switch c.Pooler {
	case PoolerNone:
	case PoolerTransaction:
		l.pooled = true
	default:
		l.pooled = session != conn.PgConn().PID()
	}
	return l, nil
}

// Pooled reports whether a connection pooler stands between.
func Pooled(ctx context.Context, url string) (bool, error) {
	l, err := Config{URL: url}.look(ctx)
	return l.pooled, err
}

// newPool makes a pool, which connects when it is used.
func (c Config) newPool(ctx context.Context, l link, size int32, options ...func(*pgxpool.Config)) (*pgxpool.Pool, error) {
	config, err := c.parse()
	if err != nil {
		return nil, err
	}
	config.MaxConns = size
	if l.pooled {
		config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	if c.Vet != nil {
		config.PrepareConn = c.Vet.prepare
	}
	for _, set := range options {
		set(config)
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("making a connection pool: %w", err)
	}
	return pool, nil
}

// prepare is a pool's hook: a connection that was refused is given up.
func (v Vet) prepare(ctx context.Context, conn *pgx.Conn) (bool, error) {
	err := v(ctx, conn)
	return err == nil, err
}
