package store

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// QueueVersion is the version of River's schema.
const QueueVersion = 8

// queueTables are those of River, the queue of deliveries. Their schema is River's own, and comes with its module.
var queueTables = []string{"river_migration", "river_job", "river_leader", "river_queue", "river_notification"}

// sqlQueueLock lets one replica at a time bring River's tables up to this build. It ends with its session.
const sqlQueueLock = `select pg_advisory_lock(hashtextextended('cutonce.queue', 0))`

// migrateQueue brings River's tables up to this build.
func migrateQueue(ctx context.Context, url string, vet Vet) error {
	return withQueue(ctx, url, vet, func(m *rivermigrate.Migrator[pgx.Tx], pool *pgxpool.Pool) error {
		lock, err := pool.Acquire(ctx)
		if err != nil {
			return fmt.Errorf("connecting to migrate the queue: %w", err)
		}
		defer func() { _ = lock.Hijack().Close(context.WithoutCancel(ctx)) }() // and the lock with it
		if _, err := lock.Exec(ctx, sqlQueueLock); err != nil {
			return fmt.Errorf("waiting to migrate the queue: %w", err)
		}
		if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
			return fmt.Errorf("migrating the queue: %w", err)
		}
		return nil
	})
}

// queuePending reports whether migrateQueue would change anything.
func queuePending(ctx context.Context, url string) (pending bool, err error) {
	err = withQueue(ctx, url, nil, func(m *rivermigrate.Migrator[pgx.Tx], _ *pgxpool.Pool) error {
		found, err := m.Validate(ctx, nil)
		if err != nil {
			return fmt.Errorf("comparing the queue's schema with this version: %w", err)
		}
		pending = !found.OK
		return nil
	})
	return pending, err
}

func withQueue(ctx context.Context, url string, vet Vet, use func(*rivermigrate.Migrator[pgx.Tx], *pgxpool.Pool) error) error {
	pool, err := newPool(ctx, Config{URL: url, Vet: vet}, 2)
	if err != nil {
		return err
	}
	defer pool.Close()
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		return fmt.Errorf("preparing to migrate the queue: %w", err)
	}
	return use(migrator, pool)
}
