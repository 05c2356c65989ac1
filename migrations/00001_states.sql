-- +goose Up
-- A preview's life. The same table is preview.Transitions in Go and the diagram in ARCHITECTURE.md; a test compares them.
--
--   (new) -> needs_approval -> pending -> approved -> claimed -> (its executions)
--   (new) -> approved (by policy)          |   ^---------'  a send that never left
--   (new) -> denied                        '-> rejected, canceled, expired
create table preview_transitions (
  from_state text not null,
  to_state   text not null,
  primary key (from_state, to_state)
);
comment on table preview_transitions is 'The legal moves of a preview. A trigger refuses every other one.';
insert into preview_transitions (from_state, to_state) values
  ('needs_approval', 'pending'), ('needs_approval', 'canceled'), ('needs_approval', 'expired'),
  ('pending', 'approved'), ('pending', 'rejected'), ('pending', 'canceled'), ('pending', 'expired'), ('pending', 'needs_approval'),
  ('approved', 'claimed'), ('approved', 'needs_approval'), ('approved', 'rejected'), ('approved', 'canceled'), ('approved', 'expired'),
  ('claimed', 'approved');

-- An execution's life (commit.Transitions).
--
--   (claim) -> applying -> applied | not_applied | unknown | not_sent -> applying (the same execution, a new attempt)
--                          unknown -> applied | not_applied -> applied (contradicted, openly)
create table execution_transitions (
  from_state text not null,
  to_state   text not null,
  primary key (from_state, to_state)
);
comment on table execution_transitions is 'The legal moves of an execution. A trigger refuses every other one.';
insert into execution_transitions (from_state, to_state) values
  ('applying', 'applied'), ('applying', 'not_applied'), ('applying', 'not_sent'), ('applying', 'unknown'),
  ('not_sent', 'applying'),
  ('unknown', 'applied'), ('unknown', 'not_applied'),
  ('not_applied', 'applied');

-- +goose Down
drop table execution_transitions;
drop table preview_transitions;
