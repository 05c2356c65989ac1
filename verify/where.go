package verify

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// sqlWhere says where a session's names lead: the schemas it searches, and the one whose clock it finds first.
const sqlWhere = `
select pg_catalog.current_schemas(false)::pg_catalog.text[], n.nspname::pg_catalog.text
from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
where p.oid = 'clock_timestamp()'::pg_catalog.regprocedure`

const serversOwn = "pg_catalog"

// here refuses a connection that does not work in the scratch schema alone and on the database's own clock.
func (s *scratch) here(ctx context.Context, conn *pgx.Conn) error {
	return s.found(ctx, conn, serversOwn, s.name)
}

// later refuses a connection on which the scratch schema's clock does not stand before the server's.
func (s *scratch) later(ctx context.Context, conn *pgx.Conn) error {
	return s.found(ctx, conn, s.name, s.name, serversOwn)
}

// found compares where a session's names lead with where they should. Whoever drops the start-up parameter search_path puts every
// statement of a run into the user's own tables, so that it is asked before each use of a connection and not only once.
func (s *scratch) found(ctx context.Context, conn *pgx.Conn, clock string, path ...string) error {
	var searched []string
	var ticks string
	if err := conn.QueryRow(ctx, sqlWhere, pgx.QueryExecModeSimpleProtocol).Scan(&searched, &ticks); err != nil {
		return err
	}
	if slices.Equal(searched, path) && ticks == clock {
		return nil
	}
	strayed := &CannotError{Why: "a session of the database searches " + named(searched) + " and not " + named(path) + ", its clock is that of " + ticks +
		": something between drops the start-up parameter search_path, as poolers do. Give verify a direct connection to Postgres in" +
		" CUTONCE_DATABASE_URL"}
	s.strayed.CompareAndSwap(nil, strayed)
	return strayed
}

func named(path []string) string {
	if len(path) == 0 {
		return "no schema"
	}
	return strings.Join(path, ", ")
}
