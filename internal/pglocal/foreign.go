package pglocal

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// ForeignTablesError says that a database holds tables that are not ours, so that it must not be migrated.
type ForeignTablesError struct {
	Database string
	Tables   []string // as schema.table, all of them
}

func (e *ForeignTablesError) Error() string {
	shown := e.Tables
	if len(shown) > 3 {
		shown = shown[:3]
	}
	text := strings.Join(shown, ", ")
	if more := len(e.Tables) - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("database %q holds tables that are not cutonce's (%s); create an empty database (createdb cutonce) and name that one", e.Database, text)
}

// Tables that belong to an extension are the extension's affair, not somebody's data.
const tablesSQL = `
select n.nspname, c.relname, current_database()
from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'p', 'f')
  and n.nspname <> 'information_schema' and n.nspname not like 'pg\_%'
  and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype = 'e')
order by 1, 2`

// RefuseForeign returns a [*ForeignTablesError] if the database holds a table that ours does not claim. An empty
// database passes. It only reads.
func RefuseForeign(ctx context.Context, databaseURL string, ours func(schema, table string) bool) error {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return fmt.Errorf("connect to look for foreign tables: %w", err)
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, tablesSQL, pgx.QueryExecModeExec) // which prepares nothing, as a pooler may want it
	if err != nil {
		return fmt.Errorf("list the tables: %w", err)
	}
	foreign := &ForeignTablesError{}
	var schema, table string
	_, err = pgx.ForEachRow(rows, []any{&schema, &table, &foreign.Database}, func() error {
		if !ours(schema, table) {
			foreign.Tables = append(foreign.Tables, schema+"."+table)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("list the tables: %w", err)
	}
	if len(foreign.Tables) > 0 {
		return foreign
	}
	return nil
}
