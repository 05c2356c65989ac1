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

// sqlQueueGrants gives River's tables to the worker, and to nobody else, but for the versions, which say nothing that is secret: a login
// compares them as itself. A grant that is there already changes nothing.
const sqlQueueGrants = `
do $$
declare what record;
begin
  for what in select c.oid::regclass as name, c.relkind as kind from pg_class c
    where c.relnamespace = current_schema()::regnamespace and c.relname like 'river\_%' and c.relkind in ('r', 'S')
      and not case when c.relkind = 'S' then has_sequence_privilege('cutonce_worker', c.oid, 'usage') and has_sequence_privilege('cutonce_worker', c.oid, 'select')
        else has_table_privilege('cutonce_worker', c.oid, 'delete') end
  loop
    execute format('grant %s on %s %s to cutonce_worker', case what.kind when 'S' then 'usage, select' else 'select, insert, update, delete' end,
      case what.kind when 'S' then 'sequence' else 'table' end, what.name);
  end loop;
  if not has_table_privilege('public', 'river_migration', 'select') then
    grant select on river_migration to public;
  end if;
end $$`

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
		if _, err := lock.Exec(ctx, sqlQueueGrants); err != nil {
			return fmt.Errorf("granting the queue to the worker: %w", err)
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
	c := Config{URL: url, Vet: vet}
	link, err := c.look(ctx)
	if err != nil {
		return err
	}
	pool, err := c.newPool(ctx, link, 2)
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
