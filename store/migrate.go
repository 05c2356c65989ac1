package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"io/fs"
	"regexp"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"
	"github.com/pressly/goose/v3/lock"

	"github.com/cutonce/cutonce/internal/canon"
	"github.com/cutonce/cutonce/migrations"
)

// Migrate brings the schema up to this build. Replicas may call it at the same time. It needs a direct connection, not a
// transaction pooler, because it takes a session lock.
func Migrate(ctx context.Context, url string) error { return MigrateVetted(ctx, url, nil) }

// MigrateVetted is Migrate over connections that are vetted before each use, where vet is not nil.
func MigrateVetted(ctx context.Context, url string, vet Vet) error {
	err := withProvider(url, vet, func(p *goose.Provider) error {
		if _, err := p.Up(ctx); err != nil {
			return fmt.Errorf("migrating the database: %w", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return migrateQueue(ctx, url, vet)
}

// Pending reports whether Migrate would change anything.
func Pending(ctx context.Context, url string) (pending bool, err error) {
	err = withProvider(url, nil, func(p *goose.Provider) error {
		if pending, err = p.HasPending(ctx); err != nil {
			return fmt.Errorf("comparing the schema with this version: %w", err)
		}
		return nil
	})
	if err != nil || pending {
		return pending, err
	}
	return queuePending(ctx, url)
}

func withProvider(url string, vet Vet, use func(*goose.Provider) error) error {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return fmt.Errorf("the database URL is not readable")
	}
	config.DefaultQueryExecMode = pgx.QueryExecModeExec // which prepares nothing that would outlast a transaction
	db := sql.OpenDB(stdlib.GetConnector(*config, vet.options()...))
	defer db.Close()
	versions, err := database.NewStore(database.DialectPostgres, migrations.VersionTable)
	if err != nil {
		return fmt.Errorf("preparing migrations: %w", err)
	}
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return fmt.Errorf("preparing the migration lock: %w", err)
	}
	provider, err := goose.NewProvider("", db, migrations.FS, goose.WithStore(versions), goose.WithSessionLocker(locker))
	if err != nil {
		return fmt.Errorf("reading migrations: %w", err)
	}
	return use(provider)
}

// options vet a new connection, and a used one again: one that is refused then is replaced by a new one, whose refusal is told.
func (v Vet) options() []stdlib.OptionOpenDB {
	if v == nil {
		return nil
	}
	return []stdlib.OptionOpenDB{
		stdlib.OptionAfterConnect(v), stdlib.OptionResetSession(func(ctx context.Context, conn *pgx.Conn) error {
			if v(ctx, conn) != nil {
				return driver.ErrBadConn
			}
			return nil
		}),
	}
}

// SchemaHash names this build's schema, for templates of test databases.
func SchemaHash() string {
	names, err := fs.Glob(migrations.FS, "*.sql")
	if err != nil {
		panic(err)
	}
	slices.Sort(names)
	var all []byte
	for _, name := range names {
		text, err := fs.ReadFile(migrations.FS, name)
		if err != nil {
			panic(err)
		}
		all = append(append(all, name...), text...)
	}
	return canon.Sum(all).String()[:16]
}

var createdTable = regexp.MustCompile(`(?m)^create table ([a-z_]+)`)

// OurTables lists the tables of the schema, so that a database with tables of somebody else can be refused.
func OurTables() []string {
	tables := append([]string{migrations.VersionTable}, queueTables...)
	names, _ := fs.Glob(migrations.FS, "*.sql")
	for _, name := range names {
		text, _ := fs.ReadFile(migrations.FS, name)
		for _, m := range createdTable.FindAllSubmatch(text, -1) {
			tables = append(tables, string(m[1]))
		}
	}
	return tables
}
