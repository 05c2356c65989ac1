package verify

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/cutonce/cutonce/internal/fault"
)

// stranger is the requester's namesake in another tenant.
const stranger = "cutonce-verify-neighbour"

// byWhom is the SQLSTATE of the trigger below, which a run sets up in its own schema and takes away again.
const byWhom = "CU900"

const (
	sqlAskByWhom = `
create function verify_by_whom() returns trigger language plpgsql as $$
begin
  if current_user not in ('cutonce_app', 'cutonce_worker') then
    raise exception 'a change is stored as %, whom no wall between tenants binds', current_user using errcode = 'CU900';
  end if;
  return new;
end $$;
create trigger verify_by_whom before insert on previews for each row execute function verify_by_whom()`
	sqlAskNoMore = `drop trigger verify_by_whom on previews; drop function verify_by_whom`

	// sqlForWhom is what the service says before its statements for a tenant; what comes after has lost its condition.
	sqlForWhom      = `select set_config('role', 'cutonce_app', true), set_config('cutonce.tenant', $1, true)`
	sqlNoCondition  = `select (select count(*) from previews) + (select count(*) from executions) + (select count(*) from attempts) + (select count(*) from audit_events) + (select count(*) from decisions)`
	sqlMovesAnybody = `with u as (update previews set end_reason = end_reason, audit_seq = audit_seq + 1 returning id) select count(*) from u`
)

var tenants = Check{
	ID: "tenants", Promise: "No tenant is shown or moves what is another's, even where a statement forgets to ask for its tenant",
	Run: func(ctx context.Context, b *bench) (Proof, error) {
		if _, err := b.sql.Exec(ctx, sqlAskByWhom); err != nil {
			return Proof{}, err
		}
		defer func() { _, _ = b.sql.Exec(context.WithoutCancel(ctx), sqlAskNoMore) }()
		p, err := b.prepare(ctx, "tenants")
		var refused *pgconn.PgError
		if errors.As(err, &refused) && refused.Code == byWhom {
			return Proof{}, fail("%s", refused.Message)
		}
		if err != nil {
			return Proof{}, err
		}
		other := agent
		other.Tenant = stranger
		if _, err := b.core.commits.Status(ctx, other, p.ID, 0, false); !errors.Is(err, fault.NotFound) {
			return Proof{}, fail("another tenant's agent of the same name was answered %v, want not_found", err)
		}
		own, err := b.countAs(ctx, tenant, sqlNoCondition)
		if err != nil || own == 0 {
			return Proof{}, errors.Join(err, fail("a tenant is shown %d rows of its own, want some", own))
		}
		for what, sql := range map[string]string{"is shown": sqlNoCondition, "moves": sqlMovesAnybody} {
			if n, err := b.countAs(ctx, stranger, sql); err != nil || n != 0 {
				return Proof{}, errors.Join(err, fail("a statement without its tenant %s %d foreign rows, want none", what, n))
			}
		}
		return Proof{
			Control: fmt.Sprintf("a change is stored by a role that the wall binds, and its tenant is shown its own %d rows", own),
			Refusal: "another tenant is answered not_found, and statements that ask for no tenant show and move nothing of it",
		}, nil
	},
}

// countAs runs a statement as the service runs those of a tenant, and keeps nothing of it.
func (b *bench) countAs(ctx context.Context, tenant, sql string) (n int64, err error) {
	tx, err := b.sql.Begin(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	if _, err := tx.Exec(ctx, sqlForWhom, tenant); err != nil {
		return 0, err
	}
	return n, tx.QueryRow(ctx, sql).Scan(&n)
}
