-- Takes a lock on `idempotency` for a moment: a column without a default is added to the catalogue alone.
set local lock_timeout = '2s';

-- The entity tag of a stored answer, with its quotes; null for most operations.
alter table idempotency add column etag text;

insert into schema_facts values ('0029', '0.1.0');
