-- +goose Up
create table policies (
  version   text primary key,
  body      text not null,
  loaded_at timestamptz not null default clock_timestamp()
);
comment on table policies is 'Every policy text that was ever active, by the hash that rulings name.';

-- The number after this one. It grows, and is of its moment: a database that was restored from a backup counts on from where it was, and
-- must not come to numbers again that stood for something else in the time that it has forgotten. Processes may remember that.
create function next_number(this bigint) returns bigint language sql volatile parallel safe as $$
  select greatest($1 + 1, (extract(epoch from clock_timestamp()) * 1000000)::bigint)
$$;

create table controls (
  tenant_id       text primary key,
  frozen          boolean not null default false,
  freeze_epoch    bigint  not null default 0,
  policy_version  text    not null default '' ,
  policy_epoch    bigint  not null default 0,
  approvers_epoch bigint  not null default 0
);
comment on table controls is
  'What a claim rests on beside its preview. An epoch goes up with every change (next_number); the claim compares it inside its transaction. '
  'The row with the empty tenant is the whole deployment.';
insert into controls (tenant_id) values ('');

-- +goose Down
drop table controls;
drop table policies;
drop function next_number;
