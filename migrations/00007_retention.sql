-- +goose Up
-- What is old enough may be removed, whole and by one door only: the transaction that removes a preview leaves its tombstone.
--
--   settled_at(id) is long ago -> insert into tombstones -> the same transaction may delete that preview's rows, and must

-- The shortest retention that can be configured lies far above every clock of a change and every key that a target remembers.
create function retention_floor() returns interval language sql immutable parallel safe as $$ select interval '30 days' $$;

-- An idempotency key in its scope, so that a tombstone outlives the key without keeping its text.
create function key_hash(tenant text, caller text, action text, key text) returns bytea language sql stable strict parallel safe as $$
  select sha256(sha256(convert_to(tenant, 'UTF8')) || sha256(convert_to(caller, 'UTF8')) || sha256(convert_to(action, 'UTF8'))
    || sha256(convert_to(key, 'UTF8')))
$$;

-- When the last thing happened to a preview that nobody and nothing moves any more; null for every other one. An outcome that
-- is still looked at again is not settled, nor is what a restore holds; one that was contradicted, or that a restore found to have
-- happened after it had ended, never is: it is an incident, and stays on record.
create function settled_at(preview uuid) returns timestamptz language sql stable as $$
  select v.at from previews p join audit_events v on v.preview_id = p.id and v.seq = p.audit_seq
  where p.id = preview
    and (p.state in ('denied', 'rejected', 'canceled', 'expired')
      or p.state = 'claimed' and exists (select from executions e where e.preview_id = p.id and e.state in ('applied', 'not_applied')))
    and not exists (select from executions e where e.preview_id = p.id and (
      e.state in ('applying', 'unknown') or e.state = 'not_sent' and p.state = 'claimed' or e.contradicted or e.next_probe_at is not null))
    and not exists (select from restore_holds h where h.preview_id = p.id and h.state not in ('cleared', 'found'))
$$;

create table tombstones (
  preview_id uuid primary key,
  tenant_id  text not null,
  audit_seq  bigint not null,
  audit_head bytea not null,
  key_hash   bytea,
  settled_at timestamptz not null,
  retired_at timestamptz not null default clock_timestamp()
);
comment on table tombstones is
  'What is left of a preview whose record was retired: the end of its audit chain, and the hash of its idempotency key, which is '
  'never accepted again. Those of one batch share retired_at with the control event that digests them. Append-only and kept for ever.';
create unique index tombstones_keys on tombstones (key_hash) where key_hash is not null;

-- +goose StatementBegin
create function guard_tombstone() returns trigger language plpgsql as $$
declare p record;
begin
  perform from previews where id = new.preview_id for update;
  select tenant_id, audit_seq, audit_head, key_hash(tenant_id, requester_id, action, idempotency_key) as key, settled_at(id) as settled
    into p from previews where id = new.preview_id;
  if not found or (p.tenant_id, p.audit_seq, p.audit_head, p.settled) is distinct from
      (new.tenant_id, new.audit_seq, new.audit_head, new.settled_at) or p.key is distinct from new.key_hash then
    raise exception 'a tombstone says what its preview was' using errcode = 'CU010';
  end if;
  if new.settled_at > clock_timestamp() - retention_floor() then
    raise exception 'only what was settled long ago is retired' using errcode = 'CU010';
  end if;
  if new.retired_at < transaction_timestamp() or new.retired_at > clock_timestamp() then
    raise exception 'a tombstone tells when its preview was retired' using errcode = 'CU010';
  end if;
  return new;
end $$;
-- +goose StatementEnd
create trigger guard before insert on tombstones for each row execute function guard_tombstone();
create trigger append_only before update or delete on tombstones for each row execute function refuse_change();
create trigger no_truncate before truncate on tombstones for each statement execute function refuse_change();

-- A tombstone beside a living preview does not commit. That none of its rows stays behind is what the foreign keys say.
-- +goose StatementBegin
create function guard_retired() returns trigger language plpgsql as $$
begin
  if exists (select from previews where id = new.preview_id) then
    raise exception 'a tombstone stands for a preview that is gone' using errcode = 'CU010';
  end if;
  return null;
end $$;
-- +goose StatementEnd
create constraint trigger guard_retired after insert on tombstones deferrable initially deferred
  for each row execute function guard_retired();

-- The one door: rows go in the transaction that wrote their preview's tombstone, and in no other.
-- +goose StatementBegin
create function refuse_removal() returns trigger language plpgsql as $$
declare preview uuid;
begin
  if tg_table_name = 'previews' then preview := old.id; else preview := old.preview_id; end if;
  if exists (select from tombstones t where t.preview_id = preview and t.xmin = pg_current_xact_id()::xid) then
    return old;
  end if;
  raise exception 'rows of this table are never changed or removed' using errcode = 'CU001';
end $$;
-- +goose StatementEnd
drop trigger append_only on audit_events;
drop trigger append_only on decisions;
drop trigger no_delete on previews;
drop trigger no_delete on executions;
drop trigger no_delete on attempts;
create trigger append_only before update on audit_events for each row execute function refuse_change();
create trigger append_only before update on decisions for each row execute function refuse_change();
create trigger no_delete before delete on audit_events for each row execute function refuse_removal();
create trigger no_delete before delete on decisions for each row execute function refuse_removal();
create trigger no_delete before delete on previews for each row execute function refuse_removal();
create trigger no_delete before delete on executions for each row execute function refuse_removal();
create trigger no_delete before delete on attempts for each row execute function refuse_removal();

-- Neither the ID nor the key of what was retired is ever used again.
-- +goose StatementBegin
create function guard_retired_names() returns trigger language plpgsql as $$
declare retired boolean := exists (select from tombstones t where t.preview_id = new.id);
begin
  if not retired and new.idempotency_key is not null then
    retired := exists (
      select from tombstones t where t.key_hash = key_hash(new.tenant_id, new.requester_id, new.action, new.idempotency_key));
  end if;
  if retired then
    raise exception 'the ID or the idempotency key belongs to a change whose record was retired' using errcode = 'CU011';
  end if;
  return new;
end $$;
-- +goose StatementEnd
create trigger guard_retired before insert on previews for each row execute function guard_retired_names();

-- Lists and counts of what is rare must not read what is common.
create index previews_of_person on previews (tenant_id, requester_person, id desc);
create index previews_ended on previews (tenant_id, state, id desc) where state in ('denied', 'rejected', 'canceled', 'expired');
drop index executions_unknown;
create index executions_open on executions (tenant_id, preview_id) where state in ('applying', 'unknown', 'not_sent');
create index executions_settled on executions (tenant_id, state, preview_id) where state in ('applied', 'not_applied');
create index executions_contradicted on executions (tenant_id, preview_id) where contradicted;

-- +goose Down
drop index executions_contradicted;
drop index executions_settled;
drop index executions_open;
create index executions_unknown on executions (tenant_id, started_at) where state in ('applying', 'unknown');
drop index previews_ended;
drop index previews_of_person;
drop trigger guard_retired on previews;
drop trigger no_delete on audit_events;
drop trigger no_delete on decisions;
drop trigger no_delete on previews;
drop trigger no_delete on executions;
drop trigger no_delete on attempts;
drop trigger append_only on audit_events;
drop trigger append_only on decisions;
create trigger append_only before update or delete on audit_events for each row execute function refuse_change();
create trigger append_only before update or delete on decisions for each row execute function refuse_change();
create trigger no_delete before delete on previews for each row execute function refuse_change();
create trigger no_delete before delete on executions for each row execute function refuse_change();
create trigger no_delete before delete on attempts for each row execute function refuse_change();
drop table tombstones;
drop function guard_retired, guard_retired_names, guard_tombstone, refuse_removal, settled_at, key_hash, retention_floor;
