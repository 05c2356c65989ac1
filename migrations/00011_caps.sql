-- +goose Up
-- Declared caps: what changes may increase together over a time. What a change takes is written in its ruling by the policy; here it
-- is reserved, once, in the transaction that makes the change approved, whichever statement that is.
--
--   ruling.charges -> (approved) -> cap_reservations, if the live ones of the ledger leave room; else CU020 and nothing happens
--
-- What is live is computed from the states that are there, and never swept.
create table cap_ledgers (
  tenant_id     text not null,
  cap           text not null,
  scope_key     text not null,
  currency      text not null,
  window_start  timestamptz not null,
  opening_minor bigint not null,
  primary key (tenant_id, cap, scope_key, currency, window_start)
);
comment on table cap_ledgers is
  'One row for each cap, scope, currency and window: the lock under which room is measured. opening_minor is the value that the first '
  'change of the window found. Append-only.';
create trigger append_only before update or delete on cap_ledgers for each row execute function refuse_change();
create trigger no_truncate before truncate on cap_ledgers for each statement execute function refuse_change();

create table cap_reservations (
  preview_id   uuid not null references previews (id) on delete cascade,
  item         int  not null default 0,
  cap          text not null,
  tenant_id    text not null,
  scope_key    text not null,
  currency     text not null,
  window_start timestamptz not null,
  minor        bigint not null check (minor >= 0),
  primary key (preview_id, item, cap),
  foreign key (tenant_id, cap, scope_key, currency, window_start) references cap_ledgers
);
comment on table cap_reservations is
  'What an approved change takes from a cap. It counts while the change is approved and not late, being applied, unknown or applied.';
create index cap_reservations_of_ledger on cap_reservations (tenant_id, cap, scope_key, currency, window_start) include (preview_id, minor);

-- A reservation is written by the transaction that makes its change approved, and goes with the change's record.
-- +goose StatementBegin
create function guard_reservation() returns trigger language plpgsql as $$
begin
  if not exists (select from previews p where p.id = new.preview_id and p.tenant_id = new.tenant_id and p.state = 'approved'
      and p.xmin = pg_current_xact_id()::xid and exists (
        select from jsonb_array_elements(p.ruling -> 'charges') c where c ->> 'cap' = new.cap and (c ->> 'minor')::bigint = new.minor)) then
    raise exception 'a share is reserved when its change is approved, as its ruling says' using errcode = 'CU013';
  end if;
  return new;
end $$;
-- +goose StatementEnd
create trigger guard before insert or update on cap_reservations for each row execute function guard_reservation();
create trigger no_delete before delete on cap_reservations for each row execute function refuse_removal();
create trigger no_truncate before truncate on cap_reservations for each statement execute function refuse_change();

-- What the live reservations of a ledger come to: used by what was applied, held by what may be, of which unknown is the part that nobody
-- knows of. Whoever is approved for the first time, or anew, is not counted against itself. Each
-- reservation looks its own change up, so that no plan can come to read all changes.
-- +goose StatementBegin
create function cap_totals(tenant text, name text, scope text, money text, start timestamptz, apart uuid,
  out used numeric, out held numeric, out unknown numeric) language plpgsql as $$
begin
  select coalesce(sum(s.minor) filter (where s.counts = 'used'), 0), coalesce(sum(s.minor) filter (where s.counts in ('held', 'unknown')), 0),
      coalesce(sum(s.minor) filter (where s.counts = 'unknown'), 0)
    into used, held, unknown
  from (
    select r.minor, coalesce((
      select case when e.state = 'applied' then 'used' when e.state = 'not_applied' then 'free'
        when e.state = 'unknown' or e.state = 'applying' and e.lease_until <= clock_timestamp() then 'unknown' when e.state = 'applying' then 'held' end
      from executions e where e.preview_id = r.preview_id and e.item = r.item), (
        select case when exists (select from restore_holds h where h.preview_id = p.id and h.state = 'held') then 'unknown'
          when p.state = 'claimed' or p.state = 'approved' and p.deadline > clock_timestamp() then 'held' else 'free' end
        from previews p where p.id = r.preview_id)) as counts
    from cap_reservations r
    where r.tenant_id = tenant and r.cap = name and r.scope_key = scope and r.currency = money and r.window_start = start
      and r.preview_id <> apart
  ) s;
end $$;
-- +goose StatementEnd

-- Ledgers are locked last and in key order, so that two approvals cannot wait for each other. The clock is read after the locks.
-- +goose StatementBegin
create function reserve_caps() returns trigger language plpgsql as $$
declare
  c record;
  start timestamptz;
  used numeric;
  held numeric;
  unknown numeric;
  most numeric;
  opening numeric;
  ceiling numeric;
begin
  for c in
    select x.* from jsonb_to_recordset(new.ruling -> 'charges') as x(cap text, per text, scope text, "window" text, zone text,
      currency text, minor bigint, before bigint, "limit" bigint, percent text)
    order by cap, scope, currency
  loop
    start := date_trunc(c."window", clock_timestamp(), c.zone);
    insert into cap_ledgers (tenant_id, cap, scope_key, currency, window_start, opening_minor)
      values (new.tenant_id, c.cap, c.scope, c.currency, start, c.before) on conflict do nothing;
    select l.opening_minor into opening from cap_ledgers l
      where (l.tenant_id, l.cap, l.scope_key, l.currency, l.window_start) = (new.tenant_id, c.cap, c.scope, c.currency, start) for update;
    ceiling := coalesce(c."limit", floor(opening * c.percent::numeric / 100));
    -- All that was ever reserved is the most that can be live. Only where that leaves no room is each change asked how it stands.
    select coalesce(sum(r.minor), 0) into most from cap_reservations r
      where r.tenant_id = new.tenant_id and r.cap = c.cap and r.scope_key = c.scope and r.currency = c.currency and r.window_start = start
        and r.preview_id <> new.id;
    if c.minor > 0 and most + c.minor > ceiling then
      select t.used, t.held, t.unknown into used, held, unknown from cap_totals(new.tenant_id, c.cap, c.scope, c.currency, start, new.id) t;
      if used + held + c.minor > ceiling then
        raise exception 'a cap would be exceeded' using errcode = 'CU020', detail = jsonb_build_object(
          'cap', c.cap, 'per', c.per, 'window', c."window", 'zone', c.zone, 'currency', c.currency, 'limit', ceiling, 'used', used,
          'held', held, 'unknown', unknown, 'asked', c.minor,
          'resets_at', (date_trunc(c."window", start at time zone c.zone) + ('1 ' || c."window")::interval) at time zone c.zone)::text;
      end if;
    end if;
    insert into cap_reservations (preview_id, cap, tenant_id, scope_key, currency, window_start, minor)
      values (new.id, c.cap, new.tenant_id, c.scope, c.currency, start, c.minor)
      on conflict (preview_id, item, cap) do update set scope_key = excluded.scope_key, currency = excluded.currency,
        window_start = excluded.window_start, minor = excluded.minor;
  end loop;
  return null;
end $$;
-- +goose StatementEnd
create trigger reserve_new after insert on previews for each row
  when (new.state = 'approved' and new.ruling ? 'charges') execute function reserve_caps();
create trigger reserve after update on previews for each row
  when (new.state = 'approved' and old.state in ('needs_approval', 'pending') and new.ruling ? 'charges') execute function reserve_caps();

-- +goose Down
drop trigger reserve on previews;
drop trigger reserve_new on previews;
drop table cap_reservations;
drop table cap_ledgers;
drop function reserve_caps, cap_totals, guard_reservation;
