-- Builds each index without a lock that anybody waits for, and waits for transactions that are older. Each statement is sent alone, so a
-- run that breaks off leaves an invalid index, which the next one drops.

-- A seller's offers with an external id, or an EAN, in the order of the list. Neither is unique: all of a seller's offers may have the same.
drop index concurrently if exists offers_external_id_idx;
create index concurrently offers_external_id_idx on offers (seller_id, external_id, created_at, id) where external_id is not null;
drop index concurrently if exists offers_ean_idx;
create index concurrently offers_ean_idx on offers (seller_id, ean, created_at, id) where ean is not null;

-- It may be there after a run that broke off.
insert into schema_facts values ('0031', '0.1.0') on conflict do nothing;
