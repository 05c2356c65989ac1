package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/audit"
	"github.com/cutonce/cutonce/migrations"
)

// Facts are what a database and the role that connects to it are like.
type Facts struct {
	// Version is the server's, such as 170002.
	Version        int
	VersionText    string
	Database, Role string
	// Now is the database's clock, between Asked and Answered by the caller's.
	Now, Asked, Answered time.Time
	// Settings are the server's own words, by the names of Postgres.
	Settings map[string]string
	// Standby: the server is in recovery, or its sessions may only read.
	Standby, ReadOnly bool
	// Near: the server is this machine, by a socket or loopback. TLS: the connection is encrypted.
	Near, TLS                                 bool
	Superuser, CreatesDatabases, CreatesRoles bool
	BypassesRowSecurity                       bool
	OwnsDatabase, OwnsTables                  bool
	// CreatesTables: the role may change the schema.
	CreatesTables bool
	// Limit is how many connections the role may have here, Used how many there are now, of everybody.
	Limit, Used int
	// Followers are standbys that are attached.
	Followers int
	// Applied and Known are the newest migration of the database, 0 if there is none, and of this build.
	Applied, Known int64
	// Foreign are tables that are not ours.
	Foreign []string
	// What follows is known only where Applied is Known.
	Wall *Wall
	// The rest also asks for a login that may take the worker's role.
	Policy    string
	Before    bool // the policy that was asked about has been in force before
	Restoring bool
	Last      *audit.Seal
	Witnessed *audit.Seal // the seal of the number that was asked about
}

// Question says what Inspect looks for.
type Question struct {
	URL string
	// Policy is a version that may have been in force before.
	Policy string
	// Seal is the number of a seal.
	Seal int64
	Now  func() time.Time
}

// inspectFor bounds an inspection.
const inspectFor = 20 * time.Second

// Inspect reads what a database is like, by one connection and in a transaction that can only read. It migrates nothing.
func Inspect(ctx context.Context, q Question) (f Facts, err error) {
	ctx, cancel := context.WithTimeout(ctx, inspectFor)
	defer cancel()
	config, err := pgx.ParseConfig(q.URL)
	if err != nil {
		return f, errors.New("the database URL is not readable: use postgres://user:password@host:port/database")
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeExec // which prepares nothing, as a pooler may want it
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return f, fmt.Errorf("connecting to the database: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := f.readClock(ctx, conn, q.Now); err != nil {
		return f, err
	}
	err = pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error { return f.readAll(ctx, tx, q) })
	if err != nil {
		return f, fmt.Errorf("looking at the database: %w", err)
	}
	return f, nil
}

func (f *Facts) readClock(ctx context.Context, conn *pgx.Conn, clock func() time.Time) error {
	f.Asked = clock()
	if err := conn.QueryRow(ctx, `select clock_timestamp()`).Scan(&f.Now); err != nil {
		return fmt.Errorf("reading the database's clock: %w", err)
	}
	f.Answered = clock()
	return nil
}

func (f *Facts) readAll(ctx context.Context, tx pgx.Tx, q Question) error {
	for _, read := range []func(context.Context, pgx.Tx) error{f.readServer, f.readSettings, f.readRole, f.readTables, f.readSchema} {
		if err := read(ctx, tx); err != nil {
			return err
		}
	}
	if f.Applied != f.Known {
		return nil
	}
	if err := f.readWall(ctx, tx); err != nil || !f.Wall.There || !f.Wall.Takes {
		return err
	}
	if err := asWorker(ctx, tx, sqlAsWorker); err != nil {
		return err
	}
	return f.readControls(ctx, tx, q)
}

const sqlServerFacts = `
select current_setting('server_version_num')::int, current_setting('server_version'), current_database(), current_user,
  pg_is_in_recovery(), current_setting('default_transaction_read_only') = 'on',
  coalesce((select ssl from pg_stat_ssl where pid = pg_backend_pid()), false),
  coalesce(inet_server_addr() <<= '127.0.0.0/8' or inet_server_addr() = '::1', true),
  (select count(*) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()),
  (select count(*) from pg_stat_replication)`

func (f *Facts) readServer(ctx context.Context, tx pgx.Tx) error {
	return tx.QueryRow(ctx, sqlServerFacts).Scan(&f.Version, &f.VersionText, &f.Database, &f.Role, &f.Standby, &f.ReadOnly, &f.TLS, &f.Near, &f.Used, &f.Followers)
}

const sqlSettingFacts = `
select name, setting from pg_settings where name in ('fsync', 'synchronous_commit', 'full_page_writes', 'synchronous_standby_names',
  'default_transaction_isolation', 'TimeZone', 'max_connections', 'superuser_reserved_connections', 'reserved_connections')`

func (f *Facts) readSettings(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, sqlSettingFacts)
	if err != nil {
		return err
	}
	f.Settings = map[string]string{}
	var name, value string
	_, err = pgx.ForEachRow(rows, []any{&name, &value}, func() error { f.Settings[name] = value; return nil })
	return err
}

const sqlRoleFacts = `
select r.rolsuper, r.rolcreatedb, r.rolcreaterole, r.rolbypassrls, d.datdba = r.oid,
  has_schema_privilege(coalesce(current_schema(), 'public'), 'create'),
  least(nullif(r.rolconnlimit, -1), nullif(d.datconnlimit, -1))
from pg_roles r, pg_database d where r.rolname = current_user and d.datname = current_database()`

func (f *Facts) readRole(ctx context.Context, tx pgx.Tx) error {
	var limit *int
	err := tx.QueryRow(ctx, sqlRoleFacts).Scan(&f.Superuser, &f.CreatesDatabases, &f.CreatesRoles, &f.BypassesRowSecurity, &f.OwnsDatabase, &f.CreatesTables, &limit)
	if err != nil {
		return err
	}
	f.Limit = f.number("max_connections")
	if !f.Superuser {
		f.Limit -= f.number("superuser_reserved_connections") + f.number("reserved_connections")
	}
	if limit != nil {
		f.Limit = min(f.Limit, *limit)
	}
	return nil
}

func (f *Facts) number(setting string) int {
	n, _ := strconv.Atoi(f.Settings[setting])
	return n
}

// Tables that belong to an extension are the extension's affair.
const sqlTableFacts = `
select n.nspname, c.relname, pg_has_role(c.relowner, 'usage') and not (select rolsuper from pg_roles where rolname = current_user)
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p', 'f') and n.nspname <> 'information_schema' and n.nspname not like 'pg\_%'
  and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
order by 1, 2`

func (f *Facts) readTables(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, sqlTableFacts)
	if err != nil {
		return err
	}
	ours := OurTables()
	var schema, table string
	var owns bool
	_, err = pgx.ForEachRow(rows, []any{&schema, &table, &owns}, func() error {
		switch known := slices.Contains(ours, table); {
		case !known && !strings.HasPrefix(schema, "cutonce_verify_"):
			f.Foreign = append(f.Foreign, schema+"."+table)
		case known:
			f.OwnsTables = f.OwnsTables || owns
		}
		return nil
	})
	return err
}

const (
	sqlSchemaThere   = `select to_regclass('cutonce_migrations') is not null`
	sqlQueueThere    = `select to_regclass('river_migration') is not null`
	sqlQueueBehind   = `select coalesce(max(version), 0) < @version from river_migration where line = 'main'`
	sqlSchemaApplied = `select coalesce(max(version_id), 0) from cutonce_migrations where is_applied`
)

func (f *Facts) readSchema(ctx context.Context, tx pgx.Tx) error {
	f.Known = newestMigration()
	var there bool
	if err := tx.QueryRow(ctx, sqlSchemaThere).Scan(&there); err != nil || !there {
		return err
	}
	if err := tx.QueryRow(ctx, sqlSchemaApplied).Scan(&f.Applied); err != nil || f.Applied < f.Known {
		return err
	}
	var behind bool
	if err := tx.QueryRow(ctx, sqlQueueThere).Scan(&there); err != nil {
		return err
	}
	if there {
		if err := tx.QueryRow(ctx, sqlQueueBehind, pgx.NamedArgs{"version": QueueVersion}).Scan(&behind); err != nil {
			return err
		}
	}
	if !there || behind {
		f.Applied = f.Known - 1 // the queue's tables come with the last step of a migration
	}
	return nil
}

// newestMigration is the number of this build's last one.
func newestMigration() (newest int64) {
	names, _ := fs.Glob(migrations.FS, "*.sql")
	for _, name := range names {
		number, _, _ := strings.Cut(name, "_")
		if n, err := strconv.ParseInt(number, 10, 64); err == nil {
			newest = max(newest, n)
		}
	}
	return newest
}

const sqlControlFacts = `
select policy_version, restoring, exists (select from policies where version = @policy) from controls where tenant_id = ''`

func (f *Facts) readControls(ctx context.Context, tx pgx.Tx, q Question) error {
	err := tx.QueryRow(ctx, sqlControlFacts, pgx.NamedArgs{"policy": q.Policy}).Scan(&f.Policy, &f.Restoring, &f.Before)
	if err != nil {
		return err
	}
	if f.Last, err = sealIf(tx.QueryRow(ctx, sqlLastSeal)); err != nil {
		return err
	}
	f.Witnessed, err = sealIf(tx.QueryRow(ctx, sqlSealAt, pgx.NamedArgs{"number": q.Seal}))
	return err
}
