package main

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// asNeighbour does what the service does before every statement for a tenant.
const asNeighbour = `select set_config('role', 'cutonce_app', true), set_config('cutonce.tenant', $1, true)`

// withoutCondition runs statements of the service from which the tenant's condition was taken away, as the service would for a tenant that
// has nothing: by the role that serves it, on the service's own database. What one tenant may not see, no statement shows it.
func withoutCondition(w *world) {
	pending, ready := w.pending(), w.ready()
	w.quiet(func() {
		for _, sql := range []string{
			`select p.tenant_id from previews p where p.state = 'pending' order by p.deadline`,
			`select p.tenant_id from previews p left join executions e on e.preview_id = p.id left join audit_events v on v.preview_id = p.id`,
			`select tenant_id from executions union all select tenant_id from attempts union all select tenant_id from decisions
				union all select tenant_id from audit_events union all select tenant_id from sessions union all select tenant_id from seal_leaves`,
			`select tenant_id from previews for update`,
			`update previews set state = 'canceled', ended_at = clock_timestamp(), audit_seq = audit_seq + 1 where state = 'pending' returning tenant_id`,
			`with u as (update executions set needs_operator = true returning tenant_id) select tenant_id from u`,
		} {
			if n, err := w.asTenant(neighbour, sql); err != nil || n != 0 {
				w.fail("%s: %d rows, %v", sql, n, err)
			}
		}
		for _, sql := range []string{
			`select * from seals`, `select * from policies`, `delete from previews`, `delete from audit_events`, `truncate sessions`,
			`update audit_events set body = ''`, `alter table previews no force row level security`, `alter table previews disable trigger user`,
			`insert into sessions (hash, tenant_id, person, actor, expires_at) values ('\x00', 'acme', 'kim', '{}', clock_timestamp() + interval '1 hour')`,
			`insert into controls (tenant_id, audit_head) values ('acme', '\x00')`,
			`update controls set restoring = false where tenant_id = '' returning set_config('role', 'none', true)::int`,
		} {
			n, err := w.asTenant(neighbour, sql)
			var refused *pgconn.PgError
			if errors.As(err, &refused) && (refused.Code == "42501" || refused.Code == "CU001") {
				continue
			}
			if err != nil || n != 0 || !strings.HasPrefix(sql, "update controls") {
				w.fail("%s: %d rows, %v", sql, n, err)
			}
		}
	})
	// The same, for whom the changes are.
	if n, err := w.asTenant("acme", `select id from previews`); err != nil || n < 2 {
		w.fail("its own tenant is shown %d changes, %v", n, err)
	}
	w.approves(pending.PreviewID)
	w.applies(ready.PreviewID)
}

// asTenant runs a statement in a transaction of its own, which is not kept, and counts its rows but for those that name the neighbour, who
// may have some of their own.
func (w *world) asTenant(tenant, sql string) (n int, err error) {
	tx, err := w.db.Begin(w.ctx)
	w.must(err)
	defer func() { _ = tx.Rollback(w.ctx) }()
	_, err = tx.Exec(w.ctx, asNeighbour, tenant)
	w.must(err)
	rows, err := tx.Query(w.ctx, sql, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			return n, err
		}
		if values[0] != neighbour {
			n++
		}
	}
	return n, rows.Err()
}
