-- +goose Up
-- People who were removed as approvers. What they have approved counts no more, from the moment that the removal is committed: claims
-- compare approvers_epoch, which moves with it, and whoever reads a change's votes reads who was removed in the same statement.
create table removed_approvers (
  tenant_id  text not null references controls (tenant_id) deferrable initially deferred,
  -- person is the subject in lower case, of whichever issuer: taking two people for one is the safe mistake here.
  person     text not null check (person <> '' and person = lower(person)),
  name       text not null,
  removed_by text not null check (removed_by <> ''),
  reason     text not null check (reason <> ''),
  removed_at timestamptz not null,
  primary key (tenant_id, person)
);
comment on table removed_approvers is
  'Who decides nothing any more in a tenant, whatever groups their token names. Rows change only together with their tenant''s control and its '
  'event, which keeps who, why and when after a restoration.';

-- +goose StatementBegin
create function guard_removal() returns trigger language plpgsql as $$
declare ours text;
begin
  if tg_op = 'DELETE' then ours := old.tenant_id; else ours := new.tenant_id; end if;
  if not exists (select from controls c join control_events e on e.scope = c.tenant_id and e.seq = c.audit_seq
      where c.tenant_id = ours and c.xmin = pg_current_xact_id()::xid and e.kind in ('approver_removed', 'approver_restored')) then
    raise exception 'an approver is removed and restored only together with the audit event' using errcode = 'CU003';
  end if;
  return null;
end $$;
-- +goose StatementEnd
create constraint trigger guard_removal after insert or update or delete on removed_approvers deferrable initially deferred
  for each row execute function guard_removal();
create trigger no_truncate before truncate on removed_approvers for each statement execute function refuse_change();
select wall('removed_approvers', 'tenant_id', 'select, insert, update, delete', 'select');

-- A person's name as removals know it: the subject after the issuer, in lower case.
create function subject_of(person text) returns text language sql immutable parallel safe as $$
  select lower(substring(person from position('#' in person) + 1))
$$;

-- +goose StatementBegin
create function guard_removed() returns trigger language plpgsql as $$
declare said_by text;
begin
  if tg_table_name = 'decisions' then said_by := new.person; else said_by := new.confirmed ->> 'person'; end if;
  if exists (select from removed_approvers r where r.tenant_id = new.tenant_id and r.person = subject_of(said_by)) then
    raise exception 'who was removed decides nothing' using errcode = 'CU021';
  end if;
  return new;
end $$;
-- +goose StatementEnd
create trigger guard_removed before insert on decisions for each row execute function guard_removed();
create trigger guard_removed before update on previews for each row
  when (new.confirmed is not null and new.confirmed is distinct from old.confirmed) execute function guard_removed();

-- +goose Down
drop trigger guard_removed on previews;
drop trigger guard_removed on decisions;
drop table removed_approvers;
drop function guard_removal, guard_removed, subject_of;
