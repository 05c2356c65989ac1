-- +goose Up
-- The number after this one: what revisions and epochs go up to. It is of its moment, because a database that was restored from a backup
-- counts on from where it was, and must not come to numbers again that stood for something else in the time that it has forgotten.
-- Processes may remember that time.
create function next_number(this bigint) returns bigint language sql volatile parallel safe as $$
  select greatest($1 + 1, (extract(epoch from clock_timestamp()) * 1000000)::bigint)
$$;

-- +goose Down
drop function next_number;
