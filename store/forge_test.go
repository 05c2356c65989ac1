package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/preview"
)

// forging opens a transaction in which the triggers of the two life tables are off, as only their owner can have it: tests
// use it to set up what the service itself would never write.
func (r *rig) forging(do func(tx pgx.Tx) error) {
	r.t.Helper()
	r.forged = true
	err := pgx.BeginFunc(r.t.Context(), r.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(r.t.Context(), `alter table previews disable trigger user; alter table executions disable trigger user`); err != nil {
			return err
		}
		if err := do(tx); err != nil {
			return err
		}
		_, err := tx.Exec(r.t.Context(), `set constraints all immediate;
			alter table previews enable trigger user; alter table executions enable trigger user`)
		return err
	})
	if err != nil {
		r.t.Fatalf("forging: %v", err)
	}
}

type fields map[string]any

// forgePreview copies a stored preview under a new ID, with some columns changed and a chain of one event.
func forgePreview(ctx context.Context, tx pgx.Tx, from preview.ID, changed fields) (preview.ID, error) {
	id := preview.NewID()
	changed["id"], changed["audit_seq"] = id.UUID().String(), 1
	raw, err := json.Marshal(changed)
	if err != nil {
		return id, err
	}
	_, err = tx.Exec(ctx, `insert into previews select (jsonb_populate_record(p, $2::jsonb)).* from previews p where id = $1`, from.UUID(), raw)
	if err != nil {
		return id, err
	}
	_, err = tx.Exec(ctx, `
		insert into audit_events select $1, 1, tenant_id, 'prepared', 'forged', created_at, '{}', audit_head from previews where id = $1`, id.UUID())
	return id, err
}

// inState is what the CHECKs of previews ask of a state.
func inState(s preview.State) fields {
	now := time.Now().UTC()
	f := fields{"state": s, "requested_at": now, "approved_at": now, "ended_at": nil}
	if s.Final() {
		f["ended_at"] = now
	}
	return f
}

// forgeExecution gives a preview an execution with one finished send.
func forgeExecution(ctx context.Context, tx pgx.Tx, id preview.ID, item int, state commit.State, lease time.Duration) error {
	now := time.Now().UTC()
	f := fields{
		"preview_id": id.UUID().String(), "item": item, "tenant_id": "acme", "target_key": uuid.NewString(), "state": state,
		"current_attempt": uuid.NewString(), "claimed_by": "forged", "started_at": now, "lease_until": now.Add(lease),
		"settle_at": now.Add(lease), "reason": "", "evidence": "", "detail": fields{}, "contradicted": false, "version_before": "",
		"probes": 0, "needs_operator": false, "resolved_by": "", "resolved_why": "",
		"resolvers": 1, "stated": 0,
	}
	switch state {
	case commit.Applied:
		f["finished_at"], f["evidence"] = now, "receipt"
	case commit.NotApplied:
		f["finished_at"], f["evidence"], f["reason"] = now, "lookup", "looked_up"
	}
	raw, err := json.Marshal(f)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `insert into executions select (jsonb_populate_record(null::executions, $1::jsonb)).*`, raw); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		insert into attempts (id, preview_id, item, tenant_id, kind, started_at) values ($1, $2, $3, 'acme', 'send', $4)`,
		f["current_attempt"], id.UUID(), item, now)
	return err
}

// eventSQL adds the next audit event of preview $1 beside an update whose set list comes before it.
const eventSQL = `audit_seq = audit_seq + 1, audit_head = event_hash(audit_head, id, audit_seq + 1, 'raw', 'raw', tenant_id, now(), '{}')
	where id = $1 returning id, tenant_id, audit_seq, audit_head`

// moveSQL changes a preview and writes its event, as the service's statements do.
func moveSQL(set string) string {
	return `with u as (update previews set ` + set + `, ` + eventSQL + `)
		insert into audit_events (preview_id, seq, tenant_id, kind, actor, at, body, hash)
		select id, audit_seq, tenant_id, 'raw', 'raw', now(), '{}', audit_head from u`
}

// sqlState runs statements in one transaction and gives the SQLSTATE with which the database refused them, empty if it did not.
func (r *rig) sqlState(statements ...statement) string {
	r.t.Helper()
	return stateOf(r.t, pgx.BeginFunc(r.t.Context(), r.pool, func(tx pgx.Tx) error {
		for _, s := range statements {
			if _, err := tx.Exec(r.t.Context(), s.sql, s.args...); err != nil {
				return err
			}
		}
		return nil
	}))
}

type statement struct {
	sql  string
	args []any
}

func run(sql string, args ...any) statement { return statement{sql, args} }

func stateOf(t testing.TB, err error) string {
	t.Helper()
	var pg *pgconn.PgError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &pg):
		return pg.Code
	}
	t.Fatalf("not an answer of the database: %v", err)
	return ""
}

func (r *rig) scalar(into any, sql string, args ...any) {
	r.t.Helper()
	if err := r.pool.QueryRow(r.t.Context(), sql, args...).Scan(into); err != nil {
		r.t.Fatalf("%s: %v", sql, err)
	}
}

func (r *rig) exec(sql string, args ...any) {
	r.t.Helper()
	if _, err := r.pool.Exec(r.t.Context(), sql, args...); err != nil {
		r.t.Fatalf("%s: %v", sql, err)
	}
}
