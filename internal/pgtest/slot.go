package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/internal/pglocal"
)

// maxSlots is far above the number of test binaries that run at once.
const maxSlots = 64

// openSlot opens the first private cluster that no other test binary holds. Clusters are kept, so initdb and migrations run
// once and not in every run. Their writes are not synced, so none is trusted after a reboot: the boot is in the name.
func openSlot(ctx context.Context) (*pglocal.Cluster, error) {
	cfg := pglocal.Config{
		Dir:            filepath.Join(os.TempDir(), "cutonce-pgtest-"+strconv.Itoa(os.Geteuid())),
		Cache:          cacheFolder(),
		MaxConnections: 300,
		Volatile:       true,
		Settings:       map[string]string{"shared_buffers": "32MB", "max_wal_size": "256MB", "autovacuum": "off"},
	}
	major, err := askedMajor()
	if err != nil {
		return nil, err
	}
	cfg.Major = major
	kind := fmt.Sprintf("npm%d", major)
	if bins, err := pglocal.Find(ctx, cfg); err == nil {
		kind = bins.Version
	} else if !errors.Is(err, pglocal.ErrNoPostgres) {
		return nil, err
	}
	boot := bootID()
	sweep(cfg.Dir, boot)
	var failed error
	for n := range maxSlots {
		cfg.Name = fmt.Sprintf("%s-%s-%d", boot, kind, n)
		c, err := pglocal.Open(ctx, cfg)
		if err == nil {
			return c, clean(ctx, withDatabase(c.URL(), "postgres"))
		}
		var inUse *pglocal.InUseError
		if !errors.As(err, &inUse) {
			if failed != nil || errors.Is(err, pglocal.ErrNoPostgres) {
				return nil, err
			}
			failed = err // one broken cluster may be bad luck, two are not
		}
	}
	return nil, fmt.Errorf("all %d private test clusters in %s are in use", maxSlots, cfg.Dir)
}

// askedMajor is the major version that the environment asks for, 0 if any will do.
func askedMajor() (int, error) {
	asked := os.Getenv("CUTONCE_TEST_POSTGRES_MAJOR")
	if asked == "" {
		return 0, nil
	}
	major, err := strconv.Atoi(asked)
	if err != nil || major < 1 {
		return 0, fmt.Errorf("CUTONCE_TEST_POSTGRES_MAJOR is %q, which is no major version of Postgres", asked)
	}
	return major, nil
}

func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil || len(id) < 8 {
		return "boot"
	}
	return string(id[:8])
}

// cacheFolder is .cache beside go.mod, empty outside a module.
func cacheFolder() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, ".cache")
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// Of the templates, only the newest few may serve again: each change of the migrations makes a new one.
const leftoversSQL = `
select datname from pg_database where starts_with(datname, $1)
union all
(select datname from pg_database where starts_with(datname, $2) order by oid desc offset 4)`

// clean takes back what earlier users of a cluster that is now ours alone left: databases of killed tests, settings.
func clean(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("connect to the test server: %w", err)
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, leftoversSQL, testPrefix, templatePrefix)
	if err != nil {
		return fmt.Errorf("list leftover databases: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("list leftover databases: %w", err)
	}
	statements := []string{"alter system reset all", "select pg_reload_conf()"}
	for _, name := range names {
		statements = append(statements, "drop database "+ident(name)+" with (force)")
	}
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("clean a kept test server: %w", err)
		}
	}
	return nil
}

// sweep removes the clusters of earlier boots, which nobody can be using.
func sweep(dir, boot string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // not there yet
	}
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), boot+"-") {
			os.RemoveAll(filepath.Join(dir, entry.Name()))
		}
	}
}
