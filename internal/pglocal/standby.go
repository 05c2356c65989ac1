package pglocal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5"
)

// ErrNoBaseBackup: the installation has a server and no pg_basebackup, so that it can make no standby.
var ErrNoBaseBackup = errors.New("this Postgres has no pg_basebackup, with which a standby is made")

// Standby makes a second private cluster that follows this one, under the same account and password, and starts it. name tells it
// apart under the same folder; port is its own, 0 for any free one. It gives itself its name towards the primary, so that the
// primary's synchronous_standby_names can ask for it. Whoever made it must call Close.
func (c *Cluster) Standby(ctx context.Context, name string, port int) (*Cluster, error) {
	if c.private == nil {
		return nil, errors.New("only a private cluster has a standby")
	}
	primary := c.private
	if _, err := os.Stat(filepath.Join(primary.bins.Dir, "pg_basebackup")); err != nil {
		return nil, fmt.Errorf("%w (%s)", ErrNoBaseBackup, primary.bins.Dir)
	}
	cfg := primary.cfg
	cfg.Name, cfg.Port = name, port
	p := &private{cfg: cfg, bins: primary.bins, base: filepath.Join(filepath.Dir(primary.base), name), port: port, account: primary.account}
	p.data, p.password = filepath.Join(p.base, "data"), primary.password
	if err := p.follow(ctx, primary); err != nil {
		p.unlock()
		return nil, fmt.Errorf("make a standby: %w", err)
	}
	if err := p.start(ctx); err != nil {
		p.unlock()
		return nil, err
	}
	describe := fmt.Sprintf("private Postgres %s, a standby, data in %s", p.bins.Version, p.data)
	return &Cluster{url: p.url(database), describe: describe, private: p, release: p.close}, nil
}

// follow copies the primary's data while it runs, and leaves in it how to follow.
func (p *private) follow(ctx context.Context, primary *private) (err error) {
	if err := ensureDir(p.base); err != nil {
		return err
	}
	if p.lock, err = takeLock(p.base, filepath.Join(p.base, "lock")); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(p.base, "password"), []byte(p.password+"\n"), 0o600); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(p.data), os.Mkdir(p.data, 0o700), p.account.own(p.data)); err != nil {
		return err
	}
	from, err := url.Parse(primary.url("postgres"))
	if err != nil {
		return errors.New("the primary's URL is not readable")
	}
	from.User = url.User(superuser) // the password is in the environment: others can read arguments
	query := from.Query()
	query.Set("application_name", p.cfg.Name)
	from.RawQuery = query.Encode()
	cmd := p.command("pg_basebackup", "-D", p.data, "-R", "-X", "stream", "-c", "fast", "-d", from.String())
	cmd.Env = append(cmd.Env, "PGPASSWORD="+p.password)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	s, err := spawn(cmd, p.account, p.lock)
	if err != nil {
		return err
	}
	select {
	case <-s.done:
	case <-ctx.Done():
		return errors.Join(ctx.Err(), s.kill(context.WithoutCancel(ctx)))
	}
	if s.err != nil {
		return fmt.Errorf("pg_basebackup failed (%w): %s", s.err, lastLines(said.Bytes()))
	}
	return nil
}

// Promote makes a standby a primary and returns when it takes writes.
func (c *Cluster) Promote(ctx context.Context) error {
	if c.private == nil {
		return errors.New("only a private cluster can be promoted")
	}
	conn, err := pgx.Connect(ctx, c.private.url("postgres"))
	if err != nil {
		return fmt.Errorf("reach the standby: %w", err)
	}
	defer conn.Close(ctx)
	var promoted bool
	if err := conn.QueryRow(ctx, `select pg_promote(true, 60)`).Scan(&promoted); err != nil || !promoted {
		return fmt.Errorf("promote the standby: it was promoted: %v (%w)", promoted, err)
	}
	return nil
}

// Crash ends a private server's first process with SIGKILL, as a machine that is gone. The others end when they notice.
func (c *Cluster) Crash(ctx context.Context) error {
	return c.end(ctx, func(s *server, ctx context.Context) error {
		if s.signal(ctx, os.Kill, immediateFor) {
			return nil
		}
		return fmt.Errorf("postgres (process %d) does not end", s.process.Pid)
	})
}
