-- +goose Up
create table policies (
  version   text primary key,
  body      text not null,
  loaded_at timestamptz not null default clock_timestamp()
);
comment on table policies is 'Every policy text that was ever active, by the hash that rulings name.';

create table controls (
  tenant_id       text primary key,
  frozen          boolean not null default false,
  freeze_epoch    bigint  not null default 0,
  policy_version  text    not null default '' ,
  policy_epoch    bigint  not null default 0,
  approvers_epoch bigint  not null default 0
);
comment on table controls is
  'What a claim rests on beside its preview. An epoch goes up with every change; the claim compares it inside its transaction. '
  'The row with the empty tenant is the whole deployment.';
insert into controls (tenant_id) values ('');

-- +goose Down
drop table controls;
drop table policies;
