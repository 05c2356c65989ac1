-- +goose Up
-- Every key at a target is made from the deployment's secret: with another one, a look-up by key finds nothing of what is there, and
-- would call it absent. So the database knows which secret its changes were sent under, by a mark that tells nothing about it.
alter table controls add column secret_mark bytea;
comment on column controls.secret_mark is 'A mark of the secret under which keys are made; no process with another one is served.';

-- +goose Down
alter table controls drop column secret_mark;
