// Package fleet runs real cutonce processes for suites that kill, freeze and cut them off.
//
// It promises processes as users have them (the binary, configured by its environment), a Postgres of its own that can be
// stopped and killed, a counting simulated ad platform in a process of its own, and that all of it ends with Close. It judges
// nothing: that is the suites' work. Start at Start, then Fleet.Serve.
package fleet

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/examples/policies"
	"github.com/cutonce/cutonce/internal/child"
	"github.com/cutonce/cutonce/internal/devissuer"
	"github.com/cutonce/cutonce/internal/pglocal"
	"github.com/cutonce/cutonce/internal/target"
)

// Audience is the service that the fleet's tokens are for, and Tenant whose they are.
const (
	Audience = "cutonce-fleet"
	Tenant   = "acme"
)

// Config says what to run.
type Config struct {
	// Binary is the program; with stops it was built with the tag stops.
	Binary string
	// Postgres overrides how the private cluster is made; its Name and Dir are the fleet's.
	Postgres pglocal.Config
	// Clocks are CUTONCE_CLOCK_ settings of every replica, without the prefix.
	Clocks map[string]string
	// Target are further arguments of the simulated platform, such as --honour-keys.
	Target []string
}

// Fleet is everything that runs.
type Fleet struct {
	Config
	// Dir holds logs and the issuer's key, for this run only.
	Dir     string
	Cluster *pglocal.Cluster
	Issuer  *devissuer.Issuer
	// Ads is the simulated ad platform.
	Ads    target.Control
	Secret string

	rules  string
	closes []func(context.Context)
	made   atomic.Int64
}

// Start runs Postgres, the issuer and the simulated platform. Close ends them, also after an error.
func Start(ctx context.Context, c Config) (*Fleet, error) {
	// Postgres may run under another account than ours, which must be able to enter.
	dir, err := os.MkdirTemp("/var/tmp", "cutonce-fleet-")
	if err != nil {
		return nil, err
	}
	f := &Fleet{Config: c, Dir: dir, Secret: randomHex(), rules: filepath.Join(dir, "policies")}
	f.onClose(func(context.Context) { _ = os.RemoveAll(dir) })
	if err := errors.Join(os.Chmod(dir, 0o755), os.CopyFS(f.rules, policies.FS)); err != nil {
		return f, err
	}
	c.Postgres.Name, c.Postgres.Dir = "fleet", filepath.Join(dir, "postgres")
	if f.Cluster, err = pglocal.Open(ctx, c.Postgres); err != nil {
		return f, err
	}
	f.onClose(func(ctx context.Context) { _ = f.Cluster.Close(ctx) })
	if err := f.startIssuer(); err != nil {
		return f, err
	}
	return f, f.startTarget(ctx)
}

func (f *Fleet) onClose(do func(context.Context)) { f.closes = append(f.closes, do) }

// Close ends everything in the opposite order of its start.
func (f *Fleet) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for i := len(f.closes) - 1; i >= 0; i-- {
		f.closes[i](ctx)
	}
	f.closes = nil
}

func (f *Fleet) startIssuer() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	f.Issuer, err = devissuer.New(devissuer.Config{
		Dir: filepath.Join(f.Dir, "issuer"), URL: "http://" + listener.Addr().String(), Audience: Audience, Tenant: Tenant,
		Now: time.Now, Rand: rand.Reader,
	})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	server := &http.Server{Handler: f.Issuer.Handler(), ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(listener) }() // ends with Close
	f.onClose(func(context.Context) { _ = server.Close() })
	return nil
}

// startTarget starts the simulated ad platform, which outlives every replica: its counters are the witness.
func (f *Fleet) startTarget(ctx context.Context) error {
	address, err := FreeAddress()
	if err != nil {
		return err
	}
	f.Ads = target.Control{BaseURL: "http://" + address, Token: randomHex()}
	log, err := f.log("ads")
	if err != nil {
		return err
	}
	args := append([]string{"target", "ads", "--listen", address, "--quiet", "--until-stdin-closes"}, f.Config.Target...)
	process, err := child.Start(child.Config{
		Path: f.Binary, Args: args, Env: []string{"CUTONCE_TARGET_TOKEN=" + f.Ads.Token}, Log: log,
	})
	if err != nil {
		return err
	}
	f.onClose(func(ctx context.Context) { _ = process.Stop(ctx) })
	return answers(ctx, f.Ads.BaseURL+"/healthz", process)
}

// Database makes one more empty database in the fleet's cluster.
func (f *Fleet) Database(ctx context.Context) (string, error) { return f.Copy(ctx, "") }

// Copy makes one more database that is as another one is now; nobody may be connected to that one meanwhile.
func (f *Fleet) Copy(ctx context.Context, database string) (string, error) {
	at, err := url.Parse(cmp.Or(database, f.Cluster.URL()))
	if err != nil {
		return "", errors.New("the database URL is not readable")
	}
	conn, err := pgx.Connect(ctx, f.Cluster.URL())
	if err != nil {
		return "", fmt.Errorf("connecting to the fleet's Postgres: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	name := fmt.Sprintf("fleet_%d", f.made.Add(1))
	create := "create database " + name
	if database != "" {
		create += " template " + pgx.Identifier{at.Path[1:]}.Sanitize()
	}
	if _, err := conn.Exec(ctx, create); err != nil {
		return "", fmt.Errorf("making a database: %w", err)
	}
	at.Path = "/" + name
	return at.String(), nil
}

// Migrate gives a database the schema, as `cutonce migrate` does.
func (f *Fleet) Migrate(ctx context.Context, database string) error {
	migrate := exec.CommandContext(ctx, f.Binary, "migrate")
	migrate.Env = []string{"CUTONCE_DATABASE_URL=" + database}
	if said, err := migrate.CombinedOutput(); err != nil {
		return fmt.Errorf("migrating: %w: %s", err, said)
	}
	return nil
}

// log is a file for what a process says. It is removed with the fleet's folder.
func (f *Fleet) log(name string) (*os.File, error) {
	log, err := os.Create(filepath.Join(f.Dir, fmt.Sprintf("%s-%d.log", name, f.made.Add(1))))
	if err != nil {
		return nil, err
	}
	f.onClose(func(context.Context) { _ = log.Close() })
	return log, nil
}

// FreeAddress is a loopback address that was free a moment ago.
func FreeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

func randomHex() string {
	raw := make([]byte, 32)
	_, _ = rand.Read(raw) // it never fails: it ends the process instead
	return hex.EncodeToString(raw)
}
