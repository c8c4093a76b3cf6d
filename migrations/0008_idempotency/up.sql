-- Takes no lock that anybody waits for: everything here is new.

-- Claims on idempotency keys, and the answers that were remembered. seller_id is the nil UUID for the back office's keys,
-- so it refers to no table.
--
-- A row is claimed, and soon afterwards completed with an answer that is longer. Room on each page and an index that the
-- completion does not touch keep that second version off the indexes (HOT).
create table idempotency (
    seller_id uuid not null,
    fence uuid not null,
    created_at timestamptz not null,
    -- The end of the lease; once completed, of remembering.
    expires_at timestamptz not null,
    status smallint check (status between 200 and 299),
    key text not null check (octet_length(key) between 1 and 128),
    fingerprint bytea not null check (octet_length(fingerprint) = 32),
    -- Sealed; the id of the key that sealed it comes with it.
    body bytea,
    primary key (seller_id, key),
    constraint idempotency_completed_check check ((status is null) = (body is null))
) with (fillfactor = 60);
-- For clearing what has expired.
create index idempotency_created_idx on idempotency (created_at);

insert into schema_facts values ('0008', '0.1.0');
