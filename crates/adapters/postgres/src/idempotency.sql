-- The commit of a claim and of its release is asynchronous: a server crash may lose the claim, and with it the right to complete it, so
-- nothing happens twice. Only the end of a transaction locks a row, which normally takes less than the lock timeout.
--
-- These settings are in table expressions that are read, since PostgreSQL does not execute one that is never read. They end with the
-- statement's transaction.

-- name: CLAIM
-- Claims a key that is free, or of which the lease or retention has expired; otherwise returns no row.
-- $1 the space; $2 the key; $3 the fence; $4 the fingerprint; $5 the lease in microseconds.
insert into idempotency as t (seller_id, key, fence, fingerprint, created_at, expires_at)
select $1, $2, $3, $4, clock.at, clock.at + $5::bigint * interval '1 microsecond'
from (
    select
        api_now() as at, set_config('synchronous_commit', 'off', true) as mode, set_config('lock_timeout', '300ms', true) as lock_timeout
) as clock
on conflict (seller_id, key) do update
set fence = excluded.fence, fingerprint = excluded.fingerprint, created_at = excluded.created_at,
    expires_at = excluded.expires_at, status = null, body = null, etag = null
where t.expires_at <= excluded.created_at
-- Only an existing row was locked, which `xmax` shows.
returning t.xmax <> 0 as existed

-- name: RELEASE
-- $1 the space; $2 the key; $3 the fence.
delete from idempotency as t
using (select set_config('synchronous_commit', 'off', true) as mode) as setting
where t.seller_id = $1
  and t.key = $2
  and t.fence = $3
  and t.status is null

-- name: LOCK_KEY
-- Waits for the transaction that holds the row's lock, or that inserts the row and has not ended, and reads the row; to be rolled back.
-- $1 the space; $2 the key; $3 the fence; $4 the fingerprint.
insert into idempotency as t (seller_id, key, fence, fingerprint, created_at, expires_at)
select $1, $2, $3, $4, clock.at, clock.at
from (select api_now() as at, set_config('lock_timeout', '300ms', true) as lock_timeout) as clock
on conflict (seller_id, key) do update
set fence = t.fence
returning fence, fingerprint, status as answer_status, body, etag

-- name: COMPLETE
-- $1 the space; $2 the key; $3 the fence; $4 the status, $5 the sealed body and $6 the entity tag of the answer.
update idempotency
set status = $4, body = $5, etag = $6, expires_at = clock.at + interval '24 hours'
from (select api_now() as at) as clock
where seller_id = $1
  and key = $2
  and fence = $3
  and status is null
