package main

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ctrlrun is another product's write pattern rebuilt: sixteen single commits a cycle (4 to prepare, 2 to approve, 10 to apply),
// half of which append to one chain and so meet at one row. It computes, checks and sends nothing: an upper bound.
type ctrlrun struct{ pool *pgxpool.Pool }

const sqlCtrlrunSchema = `
create table action (id uuid primary key, state text not null, body jsonb not null);
create table step (id bigint generated always as identity primary key, action_id uuid not null, kind text not null, body jsonb not null);
create table chain (id int primary key, seq bigint not null, head bytea not null);
create table event (seq bigint primary key, action_id uuid not null, body bytea not null, hash bytea not null);
insert into chain values (1, 0, '\x00')`

const (
	sqlCtrlrunInsert = `insert into action (id, state, body) values ($1, 'prepared', $2)`
	sqlCtrlrunStep   = `insert into step (action_id, kind, body) values ($1, 'step', $2)`
	sqlCtrlrunEnd    = `update action set state = 'applied' where id = $1 and $2::jsonb is not null`
	sqlCtrlrunEvent  = `
with c as (
  update chain set seq = seq + 1, head = sha256(head || convert_to($2::jsonb::text, 'UTF8')) where id = 1 returning seq, head
)
insert into event (seq, action_id, body, hash) select seq, $1, convert_to($2::jsonb::text, 'UTF8'), head from c`
)

// ctrlrunCycle is the order of the commits.
var ctrlrunCycle = []string{
	sqlCtrlrunInsert, sqlCtrlrunEvent, sqlCtrlrunStep, sqlCtrlrunEvent,
	sqlCtrlrunStep, sqlCtrlrunEvent,
	sqlCtrlrunStep, sqlCtrlrunEvent, sqlCtrlrunStep, sqlCtrlrunEvent, sqlCtrlrunStep, sqlCtrlrunEvent, sqlCtrlrunStep, sqlCtrlrunEvent,
	sqlCtrlrunEnd, sqlCtrlrunEvent,
}

func newCtrlrun(ctx context.Context, url string) (*ctrlrun, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.MaxConns = poolSize
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	if _, err := pool.Exec(ctx, sqlCtrlrunSchema); err != nil {
		return nil, err
	}
	return &ctrlrun{pool: pool}, nil
}

func (c *ctrlrun) name() string { return "ctrlrun" }

func (c *ctrlrun) client(context.Context, int) (func(context.Context) error, error) {
	return func(ctx context.Context) error {
		id := uuid.Must(uuid.NewV7())
		for _, sql := range ctrlrunCycle {
			tag, err := c.pool.Exec(ctx, sql, id, bareRuling)
			if err != nil || tag.RowsAffected() != 1 {
				return errors.Join(errors.New("a commit of the rebuilt pattern did nothing"), err)
			}
		}
		return nil
	}, nil
}

func (c *ctrlrun) effects(ctx context.Context) (n int, err error) {
	return n, c.pool.QueryRow(ctx, `select count(*) from action where state = 'applied'`).Scan(&n)
}

func (c *ctrlrun) close(context.Context) { c.pool.Close() }
