-- +goose Up
create table sessions (
  hash         bytea primary key,
  tenant_id    text not null,
  person       text not null,
  actor        jsonb not null,
  created_at   timestamptz not null default clock_timestamp(),
  last_seen_at timestamptz not null default clock_timestamp(),
  expires_at   timestamptz not null
);
comment on table sessions is 'Browser sessions of the console. Only the hash of a session''s token is stored.';
create index sessions_of_person on sessions (tenant_id, person);
create index sessions_expiry on sessions (expires_at);

-- +goose Down
drop table sessions;
