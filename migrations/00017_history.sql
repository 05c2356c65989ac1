-- +goose Up
-- A change's page shows the newest seal over its chain.
create index seal_leaves_of_chain on seal_leaves (chain, seal desc);

-- History is searched by whoever decided or settled. Who asked has indexes of its own.
create index decisions_of_person on decisions (tenant_id, person, preview_id desc);
create index resolutions_of_person on resolutions (tenant_id, person, preview_id desc);

-- +goose Down
drop index resolutions_of_person;
drop index decisions_of_person;
drop index seal_leaves_of_chain;
