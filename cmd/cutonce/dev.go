package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/cutonce/cutonce/examples/policies"
	"github.com/cutonce/cutonce/internal/config"
	"github.com/cutonce/cutonce/internal/instance"
	"github.com/cutonce/cutonce/internal/pglocal"
	"github.com/cutonce/cutonce/store"
)

type devFlags struct {
	listen, metricsListen, adsListen, deploysListen string
	adsURL, deploysURL                              string
	stateDir, postgresDir                           string
	postgresPort                                    int
	openIssuer                                      bool
}

func devCommand() *cobra.Command {
	var f devFlags
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run everything on this machine: Postgres, simulated platforms, the service, invented people",
		Long: "Runs a whole instance for development and prints how to use it. Postgres is, in this order: CUTONCE_DATABASE_URL;\n" +
			"a private cluster from local binaries ($PGBIN, PATH, /usr/lib/postgresql); one from npm's binaries; the compose file's.\n" +
			"Keys and data survive a restart; the simulated platforms forget. CUTONCE_LISTEN, CUTONCE_METRICS_LISTEN,\n" +
			"CUTONCE_PUBLIC_URL, CUTONCE_POLICY_DIR, CUTONCE_DATABASE_POOL, CUTONCE_LOG_LEVEL, CUTONCE_DRAIN and CUTONCE_CLOCK_…\n" +
			"work as with serve. Ctrl-C drains and ends all that was started.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return dev(cmd.Context(), f, os.Environ(), printer{cmd.OutOrStdout()})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", "", "address of console, MCP and API (default "+defaultListen+", or CUTONCE_LISTEN)")
	flags.StringVar(&f.metricsListen, "metrics-listen", "", "address of /metrics (default "+defaultMetricsListen+", or CUTONCE_METRICS_LISTEN); off for none")
	flags.StringVar(&f.adsListen, "ads-listen", defaultAdsListen, "address of the simulated ad platform")
	flags.StringVar(&f.deploysListen, "deploys-listen", defaultDeploysListen, "address of the simulated deployment platform")
	flags.StringVar(&f.adsURL, "ads-url", "", "take the simulated ad platform that runs there instead; "+targetToken+" is its credential")
	flags.StringVar(&f.deploysURL, "deploys-url", "", "take the simulated deployment platform that runs there instead, with the same credential")
	flags.IntVar(&f.postgresPort, "postgres-port", defaultPostgresPort, "port of a private Postgres on 127.0.0.1; 0 for any free one")
	flags.StringVar(&f.stateDir, "state-dir", ".cutonce", "folder for keys and data")
	flags.StringVar(&f.postgresDir, "postgres-dir", "", "folder for a private Postgres (default: in the state folder; /var/lib/cutonce for root, whose folders are closed to the account that Postgres runs as)")
	flags.BoolVar(&f.openIssuer, "open-dev-issuer", false, "let other machines use the development sign-in: whoever reaches the port is everyone (for containers)")
	return cmd
}

// development is one running development instance.
type development struct {
	flags    devFlags
	settings config.Settings
	out      printer
	log      *slog.Logger
	dir      *instance.Dir
	postgres *pglocal.Cluster
	// ads and deploys are the simulated platforms.
	ads, deploys *simulator
	began        time.Time
}

func dev(ctx context.Context, f devFlags, environ []string, out printer) (err error) {
	d := &development{flags: f, out: out, began: time.Now()}
	if d.settings, err = devSettings(f, environ); err != nil {
		return err
	}
	d.log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: d.settings.LogLevel}))
	if d.dir, err = instance.Open(f.stateDir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.dir.Close()) }()
	l, err := listen(ctx, d.settings, "--listen or CUTONCE_LISTEN", "--metrics-listen or CUTONCE_METRICS_LISTEN")
	if err != nil {
		return err
	}
	defer l.close()
	d.reachableAt(l)
	if err := d.dir.Announce(origin(d.settings)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.end(ctx)) }()
	return d.serve(ctx, l)
}

// devSettings are the environment's settings with the flags above them. What dev brings itself is refused from outside: a
// half-used production configuration would be a surprise.
func devSettings(f devFlags, environ []string) (config.Settings, error) {
	s, err := config.Load(environ)
	if err != nil {
		return s, err
	}
	if f.listen != "" {
		s.Listen = f.listen
	}
	if f.metricsListen != "" {
		s.MetricsListen = f.metricsListen
	}
	var problems config.Problems
	for name, given := range map[string]bool{
		"CUTONCE_SECRET": s.Secret != "", "CUTONCE_ISSUER_URL": s.Issuer.URL != "", "CUTONCE_ISSUER2_URL": s.Issuer2.URL != "",
		"CUTONCE_ISSUER3_URL": s.Issuer3.URL != "", "CUTONCE_AUDIENCES": len(s.Audiences) > 0, "CUTONCE_ADS_URL": s.Ads.URL != "",
		"CUTONCE_ADS_TOKEN": s.Ads.Token != "", "CUTONCE_ADS_SYSTEM": s.Ads.System != "",
		"CUTONCE_DEPLOYS_URL": s.Deploys.URL != "", "CUTONCE_DEPLOYS_TOKEN": s.Deploys.Token != "", "CUTONCE_DEPLOYS_SYSTEM": s.Deploys.System != "",
	} {
		if given {
			problems = append(problems, name+" is set, but cutonce dev brings its own: unset it, or run cutonce serve")
		}
	}
	if len(problems) > 0 { // all at once, and in one order whatever the map's
		slices.Sort(problems)
		return s, append(problems, "if .cutonce/env was read into this shell: it is for the other commands, so use another shell here")
	}
	s.Migrate = true
	return s, s.Check()
}

// reachableAt takes the addresses from what was opened, which may have been any free port.
func (d *development) reachableAt(l listeners) {
	if d.settings.PublicURL == "" {
		d.settings.PublicURL = "http://" + loopbackOf(l.main.Addr())
	}
	if l.metrics != nil {
		d.settings.MetricsListen = loopbackOf(l.metrics.Addr())
	}
}

// serve starts Postgres and the platforms, then the service upon them, and runs until ctx ends.
func (d *development) serve(ctx context.Context, l listeners) error {
	if err := d.startPostgres(ctx); err != nil {
		return err
	}
	if err := d.startPlatforms(ctx); err != nil {
		return err
	}
	secret, err := d.dir.Kept("secret", rand.Reader)
	if err != nil {
		return err
	}
	d.settings.Secret = config.Secret(secret)
	cast, err := openCast(d.dir.Path, "http://"+loopbackOf(l.main.Addr()), origin(d.settings), d.flags.openIssuer)
	if err != nil {
		return err
	}
	d.settings.Issuer = cast.settings()
	s, err := build(ctx, blueprint{settings: d.settings, rules: d.rules(), log: d.log, dev: cast.door()})
	if err != nil {
		return err
	}
	watch, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go d.watchPostgres(watch, cancel)
	err = s.run(watch, l, func() { d.out.instance(d, cast) })
	if cause := context.Cause(watch); ctx.Err() == nil && cause != nil {
		err = errors.Join(cause, err)
	}
	return err
}

func (d *development) rules() fs.FS {
	if d.settings.PolicyDir != "" {
		return os.DirFS(d.settings.PolicyDir)
	}
	return policies.FS
}

// startPostgres finds or starts a database that holds nothing of anybody else.
func (d *development) startPostgres(ctx context.Context) error {
	id, err := d.dir.Kept("instance", rand.Reader)
	if err != nil {
		return err
	}
	cfg := pglocal.Config{
		URL: string(d.settings.DatabaseURL), Dir: d.flags.postgresDir, Name: "dev-" + shortHash(id), Cache: ".cache", Port: d.flags.postgresPort, Log: d.log,
	}
	if cfg.Dir == "" && os.Geteuid() != 0 {
		cfg.Dir = d.dir.File("postgres")
	}
	if _, err := os.Stat("docker-compose.yml"); err == nil {
		cfg.ComposeFile = "docker-compose.yml"
	}
	if d.postgres, err = pglocal.Open(ctx, cfg); err != nil {
		return fmt.Errorf("Postgres: %w", d.portHint(err))
	}
	d.settings.DatabaseURL = config.Secret(d.postgres.URL())
	known := store.OurTables()
	return pglocal.RefuseForeign(ctx, d.postgres.URL(), func(_, table string) bool { return slices.Contains(known, table) })
}

func (d *development) portHint(err error) error {
	if errors.Is(err, errAddressTaken) {
		return fmt.Errorf("%w; stop what listens there, or choose another: --postgres-port (0 for any free one)", err)
	}
	return err
}

func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}

// watchPostgres ends the instance if its private server ends under it: nothing would work, and the reason should be seen.
func (d *development) watchPostgres(ctx context.Context, cancel context.CancelCauseFunc) {
	select {
	case <-ctx.Done():
	case <-d.postgres.Done():
		cancel(errors.New("the private Postgres ended by itself"))
	}
}

func (d *development) startPlatforms(ctx context.Context) (err error) {
	if d.ads, err = d.startPlatform(ctx, "ads", d.flags.adsURL, d.flags.adsListen, &d.settings.Ads); err != nil {
		return err
	}
	d.deploys, err = d.startPlatform(ctx, "deploys", d.flags.deploysURL, d.flags.deploysListen, &d.settings.Deploys)
	return err
}

// startPlatform starts a simulator, or takes the one that runs at the URL, and configures the service for it.
func (d *development) startPlatform(ctx context.Context, name, url, listen string, t *config.Target) (s *simulator, err error) {
	token := os.Getenv(targetToken)
	if url != "" {
		s, err = foreignSimulator(ctx, name, url, token)
	} else if token, err = d.dir.Kept(name+"-token", rand.Reader); err == nil {
		s, err = startSimulator(ctx, name, listen, d.dir.File(name+"-token"), d.log)
	}
	if err != nil {
		return nil, err
	}
	t.URL, t.Token, t.System, t.Sandbox, t.AllowPlainHTTP = s.url, config.Secret(token), name+".example/dev", true, url != ""
	return s, nil
}

const endFor = 15 * time.Second

// end stops what was started, the last first. It is called after the service has let go of both.
func (d *development) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endFor)
	defer cancel()
	var err error
	for _, s := range []*simulator{d.deploys, d.ads} {
		if s != nil {
			err = errors.Join(err, s.stop(ctx))
		}
	}
	if d.postgres != nil {
		err = errors.Join(err, d.postgres.Close(ctx))
	}
	return err
}
