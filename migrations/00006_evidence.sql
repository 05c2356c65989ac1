-- +goose Up
-- Control events: what claims rest on beside their preview has a chain of its own, one per scope ('' is the deployment), in the
-- form of the previews' chains with a preview ID of zeros.
create table control_events (
  scope text not null,
  seq   bigint not null,
  kind  text not null,
  actor text not null,
  at    timestamptz not null,
  body  bytea not null,
  hash  bytea not null,
  xid   xid8 not null default pg_current_xact_id(),
  primary key (scope, seq)
);
comment on table control_events is
  'Every change of controls (policy, freeze, restore …) has its event here in the same transaction. Append-only.';

create function control_hash(head bytea, scope text, seq bigint, kind text, actor text, at timestamptz, body bytea)
returns bytea language sql stable parallel safe as $$
  select event_hash(head, '00000000-0000-0000-0000-000000000000', seq, kind, actor, scope, at, body)
$$;

-- restoring freezes the whole deployment. restored_to is the moment whose state was restored, restored_at when that was said:
-- between the two lies the lost time. The witness is the seal whose loss was declared last: times cannot tell one disaster from the
-- next.
alter table controls
  add column audit_seq   bigint not null default 1,
  add column audit_head  bytea,
  add column restoring   boolean not null default false,
  add column restored_to timestamptz,
  add column restored_at timestamptz,
  add column witness_number bigint,
  add column witness_hash   bytea,
  add constraint controls_restoring check (not restoring or restored_at is not null);

with i as (
  insert into control_events (scope, seq, kind, actor, at, body, hash)
  select tenant_id, 1, 'installed', 'service:cutonce', n.at, '{}',
    control_hash(decode(repeat('00', 32), 'hex'), tenant_id, 1, 'installed', 'service:cutonce', n.at, '{}')
  from controls, (select clock_timestamp() as at) n
  returning scope, hash
)
update controls set audit_head = i.hash from i where scope = tenant_id;
alter table controls alter column audit_head set not null;
alter table controls add constraint controls_last_event foreign key (tenant_id, audit_seq)
  references control_events (scope, seq) deferrable initially deferred;

-- +goose StatementBegin
create function guard_control() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' and new.audit_seq <> 1 or tg_op = 'UPDATE' and new.audit_seq <> old.audit_seq + 1 then
    raise exception 'a control changes only together with its audit event' using errcode = 'CU003';
  end if;
  if tg_op = 'UPDATE' and (new.tenant_id <> old.tenant_id or new.freeze_epoch < old.freeze_epoch or new.policy_epoch < old.policy_epoch
      or new.approvers_epoch < old.approvers_epoch) then
    raise exception 'an epoch only grows' using errcode = 'CU002';
  end if;
  return new;
end $$;
-- +goose StatementEnd
create trigger guard before insert or update on controls for each row execute function guard_control();
create trigger no_delete before delete on controls for each row execute function refuse_change();
create trigger no_truncate before truncate on controls for each statement execute function refuse_change();
create trigger append_only before update or delete on control_events for each row execute function refuse_change();
create trigger no_truncate before truncate on control_events for each statement execute function refuse_change();

-- Seals. The transaction that wrote an event tells when it may be sealed: once no transaction older than it is under way, nothing
-- can come in before it any more. Sequence numbers and times cannot tell that.
alter table audit_events add column xid xid8 not null default pg_current_xact_id();
create index audit_events_unsealed on audit_events (xid);
create index control_events_unsealed on control_events (xid);

create table seals (
  number    bigint primary key,
  -- A window is the life of one cluster: transaction numbers of another one mean nothing here.
  window_no bigint not null,
  system_id bigint not null,
  from_xid  xid8 not null,
  to_xid    xid8 not null,
  caught_up boolean not null,
  at        timestamptz not null,
  leaves    bigint not null,
  prev      bytea not null,
  root      bytea not null,
  hash      bytea not null unique,
  key_id    text not null,
  signature bytea not null
);
comment on table seals is
  'The ends of all chains that changed, in a signed Merkle root over the seal before it. Append-only and kept for ever.';

create table seal_leaves (
  seal      bigint not null,
  place     bigint not null,
  kind      text not null check (kind in ('preview', 'control')),
  chain     uuid not null,
  tenant_id text not null,
  seq       bigint not null,
  head      bytea not null,
  primary key (seal, place)
);
comment on table seal_leaves is
  'What each seal covers: the end of one chain. A preview that is gone is still named here. Append-only and kept for ever.';

-- +goose StatementBegin
create function guard_seal() returns trigger language plpgsql as $$
begin
  if new.number <> coalesce((select max(number) from seals), 0) + 1
     or new.prev <> coalesce((select hash from seals order by number desc limit 1), decode(repeat('00', 32), 'hex')) then
    raise exception 'a seal stands on the one before it' using errcode = 'CU009';
  end if;
  return new;
end $$;
-- +goose StatementEnd
create trigger guard before insert on seals for each row execute function guard_seal();
create trigger append_only before update or delete on seals for each row execute function refuse_change();
create trigger no_truncate before truncate on seals for each statement execute function refuse_change();
create trigger append_only before update or delete on seal_leaves for each row execute function refuse_change();
create trigger no_truncate before truncate on seal_leaves for each statement execute function refuse_change();

-- Restore. Every change that may have been applied in the lost time is held until the target was asked by its constant key.
--
--   (declared) -> held -> cleared      the effect is not there: it goes on as if nothing had been
--                 held -> found        it is there: the change is applied
--                 held -> found_ended  it is there, though the change has ended otherwise: an incident
--                 held -> handed_over  nobody can tell: an unknown outcome for operators
--   and from each of them back to held by another restore
create table restore_holds (
  preview_id     uuid primary key,
  tenant_id      text not null,
  action         text not null,
  state          text not null default 'held' check (state in ('held', 'cleared', 'found', 'found_ended', 'handed_over')),
  held_at        timestamptz not null,
  looks          int not null default 0,
  next_look_at   timestamptz,
  look_until     timestamptz,
  -- needs_operator: the target was asked until no late effect was to be expected, and cannot tell. resolvers people then say the same;
  -- said_* is the first one's word, which lapses after an hour.
  needs_operator boolean not null default false,
  resolvers      int not null default 1 check (resolvers in (1, 2)),
  said_by        text,
  said_happened  boolean,
  said_at        timestamptz,
  cleared_at     timestamptz,
  constraint restore_holds_next check ((state = 'held') = (next_look_at is not null)),
  constraint restore_holds_cleared_at check ((state = 'cleared') = (cleared_at is not null))
);
comment on table restore_holds is
  'Changes from before a restore. A held one is never claimed. Rows are never removed.';
create index restore_holds_due on restore_holds (next_look_at) where state = 'held';
create index restore_holds_open on restore_holds (state, preview_id) where state in ('held', 'found_ended', 'handed_over');

-- Holds come from a declared restore, and end together with an event of their preview.
-- +goose StatementBegin
create function guard_hold() returns trigger language plpgsql as $$
begin
  if new.state = 'held' then
    if not exists (select from controls where tenant_id = '' and restoring and xmin = pg_current_xact_id()::xid) then
      raise exception 'a change is held by a restore that is declared' using errcode = 'CU003';
    end if;
  elsif tg_op = 'INSERT' or not exists (select from previews p where p.id = new.preview_id and p.xmin = pg_current_xact_id()::xid) then
    raise exception 'a hold ends only together with an audit event' using errcode = 'CU003';
  end if;
  return null;
end $$;
-- +goose StatementEnd
create constraint trigger guard after insert on restore_holds deferrable initially deferred
  for each row execute function guard_hold();
create constraint trigger guard_move after update on restore_holds deferrable initially deferred
  for each row when (old.state <> new.state) execute function guard_hold();
create trigger no_delete before delete on restore_holds for each row execute function refuse_change();
create trigger no_truncate before truncate on restore_holds for each statement execute function refuse_change();

-- An effect from the lost time is recorded without a send of ours, whatever state the backup knew the change in. Only the
-- transaction that ends a hold can do it.
create function adopted(preview uuid) returns boolean language sql stable as $$
  select exists (select from restore_holds h where h.preview_id = preview and h.state in ('found', 'handed_over')
    and h.xmin = pg_current_xact_id()::xid)
$$;
insert into preview_transitions (from_state, to_state) values ('needs_approval', 'claimed'), ('pending', 'claimed');
insert into execution_transitions (from_state, to_state) values ('not_sent', 'applied'), ('not_sent', 'unknown');
alter table previews drop constraint previews_approved_at;
alter table previews add constraint previews_approved_at check (state <> 'approved' or approved_at is not null);

-- +goose StatementBegin
create or replace function guard_new_execution() returns trigger language plpgsql as $$
begin
  if new.state <> 'applying' and not adopted(new.preview_id) or not exists (
    select from previews p where p.id = new.preview_id and p.tenant_id = new.tenant_id and p.state = 'claimed'
      and p.xmin = pg_current_xact_id()::xid) then
    raise exception 'only a preview that is claimed now is executed' using errcode = 'CU004';
  end if;
  return null;
end $$;
-- +goose StatementEnd
-- +goose StatementBegin
create or replace function guard_claim() returns trigger language plpgsql as $$
begin
  if (old.state <> 'approved' or not exists (
    select from executions e where e.preview_id = new.id and e.state = 'applying')) and not adopted(new.id) then
    raise exception 'a claimed preview was approved and has an execution' using errcode = 'CU004';
  end if;
  return null;
end $$;
-- +goose StatementEnd
drop trigger guard_claim on previews;
create constraint trigger guard_claim after update on previews deferrable initially deferred
  for each row when (old.state <> 'claimed' and new.state = 'claimed') execute function guard_claim();
-- +goose StatementBegin
create or replace function guard_move() returns trigger language plpgsql as $$
declare p record;
begin
  select state, xmin into p from previews where id = new.preview_id;
  if p.xmin <> pg_current_xact_id()::xid then
    raise exception 'an execution changes only together with its audit event' using errcode = 'CU003';
  end if;
  if new.state = 'applying' and p.state <> 'claimed' then
    raise exception 'only a claimed preview is executed' using errcode = 'CU004';
  end if;
  if old.state = 'not_sent' and new.state <> 'applying' and not adopted(new.preview_id) then
    raise exception 'only a restore finds the effect of what never left' using errcode = 'CU004';
  end if;
  return null;
end $$;
-- +goose StatementEnd

-- +goose Down
-- +goose StatementBegin
create or replace function guard_move() returns trigger language plpgsql as $$
declare p record;
begin
  select state, xmin into p from previews where id = new.preview_id;
  if p.xmin <> pg_current_xact_id()::xid then
    raise exception 'an execution changes only together with its audit event' using errcode = 'CU003';
  end if;
  if new.state = 'applying' and p.state <> 'claimed' then
    raise exception 'only a claimed preview is executed' using errcode = 'CU004';
  end if;
  return null;
end $$;
-- +goose StatementEnd
drop trigger guard_claim on previews;
-- +goose StatementBegin
create or replace function guard_claim() returns trigger language plpgsql as $$
begin
  if not exists (select from executions e where e.preview_id = new.id and e.state = 'applying') then
    raise exception 'a claimed preview has an execution' using errcode = 'CU004';
  end if;
  return null;
end $$;
-- +goose StatementEnd
create constraint trigger guard_claim after update on previews deferrable initially deferred
  for each row when (old.state = 'approved' and new.state = 'claimed') execute function guard_claim();
-- +goose StatementBegin
create or replace function guard_new_execution() returns trigger language plpgsql as $$
begin
  if new.state <> 'applying' or not exists (
    select from previews p where p.id = new.preview_id and p.tenant_id = new.tenant_id and p.state = 'claimed'
      and p.xmin = pg_current_xact_id()::xid) then
    raise exception 'only a preview that is claimed now is executed' using errcode = 'CU004';
  end if;
  return new;
end $$;
-- +goose StatementEnd
alter table previews drop constraint previews_approved_at;
alter table previews add constraint previews_approved_at check (state not in ('approved', 'claimed') or approved_at is not null) not valid;
delete from execution_transitions where from_state = 'not_sent' and to_state <> 'applying';
delete from preview_transitions where to_state = 'claimed' and from_state <> 'approved';
drop function adopted;
drop table restore_holds;
drop function guard_hold;
drop table seal_leaves;
drop table seals;
drop function guard_seal;
drop index audit_events_unsealed;
alter table audit_events drop column xid;
drop trigger guard on controls;
drop trigger no_delete on controls;
drop trigger no_truncate on controls;
alter table controls drop column audit_seq, drop column audit_head, drop column restoring, drop column restored_to, drop column restored_at,
  drop column witness_number, drop column witness_hash;
drop function guard_control;
drop table control_events;
drop function control_hash;
