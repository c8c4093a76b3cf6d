-- Builds each index without a lock that anybody waits for, a second for each million families or so, and waits for transactions that
-- are older. Each statement is sent alone, so a run that breaks off leaves an invalid index, which the next one drops.

-- The families that a revocation is still to mark, without those of later tokens and those that are marked.
drop index concurrently if exists families_alive_of_application_idx;
create index concurrently families_alive_of_application_idx on families (client_id, application_generation) where revoked_at is null;
drop index concurrently if exists families_alive_of_seller_idx;
create index concurrently families_alive_of_seller_idx on families (seller_id, seller_generation) where revoked_at is null;
-- The version before is served by the new ones.
drop index concurrently if exists families_client_id_idx;
drop index concurrently if exists families_seller_id_idx;

insert into schema_facts values ('0038', '0.1.0');
