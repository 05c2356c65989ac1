-- +goose Up
-- Freezes: what nobody may apply for a while. controls.frozen only says that its scope has any, so that a claim in quiet times looks
-- no further; the rows say which, by whom, why and until when. A freeze whose time is over forbids nothing, whether or not its
-- row is still there.
create table freezes (
  tenant_id text not null references controls (tenant_id) deferrable initially deferred,
  kind      text not null check (kind in ('everything', 'tenant', 'connector', 'action')),
  name      text not null,
  frozen_by text not null check (frozen_by <> ''),
  reason    text not null check (reason <> ''),
  frozen_at timestamptz not null,
  until     timestamptz check (until > frozen_at),
  primary key (tenant_id, kind, name),
  constraint freezes_everything check ((kind = 'everything') = (tenant_id = '')),
  constraint freezes_name check ((name = '') = (kind in ('everything', 'tenant')))
);
comment on table freezes is
  'What is frozen: everything (the empty tenant), a tenant, one of its connectors (a target system) or actions. Rows change only '
  'together with their tenant''s control and its event.';

-- The freeze that stands in the way of a change, the widest first. A connector is known by the beginning of the target's key.
create function freeze_over(tenant text, action text, target_key text) returns setof freezes language sql volatile as $$
  select f.* from freezes f
  where f.tenant_id in ('', $1) and (f.until is null or f.until > clock_timestamp()) and case f.kind
    when 'action' then f.name = $2
    when 'connector' then starts_with($3, replace(replace(f.name, '\', '\\'), '|', '\|') || '|')
    else true end
  order by array_position(array['everything', 'tenant', 'connector', 'action'], f.kind), f.name
  limit 1
$$;

-- A freeze is set, changed and lifted under its control's event, and never beside a control that denies that there is any.
-- +goose StatementBegin
create function guard_freeze() returns trigger language plpgsql as $$
declare scope text;
begin
  if tg_op = 'DELETE' then scope := old.tenant_id; else scope := new.tenant_id; end if;
  if not exists (select from controls c where c.tenant_id = scope and c.xmin = pg_current_xact_id()::xid) then
    raise exception 'a freeze changes only together with its audit event' using errcode = 'CU003';
  end if;
  if exists (select from freezes f where f.tenant_id = scope) and not (select frozen from controls c where c.tenant_id = scope) then
    raise exception 'a control says that it has freezes' using errcode = 'CU012';
  end if;
  return null;
end $$;
-- +goose StatementEnd
create constraint trigger guard_freeze after insert or update or delete on freezes deferrable initially deferred
  for each row execute function guard_freeze();
create constraint trigger guard_frozen after update on controls deferrable initially deferred
  for each row when (old.frozen and not new.frozen) execute function guard_freeze();
create trigger no_truncate before truncate on freezes for each statement execute function refuse_change();

-- The requester's own person may confirm a change of low risk. It is no vote and stands apart: a policy that wants people at apply
-- finds none.
alter table previews add column confirmed jsonb;
-- +goose StatementBegin
create function guard_confirmed() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    raise exception 'nothing is born confirmed' using errcode = 'CU006';
  elsif new.confirmed is null then
    if new.round = old.round then
      raise exception 'a confirmation goes only when the change is sent back' using errcode = 'CU002';
    end if;
  elsif old.confirmed is not null or old.state <> 'pending' or new.state <> 'approved'
      or not coalesce((old.ruling ->> 'confirm')::boolean, false) or old.requester_person = ''
      or new.confirmed ->> 'person' is distinct from old.requester_person
      or new.confirmed ->> 'digest' is distinct from encode(old.digest, 'hex') then
    raise exception 'only the requester''s own person confirms, and only what was shown and may be confirmed' using errcode = 'CU006';
  end if;
  return new;
end $$;
-- +goose StatementEnd
create trigger guard_confirmed before update on previews for each row when (new.confirmed is distinct from old.confirmed)
  execute function guard_confirmed();
create trigger guard_new_confirmed before insert on previews for each row when (new.confirmed is not null)
  execute function guard_confirmed();

-- A rejection takes its author away, whether or not it ends the change; and where a confirmation is asked for, votes are not.
-- +goose StatementBegin
create function guard_vote() returns trigger language plpgsql as $$
begin
  if new.approve and exists (select from decisions d where d.preview_id = new.preview_id and d.round = new.round and not d.approve
      and lower(substring(d.person from position('#' in d.person) + 1)) = lower(substring(new.person from position('#' in new.person) + 1))) then
    raise exception 'who has rejected does not approve' using errcode = 'CU006';
  end if;
  if exists (select from previews p where p.id = new.preview_id and (p.ruling ->> 'confirm')::boolean) then
    raise exception 'a confirmation is no vote' using errcode = 'CU006';
  end if;
  return new;
end $$;
-- +goose StatementEnd
create trigger guard_vote before insert on decisions for each row execute function guard_vote();

-- +goose Down
drop trigger guard_vote on decisions;
drop trigger guard_confirmed on previews;
drop trigger guard_new_confirmed on previews;
drop function guard_vote, guard_confirmed;
alter table previews drop column confirmed;
drop trigger guard_frozen on controls;
drop table freezes;
drop function freeze_over, guard_freeze;
