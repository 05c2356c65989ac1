-- +goose Up
-- How many operators must say the same before their word settles an outcome: what the action asked for when it was claimed.
-- stated counts what has been said; a statement is recorded only if nothing was said since its author looked.
alter table executions add column resolvers int not null default 1 check (resolvers in (1, 2));
alter table executions add column stated int not null default 0;
create trigger keeps_resolvers before update on executions for each row when (new.resolvers <> old.resolvers)
  execute function refuse_change();

create table resolutions (
  preview_id uuid not null,
  seq        bigint not null,
  item       int not null,
  tenant_id  text not null,
  person     text not null,
  name       text not null,
  applied    boolean not null,
  reason     text not null check (reason <> ''),
  evidence   text not null check (evidence <> ''),
  stated_at  timestamptz not null,
  primary key (preview_id, seq),
  foreign key (preview_id, item) references executions (preview_id, item),
  foreign key (preview_id, seq) references audit_events (preview_id, seq) deferrable initially deferred
);
comment on table resolutions is
  'What operators said of an outcome that nobody could look up; seq is the audit event that says the same. Where two must say it, the '
  'first one is a proposal, which lapses after an hour. Append-only.';
create trigger append_only before update on resolutions for each row execute function refuse_change();
create trigger no_delete before delete on resolutions for each row execute function refuse_removal();
create trigger no_truncate before truncate on resolutions for each statement execute function refuse_change();

-- +goose StatementBegin
create function guard_resolution() returns trigger language plpgsql as $$
declare p record;
begin
  select tenant_id, requester into p from previews where id = new.preview_id;
  if p.tenant_id <> new.tenant_id then
    raise exception 'a statement is bound to its tenant' using errcode = 'CU005';
  end if;
  -- Neither the requester, nor the human an agent acts for, nor its owner, whichever issuer knows them.
  if lower(substring(new.person from position('#' in new.person) + 1)) in (
      lower(p.requester ->> 'subject'), lower(p.requester ->> 'for'), lower(p.requester ->> 'owner')) then
    raise exception 'nobody settles their own change' using errcode = 'CU006';
  end if;
  return new;
end $$;
-- +goose StatementEnd
create trigger guard before insert on resolutions for each row execute function guard_resolution();

-- An operator's word settles only what so many different people have said last, within the hour and alike.
-- +goose StatementBegin
create function guard_statement() returns trigger language plpgsql as $$
declare said record;
begin
  select count(distinct lower(substring(person from position('#' in person) + 1))) as people, bool_and(applied) as all_applied,
    bool_or(applied) as any_applied, max(stated_at) - min(stated_at) as apart
  into said
  from (select * from resolutions r where r.preview_id = new.preview_id and r.item = new.item order by seq desc limit new.resolvers) last;
  if said.people < new.resolvers or said.all_applied <> (new.state = 'applied') or said.any_applied <> (new.state = 'applied')
     or said.apart > interval '1 hour' then
    raise exception 'an outcome is settled by as many operators as its action asks for' using errcode = 'CU008';
  end if;
  return null;
end $$;
-- +goose StatementEnd
create constraint trigger guard_statement after update on executions deferrable initially deferred
  for each row when (new.evidence = 'operator' and old.evidence <> 'operator') execute function guard_statement();

-- +goose Down
drop trigger guard_statement on executions;
drop trigger keeps_resolvers on executions;
drop table resolutions;
drop function guard_resolution, guard_statement;
alter table executions drop column stated;
alter table executions drop column resolvers;
