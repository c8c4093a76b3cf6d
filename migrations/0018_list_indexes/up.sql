-- Builds each index without a lock that anybody waits for, a second for each million rows or so, and waits for transactions that are
-- older. Each statement is sent alone, so a run that breaks off leaves an invalid index, which the next one drops.

-- What a seller has consented to: the families of a connection, and not those of the seller's own use.
drop index concurrently if exists families_consented_idx;
create index concurrently families_consented_idx on families (seller_id, client_id, generation) where generation is not null;
-- Mails that were given up, as operators list them.
drop index concurrently if exists mails_given_up_idx;
create index concurrently mails_given_up_idx on mails (id) where dead_at is not null;
-- An owner's applications, newest first, without those that were deleted.
drop index concurrently if exists applications_owner_idx;
create index concurrently applications_owner_idx on applications (owner_id, client_id) where deleted_at is null and not built_in;

insert into schema_facts values ('0018', '0.1.0');
