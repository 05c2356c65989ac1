-- +goose Up
-- What people are told is read from the audit events themselves. This is how far: everything up to one event of one transaction has been
-- made into deliveries, in the transaction that moved the place. The deliveries are jobs of River, whose own tables (schema version 8)
-- are made beside these, when these are there.
create table notify_place (
  one        boolean primary key default true check (one),
  xid        xid8 not null,
  preview_id uuid not null,
  seq        bigint not null,
  moved_at   timestamptz not null
);
comment on table notify_place is 'How far the audit events have been made into deliveries. One row, which is the lock of who does it.';

-- What a clock tells, and no event does, is told once per deadline.
create table notify_told (
  preview_id uuid not null,
  kind       text not null,
  deadline   timestamptz not null,
  told_at    timestamptz not null,
  primary key (preview_id, kind, deadline)
);
comment on table notify_told is 'What was made into deliveries because a clock came near: once per change and deadline. Removed a day after the deadline.';
create index notify_told_deadline on notify_told (deadline);

-- Both are of all tenants, and the worker's.
select wall('notify_place', '', '', 'select, insert, update');
select wall('notify_told', '', '', 'select, insert, delete');

-- +goose Down
drop table notify_told;
drop table notify_place;
