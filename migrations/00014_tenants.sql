-- +goose Up
-- The second wall between tenants: whoever works on these tables does so as one of two roles, and row-level security shows cutonce_app
-- one tenant's rows, whatever a statement asks for. The first wall is the tenant in every statement.
--
--   login -> cutonce_app    one tenant's rows: those of the setting cutonce.tenant
--         -> cutonce_worker every row, for what concerns no one tenant: sweeps, seals, policies, restores, retention
--
-- Neither role owns anything, logs in, changes the schema or passes by row-level security, and the owner of the tables, who is forced
-- under the policies too, has none and sees nothing. Roles belong to the whole server: other databases have them, and may be making
-- them just now.
-- +goose StatementBegin
do $$
declare
  name text;
  takes text := case when current_setting('server_version_num')::int >= 160000 then 'set' else 'member' end;
  grants text := case when current_setting('server_version_num')::int >= 160000 then ' with inherit false, set true' else '' end;
begin
  foreach name in array array['cutonce_app', 'cutonce_worker'] loop
    if not exists (select from pg_roles where rolname = name) then
      begin
        execute format('create role %I nologin noinherit', name);
      exception when duplicate_object or unique_violation then null;
      end;
    end if;
    if exists (select from pg_roles where rolname = name and (rolsuper or rolbypassrls or rolcreaterole or rolcreatedb)) then
      raise exception 'the role % can do more than it may: alter role % nosuperuser nobypassrls nocreaterole nocreatedb', name, name;
    end if;
    if not pg_has_role(current_user, name, takes) then
      begin
        execute format('grant %I to %I', name, current_user) || grants;
      exception when unique_violation then null;
      end;
    end if;
  end loop;
  if pg_has_role('cutonce_app', 'cutonce_worker', 'member') then
    raise exception 'cutonce_app must not be a member of cutonce_worker: it would see every tenant';
  end if;
exception when insufficient_privilege then
  raise exception 'cutonce works as two roles, and % may not create or take them: have an administrator run "%grant cutonce_app, cutonce_worker to %"',
    current_user, (select coalesce(string_agg(format('create role %I nologin; ', wanted), ''), '')
      from unnest(array['cutonce_app', 'cutonce_worker']) wanted where not exists (select from pg_roles where rolname = wanted)), quote_ident(current_user)
    using errcode = 'insufficient_privilege';
end $$;
-- +goose StatementEnd
-- +goose StatementBegin
do $$
begin
  if not has_schema_privilege('cutonce_app', current_schema(), 'usage') or not has_schema_privilege('cutonce_worker', current_schema(), 'usage') then
    execute format('grant usage on schema %I to cutonce_app, cutonce_worker', current_schema());
  end if;
end $$;
-- +goose StatementEnd

-- Every table is walled in by this, those of later migrations too (a test asks). app and worker are what the two roles may do; where app
-- is empty, only the worker reaches the table. The tenant is compared in a way that no index serves, and that is computed once for each
-- statement: the wall is a filter, and never the way to a row.
-- +goose StatementBegin
create function wall(what regclass, tenant name, app text, worker text) returns void language plpgsql as $$
begin
  execute format('alter table %s enable row level security', what);
  execute format('alter table %s force row level security', what);
  execute format('grant %s on %s to cutonce_worker', worker, what);
  execute format('create policy every_tenant on %s to cutonce_worker using (true)', what);
  if app <> '' then
    execute format('grant %s on %s to cutonce_app', app, what);
    execute format('create policy own_tenant on %s to cutonce_app using (%I is not distinct from (select nullif(current_setting(%L, true), %L)))',
      what, tenant, 'cutonce.tenant', '');
  end if;
end $$;
-- +goose StatementEnd
comment on function wall is 'Puts a table behind row-level security. Every table with a tenant''s rows is, in the migration that creates it.';

select wall('previews', 'tenant_id', 'select, insert, update', 'select, update, delete');
select wall('executions', 'tenant_id', 'select, insert, update', 'select, update, delete');
select wall('attempts', 'tenant_id', 'select, insert, update', 'select, delete');
select wall('decisions', 'tenant_id', 'select, insert', 'select, delete');
select wall('audit_events', 'tenant_id', 'select, insert', 'select, insert, delete');
select wall('resolutions', 'tenant_id', 'select, insert', 'select, delete');
select wall('restore_holds', 'tenant_id', 'select, update', 'select, insert, update');
select wall('tombstones', 'tenant_id', 'select', 'select, insert');
select wall('sessions', 'tenant_id', 'select, insert, delete', 'select, update, delete');
-- A ledger is locked, which asks for the right to update, and never changed.
select wall('cap_ledgers', 'tenant_id', 'select, insert, update', 'select');
select wall('cap_reservations', 'tenant_id', 'select, insert, update', 'select');
select wall('controls', 'tenant_id', 'select, insert, update', 'select, insert, update');
select wall('control_events', 'scope', 'select, insert', 'select, insert');
select wall('freezes', 'tenant_id', 'select, insert, update, delete', 'select, insert, update, delete');
select wall('policies', '', '', 'select, insert');
select wall('seals', '', '', 'select, insert');
select wall('seal_leaves', 'tenant_id', 'select', 'select, insert');

-- What holds for the whole deployment is shown to every tenant, and set by none.
create policy everybodys on controls for select to cutonce_app using (tenant_id = '');
create policy everybodys on freezes for select to cutonce_app using (tenant_id = '');

grant select on preview_transitions, execution_transitions to cutonce_app, cutonce_worker;
-- The versions say nothing that is secret, and a login that takes roles reads them as itself.
grant select on cutonce_migrations to public;
grant select on sequence cutonce_migrations_id_seq to cutonce_worker; -- which backups are made by

-- +goose Down
revoke select on sequence cutonce_migrations_id_seq from cutonce_worker;
revoke select on cutonce_migrations from public;
-- +goose StatementBegin
do $$
declare what regclass;
begin
  -- The roles stay: other databases of the server may have them.
  for what in select c.oid from pg_class c where c.relkind = 'r' and c.relnamespace = current_schema()::regnamespace and c.relrowsecurity loop
    execute format('drop policy if exists own_tenant on %s', what);
    execute format('drop policy if exists every_tenant on %s', what);
    execute format('drop policy if exists everybodys on %s', what);
    execute format('alter table %s no force row level security', what);
    execute format('alter table %s disable row level security', what);
    execute format('revoke all on %s from cutonce_app, cutonce_worker', what);
  end loop;
end $$;
-- +goose StatementEnd
revoke select on preview_transitions, execution_transitions from cutonce_app, cutonce_worker;
drop function wall;
