package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/internal/session"
)

// Sessions keeps the console's sessions beside the changes. A session that has ended is removed when its person signs in
// again. Whose a session is, is known only once it was found: by the hash of its token, and so over all tenants.
type Sessions struct{ *Store }

var _ session.Store = Sessions{}

const sqlPutSession = `
with old as (delete from sessions where tenant_id = @tenant and person = @person and expires_at <= clock_timestamp())
insert into sessions (hash, tenant_id, person, actor, expires_at)
values (@hash, @tenant, @person, @actor, clock_timestamp() + @absolute_for::interval)`

// Put stores a new session.
func (s Sessions) Put(ctx context.Context, r session.Record) error {
	return s.run(ctx, s.pool, "storing a session", sqlPutSession, pgx.NamedArgs{
		"hash": r.Hash[:], "tenant": r.Tenant, "person": r.Person, "actor": r.Actor, "absolute_for": r.AbsoluteFor,
	})
}

const sqlGetSession = `
select actor, clock_timestamp() - last_seen_at from sessions
where hash = @hash and expires_at > clock_timestamp() and last_seen_at + @idle_for::interval > clock_timestamp()`

// Get finds a session that has not ended.
func (s Sessions) Get(ctx context.Context, hash [32]byte, idleFor time.Duration) (actor []byte, idle time.Duration, err error) {
	err = s.worker.read(ctx, sqlGetSession, pgx.NamedArgs{"hash": hash[:], "idle_for": idleFor}, &actor, &idle)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, 0, session.ErrNone
	case err != nil:
		return nil, 0, fmt.Errorf("finding a session: %w", err)
	}
	return actor, idle, nil
}

const sqlTouchSession = `update sessions set last_seen_at = clock_timestamp() where hash = @hash`

// Touch says that the session is in use.
func (s Sessions) Touch(ctx context.Context, hash [32]byte) error {
	return s.run(ctx, s.worker, "keeping a session", sqlTouchSession, pgx.NamedArgs{"hash": hash[:]})
}

const sqlDeleteSession = `delete from sessions where hash = @hash`

// Delete ends a session.
func (s Sessions) Delete(ctx context.Context, hash [32]byte) error {
	return s.run(ctx, s.worker, "ending a session", sqlDeleteSession, pgx.NamedArgs{"hash": hash[:]})
}

const sqlDeleteSessions = `delete from sessions where tenant_id = @tenant and person = @person`

// DeleteAll ends every session of a person.
func (s Sessions) DeleteAll(ctx context.Context, tenant, person string) error {
	return s.run(ctx, s.pool, "ending a person's sessions", sqlDeleteSessions, pgx.NamedArgs{"tenant": tenant, "person": person})
}

func (s Sessions) run(ctx context.Context, pool bounded, doing, sql string, args pgx.NamedArgs) error {
	if err := pool.exec(ctx, sql, args); err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}
