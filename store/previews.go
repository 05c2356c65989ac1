package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/cutonce/cutonce/commit"
	"github.com/cutonce/cutonce/internal/fault"
	"github.com/cutonce/cutonce/preview"
)

// previewColumns are what a Preview is read from, with its votes.
const previewColumns = `
  p.id, p.tenant_id, p.action, p.action_version, p.requester, p.document, p.digest, p.created_at, p.state, p.ruling, p.deadline,
  p.revision, p.round, p.justification, p.requested_at, p.approved_at, p.ended_by, p.end_reason, p.confirmed,
  (select coalesce(json_agg(json_build_object('person', d.person, 'name', d.name, 'groups', d.groups, 'approve', d.approve,
     'reason', d.reason, 'digest', encode(d.digest, 'hex'), 'round', d.round, 'at', d.decided_at, 'policy_version', d.policy_version)
     order by d.decided_at), '[]') from decisions d where d.preview_id = p.id) as votes,` + removedPeople

// row is a preview as it is scanned.
type row struct {
	p                       preview.Preview
	id                      [16]byte
	requester, ruling, vote []byte
	removed                 []byte
	digest                  []byte
	requestedAt, approvedAt *time.Time
}

func (r *row) into() []any {
	p := &r.p
	return []any{
		&r.id, &p.Tenant, &p.Action, &p.ActionVersion, &r.requester, &p.Document, &r.digest, &p.CreatedAt, &p.State, &r.ruling,
		&p.Deadline, &p.Revision, &p.Round, &p.Justification, &r.requestedAt, &r.approvedAt, &p.EndedBy, &p.EndReason, &p.Confirmed, &r.vote,
		&r.removed,
	}
}

func (r *row) preview() (preview.Preview, error) {
	p := r.p
	p.ID = preview.ID(r.id)
	copy(p.Digest[:], r.digest)
	p.RequestedAt, p.ApprovedAt = at(r.requestedAt), at(r.approvedAt)
	if err := p.CheckDigest(); err != nil {
		return p, err
	}
	content, err := contentOf(p.Digest, p.Document)
	p.Content = content
	return p, errors.Join(err, remembered(&requesters, r.requester, &p.Requester), remembered(&rulings, r.ruling, &p.Ruling),
		listed(r.vote, &p.Votes), listed(r.removed, &p.Removed))
}

func at(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

const sqlReplayByKey = `
select ` + previewColumns + ` from previews p
where p.idempotency_key = @key and p.requester_id = @caller and p.action = @action and p.tenant_id is not distinct from @tenant`

// FindReplay looks by key. See preview.Store.
func (s *Store) FindReplay(ctx context.Context, q preview.ReplayQuery) (*preview.Preview, error) {
	found, err := s.one(ctx, sqlReplayByKey, pgx.NamedArgs{"tenant": q.Tenant, "caller": q.Caller, "action": q.Action, "key": q.Key})
	switch {
	case errors.Is(err, fault.NotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &found, nil
}

func (s *Store) one(ctx context.Context, sql string, args pgx.NamedArgs) (preview.Preview, error) {
	var r row
	if err := s.pool.read(ctx, sql, args, r.into()...); err != nil {
		return preview.Preview{}, fmt.Errorf("reading a preview: %w", missing(err))
	}
	return r.preview()
}

// sqlSameInput serialises the prepares of one caller and input, so that two at once do not both find nothing. The second lock is for the
// ceiling on the caller's open previews; see sqlRoom.
const sqlSameInput = `
select pg_advisory_xact_lock(hashtextextended(@caller || encode(@input_hash, 'hex'), 1)),
  case when @max_open = 0 then null when @alone then pg_advisory_xact_lock(hashtextextended(@tenant || chr(31) || @caller, 2))
    else pg_advisory_xact_lock_shared(hashtextextended(@tenant || chr(31) || @caller, 2)) end`

// sqlRoom tells whether the requester may open one more. Those who share the lock do not see each other, but there are never more of them
// than the server has connections: as long as so many would still fit, nobody needs to wait for anybody. Whoever finds less room asks
// again alone: then all who shared have ended, and the count is what it is.
const sqlRoom = `
  select @max_open = 0 or (
    select count(*) from (select from previews where tenant_id is not distinct from @tenant and requester_id = @caller
      and state in ('needs_approval', 'pending', 'approved') and deadline > clock_timestamp() limit @max_open) o
  ) <= @max_open - case when @alone then 1 else current_setting('max_connections')::int end as left_over`

// sqlCreate: without a key, an open preview of the same input answers for this one while the target has not moved, which its version
// tells.
const sqlCreate = `
with same as materialized (
  select id, document, target_key, reverts from previews
  where tenant_id is not distinct from @tenant and requester_id = @caller and action = @action and input_hash = @input_hash
    and state in ('needs_approval', 'pending', 'approved') and deadline > clock_timestamp() and @key::text is null
), open as (
  select id from (select * from same order by id desc limit 1) newest
  where target_key = @target_key and reverts is not distinct from @reverts
    and convert_from(document, 'UTF8')::jsonb #>> '{plan,version}' = @target_version
), room as materialized (` + sqlRoom + `
), n as materialized (select clock_timestamp() as now), i as (
  insert into previews (id, tenant_id, action, action_version, requester_id, requester_person, requester, document, digest,
    target_key, target_id, input_hash, idempotency_key, reverts, created_at, state, ruling, deadline, approved_at, ended_at, ended_by,
    audit_seq, audit_head)
  select @id, @tenant, @action, @version, @caller, @person, @requester, @document, @digest, @target_key, @target_id, @input_hash,
    @key, @reverts, now, @state, @ruling, now + @live_for::interval, case when @state = 'approved' then now end,
    case when @state = 'denied' then now end, case when @state = 'denied' then 'policy' else '' end, 1,
    event_hash(decode(repeat('00', 32), 'hex'), @id, 1, 'prepared', @caller, @tenant, now, @body)
  from n, room where room.left_over and not exists (select from open)
  on conflict (tenant_id, requester_id, action, idempotency_key) where idempotency_key is not null do nothing
  returning id, tenant_id, audit_head, created_at, deadline
), au as (
  insert into audit_events (preview_id, seq, tenant_id, kind, actor, at, body, hash)
  select id, 1, tenant_id, 'prepared', @caller, created_at, @body, audit_head from i
)
select (select id from open), (select created_at from i), (select deadline from i), (select left_over from room)`

const sqlOpen = `
select state, count(*), extract(epoch from min(deadline) - clock_timestamp())::float8 from previews
where tenant_id is not distinct from @tenant and requester_id = @caller and state in ('needs_approval', 'pending', 'approved') and deadline > clock_timestamp()
group by state`

// Create stores a preview in one round trip; in two where a cap refuses what the policy has allowed, or where the requester's ceiling is
// near. See preview.Store.
func (s *Store) Create(ctx context.Context, n preview.New) (preview.Preview, bool, error) {
	return s.create(ctx, n, false)
}

func (s *Store) create(ctx context.Context, n preview.New, alone bool) (preview.Preview, bool, error) {
	args, err := createArgs(n)
	if err != nil {
		return preview.Preview{}, false, err
	}
	args["alone"] = alone
	var open *uuid.UUID
	var createdAt, deadline *time.Time
	var room bool
	epochs := s.seen.before(n.Preview.Tenant)
	err = again(ctx, func() error {
		return s.pipeline(ctx, s.pool, func(b *pgx.Batch) {
			b.Queue(sqlSameInput, args)
			b.Queue(sqlCreate, args)
		}, func(r pgx.BatchResults) error {
			if _, err := r.Exec(); err != nil {
				return err
			}
			return r.QueryRow().Scan(&open, &createdAt, &deadline, &room)
		})
	})
	if e := exceededBy(err); e != nil && n.Preview.State == preview.Approved {
		n.Preview.Ruling, n.Preview.State = e.Ruling(n.Preview.Ruling), preview.Denied
		return s.create(ctx, n, alone)
	}
	switch {
	case nameRetired(err):
		return preview.Preview{}, false, preview.ErrKeyRetired
	case err != nil:
		return preview.Preview{}, false, fmt.Errorf("storing a preview: %w", err)
	case createdAt != nil:
		p := born(n.Preview, *createdAt, *deadline)
		s.bear(p, epochs)
		return p, true, nil
	case open == nil && !room && !alone:
		return s.create(ctx, n, true)
	case open == nil && !room:
		return s.crowded(ctx, n)
	}
	return s.stored(ctx, n, open)
}

// crowded tells what the requester has open, unless the key's preview has come to be meanwhile: that one is the answer.
func (s *Store) crowded(ctx context.Context, n preview.New) (preview.Preview, bool, error) {
	p, _, err := s.stored(ctx, n, nil)
	if !errors.Is(err, fault.NotFound) {
		return p, false, err
	}
	crowd := &preview.TooManyOpen{Limit: n.MaxOpen, Open: map[preview.State]int{}, EndsIn: time.Second}
	var first float64
	_, err = collect(ctx, s.pool, sqlOpen, pgx.NamedArgs{"tenant": n.Preview.Tenant, "caller": n.Caller}, func(r pgx.CollectableRow) (int, error) {
		var state preview.State
		var count int
		var ends float64
		err := r.Scan(&state, &count, &ends)
		if crowd.Open[state] = count; first == 0 || ends < first {
			first = ends
		}
		return count, err
	})
	if err != nil {
		return p, false, fmt.Errorf("counting open previews: %w", err)
	}
	crowd.EndsIn = max(crowd.EndsIn, time.Duration(first*float64(time.Second)))
	return p, false, crowd
}

// bear remembers a new preview with what its document says: a connector may still hold the content that the document was written from.
func (s *Store) bear(p preview.Preview, epochs *commit.Epochs) {
	content, err := contentOf(p.Digest, p.Document)
	if p.Content = content; err == nil {
		s.seen.keep(p, epochs)
	}
}

// born is a preview as sqlCreate has stored it.
func born(p preview.Preview, createdAt, deadline time.Time) preview.Preview {
	p.CreatedAt, p.Deadline, p.SeenAt = createdAt, deadline, createdAt
	switch p.State {
	case preview.Approved:
		p.ApprovedAt = createdAt
	case preview.Denied:
		p.EndedBy = "policy"
	}
	return p
}

// stored reads the preview that was there first: under the key, or open with the same digest.
func (s *Store) stored(ctx context.Context, n preview.New, open *uuid.UUID) (preview.Preview, bool, error) {
	if open != nil {
		p, _, err := s.Preview(ctx, n.Preview.Tenant, preview.ID(*open))
		return p, false, err
	}
	p, err := s.one(ctx, sqlReplayByKey, pgx.NamedArgs{
		"tenant": n.Preview.Tenant, "caller": n.Caller, "action": n.Preview.Action, "key": n.Key,
	})
	return p, false, err
}

func createArgs(n preview.New) (pgx.NamedArgs, error) {
	p := n.Preview
	requester, err1 := jsonb(p.Requester)
	ruling, err2 := jsonb(p.Ruling)
	reverts, err3 := revertsOf(p)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	return pgx.NamedArgs{
		"id": p.ID.UUID(), "tenant": p.Tenant, "action": p.Action, "version": p.ActionVersion, "caller": n.Caller,
		"person": p.Requester.Person(), "requester": requester, "document": p.Document, "digest": p.Digest[:],
		"target_key": p.Plan.Target.Key(), "target_id": p.Plan.Target.ID,
		"target_version": p.Plan.Version, "input_hash": n.InputHash[:], "key": optional(n.Key),
		"max_open": n.MaxOpen, "alone": false,
		"reverts": reverts, "state": string(p.State), "ruling": ruling, "live_for": n.LiveFor,
		"body": body(map[string]any{
			"digest": p.Digest.String(), "verdict": string(p.Ruling.Verdict), "rule": p.Ruling.Rule,
			"policy_version": p.Ruling.Version, "target": p.Plan.Target.Key(),
		}),
	}, nil
}

func revertsOf(p preview.Preview) (*uuid.UUID, error) {
	if p.Reverts == "" {
		return nil, nil
	}
	id, ok := preview.ParseID(p.Reverts)
	if !ok {
		return nil, fmt.Errorf("the reverted preview's ID is not readable")
	}
	u := id.UUID()
	return &u, nil
}

func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

const sqlPreview = `select ` + previewColumns + `, clock_timestamp() from previews p where p.id = @id and p.tenant_id is not distinct from @tenant`

// Preview reads one preview and the database's time. See approvals.Store.
func (s *Store) Preview(ctx context.Context, tenant string, id preview.ID) (preview.Preview, time.Time, error) {
	var r row
	var now time.Time
	epochs := s.seen.before(tenant)
	err := s.pool.read(ctx, sqlPreview, pgx.NamedArgs{"id": id.UUID(), "tenant": tenant}, append(r.into(), &now)...)
	if err != nil {
		return preview.Preview{}, now, fmt.Errorf("reading a preview: %w", missing(err))
	}
	p, err := r.preview()
	if p.SeenAt = now; err == nil {
		s.seen.keep(p, epochs)
	}
	return p, now, err
}
