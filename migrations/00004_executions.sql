-- +goose Up
create table executions (
  preview_id      uuid not null references previews (id),
  item            int  not null,
  tenant_id       text not null,
  target_key      text not null,
  state           text not null check (state in ('applying', 'not_sent', 'unknown', 'applied', 'not_applied')),
  current_attempt uuid not null,
  claimed_by      text not null,
  started_at      timestamptz not null,
  lease_until     timestamptz not null,
  settle_at       timestamptz not null,
  finished_at     timestamptz,
  reason          text not null default '' check (reason in ('', 'never_left', 'refused', 'drifted', 'looked_up', 'resolved')),
  evidence        text not null default '' check (evidence in ('', 'receipt', 'lookup', 'replay', 'operator', 'none')),
  detail          jsonb not null default '{}',
  contradicted    boolean not null default false,
  version_before  text not null default '',
  probes          int not null default 0,
  probe_until     timestamptz,
  next_probe_at   timestamptz,
  needs_operator  boolean not null default false,
  resolved_by     text not null default '',
  resolved_why    text not null default '',
  primary key (preview_id, item),
  constraint executions_finished_at check ((state in ('applied', 'not_applied')) = (finished_at is not null)),
  constraint executions_evidence check ((state in ('applied', 'not_applied')) = (evidence <> '')),
  constraint executions_reason check ((state = 'not_applied') = (reason <> '')),
  constraint executions_operator_named check (evidence <> 'operator' or (resolved_by <> '' and resolved_why <> ''))
);
comment on table executions is
  'The one claim of a preview''s item. An applying row whose lease_until has passed reads as unknown. version_before is the '
  'target''s version that an applied change replaced: a read that still shows it is stale.';
-- The lock on the target: one change at a time. A claim that meets it fails with 23505 and rolls back.
create unique index executions_target_lock on executions (target_key) where state in ('applying', 'unknown');
create index executions_leases on executions (lease_until) where state = 'applying';
create index executions_probes on executions (next_probe_at) where next_probe_at is not null;
create index executions_unknown on executions (tenant_id, started_at) where state in ('applying', 'unknown');
create index executions_replaced on executions (target_key, version_before, finished_at) where finished_at is not null;

create table attempts (
  id          uuid not null,
  preview_id  uuid not null,
  item        int  not null,
  tenant_id   text not null,
  kind        text not null check (kind in ('send', 'lookup', 'replay')),
  started_at  timestamptz not null,
  finished_at timestamptz,
  result      text,
  evidence    jsonb,
  primary key (preview_id, item, id),
  constraint attempts_finished check ((finished_at is null) = (result is null)),
  foreign key (preview_id, item) references executions (preview_id, item) deferrable initially deferred
);
comment on table attempts is 'Every outward call of an execution, begun before the call. Its ID is the fence of each write-back.';
-- One send per execution, but for those that provably never left.
create unique index attempts_one_send on attempts (preview_id, item) where kind = 'send' and result is distinct from 'not_sent';

-- Applying means that there is a current attempt.
alter table executions add constraint executions_current_attempt foreign key (preview_id, item, current_attempt)
  references attempts (preview_id, item, id) deferrable initially deferred;

-- +goose StatementBegin
create function guard_execution() returns trigger language plpgsql as $$
begin
  if (new.preview_id, new.item, new.tenant_id, new.target_key) is distinct from (old.preview_id, old.item, old.tenant_id, old.target_key) then
    raise exception 'an execution keeps its preview and its target' using errcode = 'CU002';
  end if;
  if new.state <> old.state and not exists (
    select from execution_transitions t where t.from_state = old.state and t.to_state = new.state) then
    raise exception 'an execution cannot go from % to %', old.state, new.state using errcode = 'CU004';
  end if;
  if old.state = 'not_applied' and new.state = 'applied' and not new.contradicted then
    raise exception 'proof that contradicts an outcome is recorded openly' using errcode = 'CU007';
  end if;
  if old.contradicted and not new.contradicted then
    raise exception 'a contradiction stays on record' using errcode = 'CU007';
  end if;
  return new;
end $$;
-- +goose StatementEnd
create trigger guard before update on executions for each row execute function guard_execution();
create trigger no_delete before delete on executions for each row execute function refuse_change();
create trigger no_truncate before truncate on executions for each statement execute function refuse_change();
create trigger no_delete before delete on attempts for each row execute function refuse_change();
create trigger no_truncate before truncate on attempts for each statement execute function refuse_change();

-- +goose StatementBegin
create function guard_new_execution() returns trigger language plpgsql as $$
begin
  if new.state <> 'applying' or not exists (
    select from previews p where p.id = new.preview_id and p.tenant_id = new.tenant_id and p.state = 'claimed'
      and p.xmin = pg_current_xact_id()::xid) then
    raise exception 'only a preview that is claimed now is executed' using errcode = 'CU004';
  end if;
  return new;
end $$;
-- +goose StatementEnd
create constraint trigger guard_new after insert on executions deferrable initially deferred
  for each row execute function guard_new_execution();

-- No execution moves without an event: the transaction that moves it also changes its preview, which takes its event with it.
-- A send that starts again does so under a claim.
-- +goose StatementBegin
create function guard_move() returns trigger language plpgsql as $$
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
create constraint trigger guard_move after update on executions deferrable initially deferred
  for each row when (old.state <> new.state) execute function guard_move();

-- A claim that would strand its preview (claimed, with nothing applying) does not commit.
-- +goose StatementBegin
create function guard_claim() returns trigger language plpgsql as $$
begin
  if not exists (select from executions e where e.preview_id = new.id and e.state = 'applying') then
    raise exception 'a claimed preview has an execution' using errcode = 'CU004';
  end if;
  return null;
end $$;
-- +goose StatementEnd
create constraint trigger guard_claim after update on previews deferrable initially deferred
  for each row when (old.state = 'approved' and new.state = 'claimed') execute function guard_claim();

-- A claim is given back only where nothing left.
-- +goose StatementBegin
create function guard_unclaim() returns trigger language plpgsql as $$
begin
  if exists (select from executions e where e.preview_id = new.id and e.state <> 'not_sent') then
    raise exception 'only a send that never left gives a claim back' using errcode = 'CU004';
  end if;
  return null;
end $$;
-- +goose StatementEnd
create constraint trigger guard_unclaim after update on previews deferrable initially deferred
  for each row when (old.state = 'claimed' and new.state = 'approved') execute function guard_unclaim();

-- +goose StatementBegin
create function guard_attempt() returns trigger language plpgsql as $$
begin
  if (new.id, new.preview_id, new.item, new.tenant_id, new.kind, new.started_at) is distinct from
     (old.id, old.preview_id, old.item, old.tenant_id, old.kind, old.started_at) then
    raise exception 'an attempt keeps what it was' using errcode = 'CU002';
  end if;
  if old.result is not null and new is distinct from old then
    raise exception 'the result of an attempt is written once' using errcode = 'CU007';
  end if;
  return new;
end $$;
-- +goose StatementEnd
create trigger guard before update on attempts for each row execute function guard_attempt();

-- +goose Down
alter table executions drop constraint executions_current_attempt;
drop table attempts;
drop table executions;
drop trigger guard_claim on previews;
drop trigger guard_unclaim on previews;
drop function guard_claim, guard_unclaim, guard_execution, guard_new_execution, guard_move, guard_attempt;
