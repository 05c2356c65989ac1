package store

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// grant is what the two roles may do with a table: what their statements need, and no more. cutonce_app has no delete but for freezes,
// approvers and sessions, which are no record; no role may truncate, or update what is only ever added to.
type grant struct{ app, worker string }

// grants are those of the migrations, by which a database is examined. A test compares the two.
var grants = map[string]grant{
	"previews":              {app: "insert select update", worker: "delete select update"},
	"executions":            {app: "insert select update", worker: "delete select update"},
	"attempts":              {app: "insert select update", worker: "delete select"},
	"decisions":             {app: "insert select", worker: "delete select"},
	"audit_events":          {app: "insert select", worker: "delete insert select"},
	"resolutions":           {app: "insert select", worker: "delete select"},
	"restore_holds":         {app: "select update", worker: "insert select update"},
	"tombstones":            {app: "select", worker: "insert select"},
	"sessions":              {app: "delete insert select", worker: "delete select update"},
	"cap_ledgers":           {app: "insert select update", worker: "select"},
	"cap_reservations":      {app: "insert select update", worker: "select"},
	"controls":              {app: "insert select update", worker: "insert select update"},
	"control_events":        {app: "insert select", worker: "insert select"},
	"freezes":               {app: "delete insert select update", worker: "delete insert select update"},
	"removed_approvers":     {app: "delete insert select update", worker: "select"},
	"policies":              {worker: "insert select"},
	"seals":                 {worker: "insert select"},
	"seal_leaves":           {app: "select", worker: "insert select"},
	"notify_place":          {worker: "insert select update"},
	"notify_told":           {worker: "delete insert select"},
	"preview_transitions":   {app: "select", worker: "select"},
	"execution_transitions": {app: "select", worker: "select"},
	"cutonce_migrations":    {app: "select", worker: "select"},
}

// unwalled are the tables that hold nobody's rows: the schema's own, and versions. River's are granted to the worker only.
var unwalled = []string{"preview_transitions", "execution_transitions", "cutonce_migrations"}

// Wall is what keeps tenants apart in a database, whatever a statement asks for.
type Wall struct {
	// There: both roles are. Takes: the login may take them. Inherits: it sees every tenant without taking any.
	There, Takes, Inherits bool
	// Loose are roles that can do more than they may.
	Loose []string
	// Open are tables that row-level security does not guard, or not for every role.
	Open []string
	// Missing are rights that the roles need and do not have, such as "decisions (cutonce_app: insert)".
	Missing []string
}

const sqlWallRoles = `
select count(*) = 2, coalesce(bool_and(pg_has_role(current_user, oid, @takes)), false),
  coalesce(bool_or(pg_has_role(current_user, oid, 'usage') and rolname = 'cutonce_worker'), false),
  coalesce(array_agg(rolname::text order by rolname) filter (where rolsuper or rolbypassrls or rolcreaterole or rolcreatedb
    or rolname = 'cutonce_app' and exists (select from pg_roles w where w.rolname = 'cutonce_worker' and pg_has_role(r.oid, w.oid, 'member'))), '{}')
from pg_roles r where rolname in ('cutonce_app', 'cutonce_worker')`

const sqlWallTables = `
select c.relname::text, c.relrowsecurity and c.relforcerowsecurity and not exists (
    select from pg_policy p where p.polrelid = c.oid and p.polname not in ('own_tenant', 'every_tenant', 'everybodys'))
    and coalesce((select p.polroles = array[r.oid] from pg_policy p, pg_roles r
      where p.polrelid = c.oid and p.polname = 'every_tenant' and r.rolname = 'cutonce_worker'), false)
    and coalesce((select p.polroles = array[r.oid] and pg_get_expr(p.polqual, p.polrelid) like '%cutonce.tenant%' and p.polwithcheck is null
      from pg_policy p, pg_roles r where p.polrelid = c.oid and p.polname = 'own_tenant' and r.rolname = 'cutonce_app'), true),
  coalesce((select string_agg(k, ' ') from unnest(array['select', 'insert', 'update', 'delete']) k, pg_roles r
    where r.rolname = 'cutonce_app' and has_table_privilege(r.oid, c.oid, k)), ''),
  coalesce((select string_agg(k, ' ') from unnest(array['select', 'insert', 'update', 'delete']) k, pg_roles r
    where r.rolname = 'cutonce_worker' and has_table_privilege(r.oid, c.oid, k)), '')
from pg_class c where c.relkind = 'r' and c.relnamespace = current_schema()::regnamespace and c.relname = any(@tables) order by 1`

// readWall looks at the wall of a schema that is this build's.
func (f *Facts) readWall(ctx context.Context, tx pgx.Tx) error {
	takes := "member"
	if f.Version >= 160000 {
		takes = "set"
	}
	w := &Wall{}
	err := tx.QueryRow(ctx, sqlWallRoles, pgx.NamedArgs{"takes": takes}).Scan(&w.There, &w.Takes, &w.Inherits, &w.Loose)
	if err != nil {
		return err
	}
	rows, err := tx.Query(ctx, sqlWallTables, pgx.NamedArgs{"tables": slices.Sorted(maps.Keys(grants))})
	if err != nil {
		return err
	}
	var table, app, worker string
	var guarded bool
	_, err = pgx.ForEachRow(rows, []any{&table, &guarded, &app, &worker}, func() error {
		if !guarded && !slices.Contains(unwalled, table) {
			w.Open = append(w.Open, table)
		}
		w.miss(table, "cutonce_app", grants[table].app, app)
		w.miss(table, "cutonce_worker", grants[table].worker, worker)
		return nil
	})
	f.Wall = w
	return err
}

func (w *Wall) miss(table, role, wants, has string) {
	var missing []string
	for _, right := range strings.Fields(wants) {
		if !slices.Contains(strings.Fields(has), right) {
			missing = append(missing, right)
		}
	}
	if len(missing) > 0 {
		w.Missing = append(w.Missing, table+" ("+role+": "+strings.Join(missing, ", ")+")")
	}
}
