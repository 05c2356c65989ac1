package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/audit"
)

//go:embed load.sql
var loadSQL string

const (
	slice   = 20_000
	loaders = 2
)

// fill stores n changes and leaves the database as autovacuum would.
func fill(ctx context.Context, database string, n int) (described string, err error) {
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	var model uuid.UUID
	if err := conn.QueryRow(ctx, `select preview_id from executions where state = 'applied'`).Scan(&model); err != nil {
		return "", fmt.Errorf("finding the model: %w", err)
	}
	indexes, err := setAside(ctx, conn)
	if err != nil {
		return "", err
	}
	if err := storeAll(ctx, database, n, model); err != nil {
		return "", err
	}
	for _, sql := range append(indexes, `vacuum (analyze)`, `checkpoint`) {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return "", err
		}
	}
	if err := verify(ctx, conn); err != nil {
		return "", err
	}
	return describe(ctx, conn)
}

// secondary are the indexes that no constraint rests on. Building them once at the end is much cheaper than keeping them up.
const secondary = `
select format('drop index %I', i.relname), pg_get_indexdef(i.oid)
from pg_index x join pg_class i on i.oid = x.indexrelid join pg_class r on r.oid = x.indrelid
where r.relname in ('previews', 'executions', 'attempts', 'decisions', 'audit_events') and not x.indisunique`

// setAside drops them, and returns what makes them again.
func setAside(ctx context.Context, conn *pgx.Conn) (again []string, err error) {
	rows, err := conn.Query(ctx, secondary)
	if err != nil {
		return nil, err
	}
	type index struct{ Drop, Make string }
	indexes, err := pgx.CollectRows(rows, pgx.RowToStructByPos[index])
	if err != nil {
		return nil, err
	}
	for _, i := range indexes {
		if _, err := conn.Exec(ctx, i.Drop); err != nil {
			return nil, err
		}
		again = append(again, i.Make)
	}
	return again, nil
}

// storeAll writes the slices over a few connections. Durability comes with the checkpoint at the end.
func storeAll(ctx context.Context, database string, n int, model uuid.UUID) error {
	slices := make(chan int)
	failed := make([]error, loaders)
	var working sync.WaitGroup
	for worker := range loaders {
		working.Go(func() {
			conn, err := pgx.Connect(ctx, database)
			if err != nil {
				failed[worker] = err
			} else {
				defer conn.Close(ctx)
			}
			for from := range slices {
				if failed[worker] == nil {
					failed[worker] = storeSlice(ctx, conn, from, min(from+slice-1, n), n, model)
				}
			}
		})
	}
	for from := 1; from <= n; from += slice {
		slices <- from
	}
	close(slices)
	working.Wait()
	return errors.Join(failed...)
}

func storeSlice(ctx context.Context, conn *pgx.Conn, from, to, n int, model uuid.UUID) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `set local session_replication_role = replica; set local synchronous_commit = off; set local work_mem = '128MB'`); err != nil {
			return err
		}
		// Several statements at once take no arguments; these are numbers and an ID of our own.
		text := strings.NewReplacer("@from", strconv.Itoa(from), "@to", strconv.Itoa(to), "@n", strconv.Itoa(n), "@model", "'"+model.String()+"'::uuid").Replace(loadSQL)
		_, err := tx.Exec(ctx, text)
		return err
	})
}

const sampled = `
select v.preview_id, v.seq, v.tenant_id, v.kind, v.actor, v.at, v.body, v.hash from audit_events v
where v.preview_id in (select id from previews order by input_hash limit 300) order by v.preview_id, v.seq`

// verify recomputes some chains in Go, so that what is stored is no dummy.
func verify(ctx context.Context, conn *pgx.Conn) error {
	rows, err := conn.Query(ctx, sampled)
	if err != nil {
		return err
	}
	events, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (e audit.Event, err error) {
		return e, r.Scan(&e.Preview, &e.Seq, &e.Tenant, &e.Kind, &e.Actor, &e.At, &e.Body, &e.Hash)
	})
	if err != nil {
		return err
	}
	for first := 0; first < len(events); {
		next := first
		for next < len(events) && events[next].Preview == events[first].Preview {
			next++
		}
		if err := audit.Verify(events[first:next]); err != nil {
			return fmt.Errorf("a stored chain does not verify: %w", err)
		}
		first = next
	}
	return nil
}

func describe(ctx context.Context, conn *pgx.Conn) (string, error) {
	var previews, events, executions int
	var size string
	err := conn.QueryRow(ctx, `
		select (select count(*) from previews), (select count(*) from audit_events), (select count(*) from executions),
		  pg_size_pretty(pg_database_size(current_database()))`).Scan(&previews, &events, &executions, &size)
	return fmt.Sprintf("%d previews, %d audit events, %d executions: %s", previews, events, executions, size), err
}
