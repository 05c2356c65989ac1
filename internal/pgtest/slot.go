package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

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
	kind := "npm"
	if bins, err := pglocal.Find(ctx, cfg); err == nil {
		kind = bins.Version
	} else if !errors.Is(err, pglocal.ErrNoPostgres) {
		return nil, err
	}
	var failed error
	for n := range maxSlots {
		cfg.Name = fmt.Sprintf("%s-%s-%d", bootID(), kind, n)
		c, err := pglocal.Open(ctx, cfg)
		if err == nil {
			return c, dropLeftovers(ctx, withDatabase(c.URL(), "postgres"))
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

func isTestDatabase(name string) bool { return strings.HasPrefix(name, testPrefix) }
