-- Builds each index without a lock that anybody waits for, a second for each million rows or so, and waits for transactions that are
-- older. Each statement is sent alone, so a run that breaks off leaves an invalid index, which the next one drops.

-- The newest families of a connection that may be alive. By the time and not by the id: where nearly all families are of one connection,
-- the primary key would be read for those of another one.
drop index concurrently if exists families_connected_idx;
create index concurrently families_connected_idx on families (seller_id, client_id, generation, application_generation, seller_generation, created_at) where generation is not null and revoked_at is null;
-- One of a family at most, among all those that were used.
drop index concurrently if exists refresh_tokens_unused_idx;
create index concurrently refresh_tokens_unused_idx on refresh_tokens (family_id) where used_at is null;
-- The version before reads by the first of them, too.
drop index concurrently if exists families_consented_idx;

insert into schema_facts values ('0024', '0.1.0');
