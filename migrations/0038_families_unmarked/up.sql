-- Builds each index without a lock that anybody waits for, a second for each million families or so, and waits for transactions that
-- are older. Each statement is sent alone, so a run that breaks off leaves an invalid index, which the next one drops.

-- The families that a revocation is still to mark, without those of later tokens and those that are marked.
drop index concurrently if exists families_unmarked_by_client_id_idx;
create index concurrently families_unmarked_by_client_id_idx on families (client_id, revoked_at, application_generation);
drop index concurrently if exists families_unmarked_by_seller_id_idx;
create index concurrently families_unmarked_by_seller_id_idx on families (seller_id, revoked_at, seller_generation);
-- The version before reads by the new ones, too.
drop index concurrently if exists families_client_id_idx;
drop index concurrently if exists families_seller_id_idx;

-- It may be there after a run that broke off.
insert into schema_facts values ('0038', '0.1.0') on conflict do nothing;
