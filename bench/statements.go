package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// preload are the server's settings for -statements.
var preload = map[string]string{
	"shared_preload_libraries": "pg_stat_statements", "pg_stat_statements.track": "all", "pg_stat_statements.track_planning": "on",
}

const sqlStatements = `
select calls, total_exec_time * 1000 / calls, total_plan_time * 1000 / calls, plans, left(regexp_replace(query, '\s+', ' ', 'g'), 110)
from pg_stat_statements where calls > 50 order by total_exec_time + total_plan_time desc limit 40`

// printStatements tells where Postgres spends its time, without what a commit waits for: the disk.
func printStatements(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, `create extension if not exists pg_stat_statements`); err != nil {
		return fmt.Errorf("pg_stat_statements is not installed: %w", err)
	}
	rows, err := conn.Query(ctx, sqlStatements)
	if err != nil {
		return err
	}
	fmt.Println("\nstatements by their time in Postgres: calls, microseconds each to execute and to plan, plans made")
	var calls int64
	var mean, planning float64
	var plans int64
	var text string
	_, err = pgx.ForEachRow(rows, []any{&calls, &mean, &planning, &plans, &text}, func() error {
		fmt.Printf("%8d %8.0f %8.0f %8d  %s\n", calls, mean, planning, plans, text)
		return nil
	})
	return err
}
