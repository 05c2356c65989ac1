package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/internal/pglocal"
	"github.com/cutonce/cutonce/test/fleet"
)

// pair is a primary and its synchronous standby, on two ports that stay the same while the roles change hands.
type pair struct {
	ports            [2]int
	primary, standby *pglocal.Cluster
	// at is whose port the primary has.
	at       int
	database string
}

// newPair takes the fleet's cluster for the first primary.
func newPair(ctx context.Context, f *fleet.Fleet) (*pair, error) {
	first, err := f.Database(ctx)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(first)
	if err != nil {
		return nil, errors.New("the database's URL is not readable")
	}
	own, err1 := strconv.Atoi(u.Port())
	spare, err2 := fleet.FreeAddress()
	_, port, err3 := net.SplitHostPort(spare)
	other, err4 := strconv.Atoi(port)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	return &pair{ports: [2]int{own, other}, primary: f.Cluster, database: u.Path}, nil
}

// url names both, so that a client finds whichever takes writes.
func (p *pair) url() (string, error) {
	u, err := url.Parse(p.primary.URL())
	if err != nil {
		return "", errors.New("the primary's URL is not readable")
	}
	u.Host = fmt.Sprintf("127.0.0.1:%d,127.0.0.1:%d", p.ports[0], p.ports[1])
	u.Path = p.database
	query := u.Query()
	query.Set("target_session_attrs", "read-write")
	u.RawQuery = query.Encode()
	return u.String(), nil
}

// follow makes a standby on the port that is free, and returns once the primary acknowledges nothing without it.
func (p *pair) follow(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	free := 1 - p.at
	if p.standby, err = p.primary.Standby(ctx, "node-"+string("ab"[free]), p.ports[free]); err != nil {
		return err
	}
	for _, sql := range []string{`alter system set synchronous_standby_names = '*'`, `select pg_reload_conf()`} {
		if err := p.exec(ctx, sql); err != nil {
			return err
		}
	}
	return fleet.Until(ctx, "a synchronous standby", func() bool {
		var state string
		err := p.ask(ctx, `select coalesce(max(sync_state), '') from pg_stat_replication where state = 'streaming'`, &state)
		return err == nil && state == "sync"
	})
}

// lose ends the primary as a machine that is gone. It does not come back: its data is thrown away with the next standby there.
func (p *pair) lose(ctx context.Context) error { return p.primary.Crash(ctx) }

// promote makes the standby the primary.
func (p *pair) promote(ctx context.Context) error {
	if err := p.standby.Promote(ctx); err != nil {
		return err
	}
	gone := p.primary
	p.primary, p.standby, p.at = p.standby, nil, 1-p.at
	return gone.Close(ctx)
}

func (p *pair) close(ctx context.Context) {
	for _, c := range []*pglocal.Cluster{p.standby, p.primary} {
		if c != nil {
			_ = c.Close(ctx)
		}
	}
}

// connect goes to the primary's own database.
func (p *pair) connect(ctx context.Context) (*pgx.Conn, error) {
	u, err := url.Parse(p.primary.URL())
	if err != nil {
		return nil, errors.New("the primary's URL is not readable")
	}
	u.Path = p.database
	return pgx.Connect(ctx, u.String())
}

func (p *pair) exec(ctx context.Context, sql string) error {
	conn, err := p.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, sql)
	return err
}

func (p *pair) ask(ctx context.Context, sql string, into any, args ...any) error {
	conn, err := p.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	return conn.QueryRow(ctx, sql, args...).Scan(into)
}
