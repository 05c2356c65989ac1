package pglocal

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	superuser = "cutonce"
	database  = "cutonce"
	startFor  = 60 * time.Second // crash recovery included
)

// private is a cluster of our own: <Dir>/<Name>/ holds lock, password and server.log (ours) and data (the account's).
type private struct {
	cfg      Config
	bins     Binaries
	account  account
	base     string
	data     string
	password string
	port     int
	lock     *os.File
	server   *server // nil while stopped
}

func openPrivate(ctx context.Context, cfg Config, bins Binaries) (*Cluster, error) {
	if filepath.Base(cfg.Name) != cfg.Name {
		return nil, fmt.Errorf("%q is no name for a cluster: it must be a plain folder name", cfg.Name)
	}
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, err
	}
	p := &private{cfg: cfg, bins: bins, base: filepath.Join(dir, cfg.Name), port: cfg.Port}
	p.data = filepath.Join(p.base, "data")
	if err := p.prepare(ctx); err != nil {
		p.unlock()
		return nil, err
	}
	if err := p.start(ctx); err != nil {
		p.unlock()
		return nil, err
	}
	c := &Cluster{url: p.url(database), private: p, release: p.close}
	c.describe = fmt.Sprintf("private Postgres %s from %s, data in %s", bins.Version, bins.Dir, p.data)
	cfg.Log.InfoContext(ctx, "postgres started", "postgres", c.describe, "port", p.port)
	return c, nil
}

// Stop ends a private server cleanly and keeps its lock and port, so that Start brings the same cluster back.
func (c *Cluster) Stop(ctx context.Context) error { return c.end(ctx, (*server).stop) }

// Kill ends a private server as a crash would: nothing is flushed, clients see a broken connection.
func (c *Cluster) Kill(ctx context.Context) error { return c.end(ctx, (*server).kill) }

func (c *Cluster) end(ctx context.Context, how func(*server, context.Context) error) error {
	if c.private == nil {
		return errors.New("only a private cluster can be stopped")
	}
	return c.private.end(ctx, how)
}

// Start brings a stopped private server back under the same URL.
func (c *Cluster) Start(ctx context.Context) error {
	if c.private == nil {
		return errors.New("only a private cluster can be started")
	}
	return c.private.start(ctx)
}

// prepare leaves a data directory that nobody else uses and that no server runs on.
func (p *private) prepare(ctx context.Context) (err error) {
	if err := errors.Join(ensureDir(filepath.Dir(p.base)), ensureDir(p.base)); err != nil {
		return fmt.Errorf("prepare the Postgres folder: %w", err)
	}
	if p.lock, err = takeLock(p.base, filepath.Join(p.base, "lock")); err != nil {
		return err
	}
	if p.account, err = chooseAccount(p.data); err != nil {
		return err
	}
	if err := p.account.canReach(p.base); err != nil {
		return err
	}
	if p.password, err = keptPassword(filepath.Join(p.base, "password")); err != nil {
		return err
	}
	switch made := madeBy(p.data); made {
	case 0:
		if err := portFree(p.port); err != nil {
			return err // before the long part
		}
		return p.initialize(ctx)
	case p.bins.Major:
		return clearOrphan(ctx, p.data)
	default:
		return fmt.Errorf("%s was made by Postgres %d, but only Postgres %d is installed (%s); install version %d, or move the folder away to start empty",
			p.data, made, p.bins.Major, p.bins.Dir, made)
	}
}

// start brings the server up. An early end is tried again while time is left: a free port may be lost to another process
// between choosing and binding it, and the shared memory of a crashed server takes a moment to go.
func (p *private) start(ctx context.Context) error {
	if p.server != nil && !p.server.ended() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, startFor)
	defer cancel()
	err := portFree(p.port)
	if err != nil {
		return err
	}
	for range 5 {
		if err = p.startOnce(ctx); err == nil {
			return p.ensureDatabase(ctx)
		}
		if !errors.Is(err, errEnded) || ctx.Err() != nil {
			break
		}
	}
	return err
}

var errEnded = errors.New("postgres ended at its start")

func (p *private) startOnce(ctx context.Context) error {
	port := p.port
	if port == 0 {
		free, err := freePort()
		if err != nil {
			return err
		}
		port = free
	}
	log, err := p.freshLog()
	if err != nil {
		return fmt.Errorf("open the server's log: %w", err)
	}
	defer log.Close()
	cmd := p.command("postgres", p.serverArgs(port)...)
	cmd.Stdout, cmd.Stderr = log, log
	s, err := spawn(cmd, p.account, p.lock)
	if err != nil {
		return fmt.Errorf("run postgres: %w", err)
	}
	if err := p.awaitReady(ctx, s, port); err != nil {
		said, _ := os.ReadFile(log.Name())
		return fmt.Errorf("%w; its last words (%s): %s", errors.Join(err, s.kill(context.WithoutCancel(ctx))), log.Name(), lastLines(said))
	}
	p.server, p.port = s, port
	return nil
}

// freshLog keeps the log before, in which a crash may be explained. Logs can hold data, so they are for this user alone.
func (p *private) freshLog() (*os.File, error) {
	path := filepath.Join(p.base, "server.log")
	if err := os.Rename(path, path+".old"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
}

func (p *private) awaitReady(ctx context.Context, s *server, port int) error {
	target := p.urlAt(port, "postgres")
	var last error
	err := poll(ctx, 25*time.Millisecond, func() (bool, error) {
		if s.ended() {
			return false, errEnded
		}
		conn, err := pgx.Connect(ctx, target)
		if err != nil {
			last = err
			return false, nil
		}
		return true, conn.Close(ctx)
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.Join(err, last)
	}
	return err
}

// serverArgs overrides on the command line, so that an old data directory follows a new program. There is no Unix socket:
// its path has a length limit, and a crash would leave it behind.
func (p *private) serverArgs(port int) []string {
	args := []string{"-D", p.data,
		"-c", "listen_addresses=127.0.0.1", "-c", "port=" + strconv.Itoa(port), "-c", "unix_socket_directories=",
		"-c", "max_connections=" + strconv.Itoa(p.cfg.MaxConnections),
		"-c", "timezone=UTC", "-c", "log_timezone=UTC", "-c", "logging_collector=off", "-c", "log_destination=stderr"}
	if p.cfg.Volatile {
		// synchronous_commit stays on, so that its meaning to the program under test does not change.
		args = append(args, "-c", "fsync=off", "-c", "full_page_writes=off")
	}
	for _, name := range sortedKeys(p.cfg.Settings) {
		args = append(args, "-c", name+"="+p.cfg.Settings[name])
	}
	return args
}

func (p *private) ensureDatabase(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, p.url("postgres"))
	if err != nil {
		return fmt.Errorf("connect to the new cluster: %w", err)
	}
	defer conn.Close(ctx)
	var there bool
	if err := conn.QueryRow(ctx, `select exists (select from pg_database where datname = $1)`, database).Scan(&there); err != nil || there {
		return err
	}
	_, err = conn.Exec(ctx, "create database "+pgx.Identifier{database}.Sanitize())
	return err
}

// command runs a program of the installation under the account, with none of our environment and from a folder it may enter.
func (p *private) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(p.bins.Dir, program), args...)
	cmd.Dir = p.base
	cmd.Env = []string{"PATH=" + p.bins.Dir + ":/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = attributes(p.account)
	return cmd
}

func (p *private) url(name string) string { return p.urlAt(p.port, name) }

func (p *private) urlAt(port int, name string) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(superuser, p.password),
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Path: "/" + name, RawQuery: "sslmode=disable"}
	return u.String()
}

func (p *private) end(ctx context.Context, how func(*server, context.Context) error) error {
	if p.server == nil {
		return nil
	}
	if err := how(p.server, ctx); err != nil {
		return err
	}
	p.server = nil
	return nil
}

func (p *private) close(ctx context.Context) error {
	defer p.unlock()
	return p.end(ctx, (*server).stop)
}

func (p *private) unlock() {
	if p.lock != nil {
		p.lock.Close()
	}
}

// portFree also passes 0, any port.
func portFree(port int) error {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("port %d for Postgres is taken: %w", port, err)
	}
	return l.Close()
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

func lastLines(text []byte) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], " | ")
}
