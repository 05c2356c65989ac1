package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/cutonce/cutonce/store"
)

// bare is the limit: the same five commits and one read as the service makes, by pgx alone, one round trip for each. The statements
// lock first and compare afterwards, and chain their audit events, because a cycle without that is not the same cycle. Its tables are
// the service's own with all their indexes and guards; or, stripped, without what only guards: triggers, foreign keys and checks.
type bare struct {
	pool     *pgxpool.Pool
	stripped bool
}

// sqlStrip takes from the service's schema what only guards it.
const sqlStrip = `
do $$
declare r record;
begin
  for r in select conrelid::regclass as t, conname from pg_constraint
    where contype in ('f', 'c', 't') and connamespace = 'public'::regnamespace and conrelid <> 0 order by contype desc loop
    if exists (select from pg_trigger g join pg_constraint c on c.oid = g.tgconstraint where c.contype = 't' and c.conname = r.conname) then
      execute format('drop trigger %I on %s', r.conname, r.t);
    else
      execute format('alter table %s drop constraint %I', r.t, r.conname);
    end if;
  end loop;
  for r in select tgrelid::regclass as t, tgname from pg_trigger where not tgisinternal loop
    execute format('drop trigger %I on %s', r.tgname, r.t);
  end loop;
end $$`

func newBare(ctx context.Context, url string, stripped bool) (*bare, error) {
	if err := store.Migrate(ctx, url); err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.MaxConns = poolSize
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	if stripped {
		if _, err := pool.Exec(ctx, sqlStrip); err != nil {
			return nil, fmt.Errorf("stripping the schema: %w", err)
		}
	}
	return &bare{pool: pool, stripped: stripped}, nil
}

const sqlBarePrepare = `
with i as (
  insert into previews (id, tenant_id, action, action_version, requester_id, requester_person, requester, document, digest, target_key,
    target_id, input_hash, created_at, state, ruling, deadline, audit_seq, audit_head)
  select $1, 'bench', 'budget_change', 1, 'agent:sato', 'issuer#sato', $2, $3, $4, $5, $6, $4, now, 'needs_approval', $7,
    now + interval '10 minutes', 1, sha256(decode(repeat('00', 32), 'hex') || convert_to('1|prepared|' || now::text, 'UTF8') || $8)
  from (select clock_timestamp() as now) n
  returning id, tenant_id, audit_head, created_at
), au as (
  insert into audit_events (preview_id, seq, tenant_id, kind, actor, at, body, hash)
  select id, 1, tenant_id, 'prepared', 'agent:sato', created_at, $8, audit_head from i
)
select exists (select from i)`

// bareMove is one transition: the columns that change, and what else is written beside them.
func bareMove(kind, from, set, beside string) string {
	return `
with l as materialized (
  select id, state, deadline, digest from previews where id = $1 and tenant_id is not distinct from 'bench' for update
), ok as (
  select id, clock_timestamp() as now from l where state = '` + from + `' and deadline > clock_timestamp()
), u as (
  update previews p set ` + set + `, audit_seq = p.audit_seq + 1, audit_head = sha256(p.audit_head
    || convert_to((p.audit_seq + 1)::text || '|` + kind + `|' || p.tenant_id || '|' || (extract(epoch from ok.now) * 1000000)::bigint, 'UTF8') || $2)
  from ok where p.id = ok.id returning p.id, p.tenant_id, p.target_key, p.digest, p.audit_seq, p.audit_head, ok.now
)` + beside + `, au as (
  insert into audit_events (preview_id, seq, tenant_id, kind, actor, at, body, hash)
  select id, audit_seq, tenant_id, '` + kind + `', 'bench', now, $2, audit_head from u
)
select exists (select from u)`
}

var (
	sqlBareRequest = bareMove("approval_requested", "needs_approval",
		`state = 'pending', requested_at = ok.now, justification = 'because', deadline = ok.now + interval '24 hours', revision = p.revision + 1`, ``)

	sqlBareDecide = bareMove("approved", "pending",
		`state = 'approved', approved_at = ok.now, deadline = ok.now + interval '30 minutes', revision = p.revision + 1`, `, v as (
  insert into decisions (preview_id, tenant_id, round, person, name, groups, approve, reason, digest, policy_version, decided_at)
  select id, tenant_id, 1, 'issuer#kim', 'kim', '{ads-approvers}', true, '', digest, 'v', now from u
)`)

	sqlBareClaim = bareMove("claimed", "approved", `state = 'claimed'`, `, e as (
  insert into executions (preview_id, item, tenant_id, target_key, state, current_attempt, claimed_by, started_at, lease_until, settle_at)
  select id, 0, tenant_id, target_key, 'applying', $3::uuid, 'agent:sato', now, now + interval '30 s', now + interval '105 s' from u
), a as (
  insert into attempts (id, preview_id, item, tenant_id, kind, started_at) select $3::uuid, id, 0, tenant_id, 'send', now from u
)`)

	sqlBareRecord = `
with l as materialized (
  select id from previews where id = $1 and tenant_id is not distinct from 'bench' for update
), e as (
  update executions e set state = 'applied', finished_at = clock_timestamp(), evidence = 'receipt', detail = $4
  from l where e.preview_id = l.id and e.item = 0 and e.current_attempt = $3::uuid and e.state in ('applying', 'unknown')
  returning e.preview_id, e.finished_at as now
), a as (
  update attempts a set finished_at = e.now, result = 'applied', evidence = $4 from e where a.preview_id = e.preview_id and a.item = 0 and a.id = $3::uuid
), u as (
  update previews p set audit_seq = p.audit_seq + 1, audit_head = sha256(p.audit_head
    || convert_to((p.audit_seq + 1)::text || '|applied|' || p.tenant_id || '|' || (extract(epoch from e.now) * 1000000)::bigint, 'UTF8') || $2)
  from e where p.id = e.preview_id returning p.id, p.tenant_id, p.audit_seq, p.audit_head, e.now
), au as (
  insert into audit_events (preview_id, seq, tenant_id, kind, actor, at, body, hash)
  select id, audit_seq, tenant_id, 'applied', 'service', now, $2, audit_head from u
)
select exists (select from u)`
)

const sqlBareStatus = `
select p.document, p.digest, p.deadline, e.state from previews p left join executions e on e.preview_id = p.id
where p.id = $1 and p.tenant_id is not distinct from 'bench'`

// The sizes are those of the service's rows.
var (
	bareDocument  = bytes.Repeat([]byte(`{"format":1,"tenant":"bench"}`), 60)
	bareRequester = []byte(`{"tenant":"bench","subject":"sato@agency.example","kind":"agent","scopes":["ads:read","ads:budget"],"client":"agent","issuer":"http://127.0.0.1:1"}`)
	bareRuling    = []byte(`{"verdict":"require","rule":"every-change","version":"0123456789012345678901234567890123456789012345678901234567890123","needs":[{"any_of":["ads-approvers"],"count":1}]}`)
	bareBody      = []byte(`{"digest":"0123456789012345678901234567890123456789012345678901234567890123","verdict":"require","rule":"every-change"}`)
	bareEvidence  = []byte(`{"evidence":{"http_status":200,"change_id":"ch_1","after":"10001","currency":"JPY","etag":"\"2002001-1\""}}`)
)

// name names the row of the table.
func (b *bare) name() string {
	if b.stripped {
		return "stripped"
	}
	return "bare"
}

// client makes a client's cycle: prepare, request, decide, claim, record, read.
func (b *bare) client(_ context.Context, n int) (func(context.Context) error, error) {
	target := campaignID(n)
	count := 0
	return func(ctx context.Context) error {
		count++
		id, attempt := uuid.Must(uuid.NewV7()), uuid.New()
		document := append(append([]byte{}, bareDocument...), target+"/"+strconv.Itoa(count)+id.String()...)
		digest := sha256.Sum256(document)
		for _, s := range []struct {
			sql  string
			args []any
		}{
			{sqlBarePrepare, []any{id, bareRequester, document, digest[:], "bench/campaign/" + target, target, bareRuling, bareBody}},
			{sqlBareRequest, []any{id, bareBody}},
			{sqlBareDecide, []any{id, bareBody}},
			{sqlBareClaim, []any{id, bareBody, attempt}},
			{sqlBareRecord, []any{id, bareBody, attempt, bareEvidence}},
		} {
			var done bool
			if err := b.pool.QueryRow(ctx, s.sql, s.args...).Scan(&done); err != nil || !done {
				return errors.Join(errors.New("a statement of the bare cycle did nothing"), err)
			}
		}
		var deadline time.Time
		var read, sum []byte
		var state string
		if err := b.pool.QueryRow(ctx, sqlBareStatus, id).Scan(&read, &sum, &deadline, &state); err != nil || state != "applied" {
			return errors.Join(fmt.Errorf("the bare cycle ended %q", state), err)
		}
		return nil
	}, nil
}

// effects counts what the database says was applied.
func (b *bare) effects(ctx context.Context) (n int, err error) {
	return n, b.pool.QueryRow(ctx, `select count(*) from executions where state = 'applied'`).Scan(&n)
}

func (b *bare) close(context.Context) { b.pool.Close() }
