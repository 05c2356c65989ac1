-- What is stored, one slice of it: changes number @from to @to of @n, oldest first over a year, multiplied from the change @model that
-- the service made itself (a person approved it, and it was applied). Constraints' triggers are off (session_replication_role), so
-- every row is written as the service would have left it: chains verify, heads fit, states and their columns agree.
create temporary table g on commit drop as
select n, (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '7' || substr(h, 1, 3) || '8' || substr(h, 5, 15))::uuid as id,
  at, h, gen_random_uuid() as attempt, sha256(convert_to(h, 'UTF8')) as input_hash,
  case when k < 600 then 'applied' when k < 750 then 'expired' when k < 830 then 'rejected' when k < 880 then 'canceled' when k < 930 then 'denied'
    when k < 980 then 'not_applied' when k < 990 and n <= @n * 0.999 then 'applied' when k < 994 then 'pending' when k < 996 then 'needs_approval'
    when k < 998 then 'unknown' when k = 998 then 'contradicted' else 'approved' end as kind,
  -- Six of ten belong to the measured tenant, a third of those to the measured agent; the rest to twenty others of two hundred callers each.
  case when n % 10 < 6 then 'scale' else 'tenant-' || n % 20 end as tenant,
  case when n % 10 < 2 then null else 'caller-' || (n / 7) % 200 end as caller,
  -- One of fifty is about the campaigns that are measured on; the rest about twenty thousand others.
  case when n % 50 = 0 then '2002' || lpad((1 + (n / 50) % 16)::text, 3, '0') when n % 50 = 1 then '1002002'
    else 'c-' || (n::bigint * 7919) % 20000 end as target
from (
  select n, md5('scale' || n) as h, (n::bigint * 104729) % 1000 as k, clock_timestamp() - interval '1 year' * (1 - n::float8 / @n) - interval '1 hour' as at
  from generate_series(@from::int, @to::int) n
) x;
-- An unknown outcome holds its target: one for each, and none of the measured tenant's or targets.
update g set tenant = 'tenant-0', target = 'held-' || n where kind = 'unknown';

create temporary table c on commit drop as
select g.*, m.at1, m.at2, m.at3, m.at4, m.at5, e.*, m.settled
from g, lateral (
  select at as at1, at + interval '20 seconds' as at2, at + interval '5 minutes' as at3, at + interval '6 minutes' as at4,
    at + interval '6 minutes 1 second' as at5, kind in ('applied', 'not_applied', 'unknown', 'contradicted') as settled
) m, lateral (
  select *, case when settled then event_hash(h4, id, 5, k5, 'service:cutonce', tenant, at5, b5) end as h5 from (
    select *, case when settled then event_hash(h3, id, 4, 'claimed', who, tenant, at4, b4) end as h4 from (
      select *, case when k3 <> '' then event_hash(h2, id, 3, k3, w3, tenant, at3, b3) end as h3 from (
        select *, case when kind not in ('denied', 'needs_approval') then event_hash(h1, id, 2, 'approval_requested', who, tenant, at2, b2) end as h2 from (
          select who, event_hash(decode(repeat('00', 32), 'hex'), id, 1, 'prepared', who, tenant, at1, body) as h1, body as b1,
            (select body from audit_events where preview_id = @model and seq = 2) as b2,
            (select body from audit_events where preview_id = @model and seq = 3) as b3,
            (select body from audit_events where preview_id = @model and seq = 4) as b4,
            (select body from audit_events where preview_id = @model and seq = 5) as b5,
            case kind when 'expired' then 'expired' when 'rejected' then 'rejected' when 'canceled' then 'canceled' when 'pending' then ''
              when 'denied' then '' when 'needs_approval' then '' else 'approved' end as k3,
            case kind when 'expired' then 'service:cutonce' when 'canceled' then who else 'human:https://id.example#kim' end as w3,
            case kind when 'applied' then 'applied' when 'contradicted' then 'contradicted' when 'unknown' then 'unknown' else 'not_applied' end as k5
          from (select coalesce(caller, p.requester_id) as who, a.body from previews p join audit_events a on a.preview_id = p.id and a.seq = 1
            where p.id = @model) t offset 0
        ) t1 offset 0
      ) t2 offset 0
    ) t3 offset 0
  ) t4
) e;

insert into previews (id, tenant_id, action, action_version, requester_id, requester_person, requester, document, digest, target_key, target_id,
  input_hash, idempotency_key, reverts, created_at, state, ruling, deadline, revision, round, justification, requested_at, approved_at, ended_at,
  ended_by, end_reason, audit_seq, audit_head)
select c.id, c.tenant, p.action, p.action_version, c.who, case when c.caller is null then p.requester_person else 'https://id.example#' || c.caller end,
  p.requester, p.document, p.digest, left(p.target_key, -length(p.target_id)) || c.target, c.target, c.input_hash,
  case when c.n % 2 = 0 then 'key-' || c.h end, null, c.at1,
  case when c.settled then 'claimed' else c.kind end, p.ruling,
  case when c.kind in ('pending', 'needs_approval', 'approved') then clock_timestamp() + interval '1 day' + c.n * interval '1 millisecond'
    else c.at1 + interval '36 minutes' end,
  p.revision, 1, p.justification, case when c.h2 is not null then c.at2 end, case when c.k3 = 'approved' then c.at3 end,
  case when c.kind in ('denied', 'rejected', 'canceled', 'expired') then coalesce(case when c.h3 is not null then c.at3 end, c.at1) end,
  case when c.kind in ('denied', 'rejected', 'canceled', 'expired') then 'kim' else '' end, '',
  1 + (c.h2 is not null)::int + (c.h3 is not null)::int + (c.h4 is not null)::int + (c.h5 is not null)::int,
  coalesce(c.h5, c.h4, c.h3, c.h2, c.h1)
from c, previews p where p.id = @model order by c.n;

-- The transaction number is an old one: all of this was sealed long ago.
insert into audit_events (preview_id, seq, tenant_id, kind, actor, at, body, hash, xid)
select c.id, v.seq, c.tenant, v.kind, v.actor, v.at, v.body, v.hash, '3'
from c, lateral (values (1, 'prepared', who, at1, b1, h1), (2, 'approval_requested', who, at2, b2, h2), (3, k3, w3, at3, b3, h3),
  (4, 'claimed', who, at4, b4, h4), (5, k5, 'service:cutonce', at5, b5, h5)) v (seq, kind, actor, at, body, hash)
where v.hash is not null order by c.n, v.seq;

insert into decisions (preview_id, tenant_id, round, person, name, groups, approve, reason, digest, policy_version, decided_at)
select c.id, c.tenant, 1, d.person, d.name, d.groups, c.kind <> 'rejected', d.reason, d.digest, d.policy_version, c.at3
from c, decisions d where d.preview_id = @model and c.h3 is not null and c.kind not in ('canceled', 'expired') order by c.n;

insert into executions (preview_id, item, tenant_id, target_key, state, current_attempt, claimed_by, started_at, lease_until, settle_at, finished_at,
  reason, evidence, detail, contradicted, version_before, probes, next_probe_at, needs_operator)
select c.id, 0, c.tenant, left(e.target_key, -length(p.target_id)) || c.target,
  case c.kind when 'contradicted' then 'applied' else c.kind end, c.attempt, c.who, c.at4, c.at4 + interval '30 seconds', c.at4 + interval '2 minutes',
  case when c.kind <> 'unknown' then c.at5 end, case when c.kind = 'not_applied' then 'refused' else '' end,
  case when c.kind = 'unknown' then '' else 'receipt' end, e.detail, c.kind = 'contradicted', e.version_before, 0,
  case when c.kind = 'unknown' then clock_timestamp() + interval '1 day' end, c.kind = 'unknown'
from c, executions e, previews p where c.settled and e.preview_id = @model and p.id = @model order by c.n;

insert into attempts (id, preview_id, item, tenant_id, kind, started_at, finished_at, result, evidence)
select c.attempt, c.id, 0, c.tenant, 'send', c.at4, c.at5, case c.kind when 'not_applied' then 'refused' when 'unknown' then 'unknown' else 'applied' end, a.evidence
from c, attempts a where c.settled and a.preview_id = @model order by c.n;
