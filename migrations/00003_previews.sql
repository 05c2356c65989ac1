-- +goose Up
-- The hash of one audit event over the one before it. Fields of varying length go in as their own hashes, so that no two
-- events can share an encoding; the time goes in as microseconds, never as text, which would differ by session time zone.
create function event_hash(head bytea, preview uuid, seq bigint, kind text, actor text, tenant text, at timestamptz, body bytea)
returns bytea language sql stable parallel safe as $$
  select sha256(head || uuid_send(preview) || int8send(seq) || int8send((extract(epoch from at) * 1000000)::bigint)
    || sha256(convert_to(kind, 'UTF8')) || sha256(convert_to(actor, 'UTF8')) || sha256(convert_to(tenant, 'UTF8')) || sha256(body))
$$;

create table previews (
  id               uuid primary key,
  tenant_id        text not null,
  action           text not null,
  action_version   int  not null,
  requester_id     text not null,
  requester_person text not null,
  requester        jsonb not null,
  document         bytea not null,
  digest           bytea not null,
  target_key       text not null,
  target_id        text not null,
  input_hash       bytea not null,
  idempotency_key  text,
  reverts          uuid,
  created_at       timestamptz not null,

  state            text not null check (state in
    ('needs_approval', 'pending', 'approved', 'denied', 'rejected', 'canceled', 'expired', 'claimed')),
  ruling           jsonb not null,
  deadline         timestamptz not null,
  revision         bigint not null default 0,
  round            int not null default 1,
  justification    text not null default '',
  requested_at     timestamptz,
  approved_at      timestamptz,
  ended_at         timestamptz,
  ended_by         text not null default '',
  end_reason       text not null default '',
  audit_seq        bigint not null,
  audit_head       bytea not null,

  constraint previews_digest_covers_document check (digest = sha256(document)),
  constraint previews_pending_was_requested check (state <> 'pending' or requested_at is not null),
  constraint previews_approved_at check (state not in ('approved', 'claimed') or approved_at is not null),
  constraint previews_ended_at check ((state in ('denied', 'rejected', 'canceled', 'expired')) = (ended_at is not null))
);
comment on table previews is
  'One proposed change: the document under its digest never changes; the columns from state on are its life. audit_seq and '
  'audit_head are the end of its audit chain.';
create unique index previews_idempotency on previews (idempotency_key, requester_id, action, tenant_id) where idempotency_key is not null;
create index previews_open_input on previews (requester_id, action, input_hash) where state in ('needs_approval', 'pending', 'approved');
create index previews_queue on previews (tenant_id, deadline, id) where state = 'pending';
create index previews_lapsing on previews (deadline) where state in ('needs_approval', 'pending', 'approved');
create index previews_newest on previews (tenant_id, id desc);
create index previews_of_requester on previews (tenant_id, requester_id, id desc);
create index previews_of_target on previews (tenant_id, target_id, id desc);

create table decisions (
  preview_id     uuid not null references previews (id),
  tenant_id      text not null,
  round          int  not null,
  person         text not null,
  name           text not null,
  groups         text[] not null,
  approve        boolean not null,
  reason         text not null,
  digest         bytea not null,
  policy_version text not null,
  decided_at     timestamptz not null
);
comment on table decisions is 'What people said of a preview, with the digest that was on their screen. Append-only.';
-- One vote each, whatever the spelling of the person; a veto after an approval is the one second vote.
create unique index decisions_one_each
  on decisions (preview_id, round, lower(substring(person from position('#' in person) + 1)), approve);

create table audit_events (
  preview_id uuid not null references previews (id) deferrable initially deferred,
  seq        bigint not null,
  tenant_id  text not null,
  kind       text not null,
  actor      text not null,
  at         timestamptz not null,
  body       bytea not null,
  hash       bytea not null,
  primary key (preview_id, seq)
);
comment on table audit_events is 'The chain of each preview: every change of state has its event in the same transaction. Append-only.';

-- No change of state without its event: the end of the chain must exist when the transaction ends.
alter table previews add constraint previews_last_event foreign key (id, audit_seq)
  references audit_events (preview_id, seq) deferrable initially deferred;

-- +goose StatementBegin
create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception 'rows of this table are never changed or removed' using errcode = 'CU001';
end $$;
-- +goose StatementEnd
create trigger append_only before update or delete on audit_events for each row execute function refuse_change();
create trigger no_truncate before truncate on audit_events for each statement execute function refuse_change();
create trigger append_only before update or delete on decisions for each row execute function refuse_change();
create trigger no_truncate before truncate on decisions for each statement execute function refuse_change();
create trigger no_delete before delete on previews for each row execute function refuse_change();
create trigger no_truncate before truncate on previews for each statement execute function refuse_change();

-- +goose StatementBegin
create function guard_preview() returns trigger language plpgsql as $$
begin
  if (new.id, new.tenant_id, new.action, new.action_version, new.requester_id, new.requester_person, new.requester, new.digest,
      new.target_key, new.target_id, new.input_hash, new.created_at)
     is distinct from
     (old.id, old.tenant_id, old.action, old.action_version, old.requester_id, old.requester_person, old.requester, old.digest,
      old.target_key, old.target_id, old.input_hash, old.created_at)
     or new.idempotency_key is distinct from old.idempotency_key or new.reverts is distinct from old.reverts then
    raise exception 'what was shown cannot be changed' using errcode = 'CU002';
  end if;
  if new.audit_seq <> old.audit_seq + 1 then
    raise exception 'a preview changes only together with its audit event' using errcode = 'CU003';
  end if;
  if new.state <> old.state and not exists (
    select from preview_transitions t where t.from_state = old.state and t.to_state = new.state) then
    raise exception 'a preview cannot go from % to %', old.state, new.state using errcode = 'CU004';
  end if;
  return new;
end $$;
-- +goose StatementEnd
create trigger guard before update on previews for each row execute function guard_preview();

-- +goose StatementBegin
create function guard_new_preview() returns trigger language plpgsql as $$
begin
  if new.state not in ('needs_approval', 'approved', 'denied') or new.audit_seq <> 1 then
    raise exception 'a preview cannot be born %', new.state using errcode = 'CU004';
  end if;
  return new;
end $$;
-- +goose StatementEnd
create trigger guard_new before insert on previews for each row execute function guard_new_preview();

-- +goose StatementBegin
create function guard_decision() returns trigger language plpgsql as $$
declare p record;
begin
  select tenant_id, requester_person, requester, digest into p from previews where id = new.preview_id;
  if p.tenant_id <> new.tenant_id or p.digest <> new.digest then
    raise exception 'a decision is bound to its tenant and to the digest that was shown' using errcode = 'CU005';
  end if;
  -- Neither the requester, nor the human an agent acts for, nor its owner, whichever issuer knows them.
  if lower(substring(new.person from position('#' in new.person) + 1)) in (
      lower(p.requester ->> 'subject'), lower(p.requester ->> 'for'), lower(p.requester ->> 'owner')) then
    raise exception 'nobody decides on their own change' using errcode = 'CU006';
  end if;
  return new;
end $$;
-- +goose StatementEnd
create trigger guard before insert on decisions for each row execute function guard_decision();

-- +goose Down
drop table decisions;
alter table previews drop constraint previews_last_event;
drop table audit_events;
drop table previews;
drop function guard_decision, guard_new_preview, guard_preview, refuse_change, event_hash;
