-- name: ISSUE
-- One element each for each token: $1 families; $2 sellers; $3 applications; $4 scopes; $5 hashes; $6 lifetimes in
-- microseconds.
-- Returns the families that were stored: those of which application and owner are valid, and the scopes still granted.
-- It waits for no lock. What is committed after it has read, the gate finds at each use of the token: status, ends and
-- scopes by the rows as they are then, a revocation by the generations, which are stored as they were read.
with valid as materialized (
    select g.*, present.*
    from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::integer[], $5::bytea[], $6::bigint[])
        as g (family, seller, client, scopes, hash, lifetime)
    cross join lateral (
        select a.token_generation as application_generation, s.token_generation as seller_generation
        from applications as a
        join sellers as s on s.id = a.owner_id
        where a.client_id = g.client
          and a.owner_id = g.seller
          and a.status <> 'suspended'
          and a.deleted_at is null
          and s.closed_at is null
          and g.scopes & ~a.scopes = 0
        -- Each is looked up on its own: without this, the planner scans whole tables at the list length that it
        -- estimates.
        offset 0
    ) as present
),
family as (
    insert into families (id, seller_id, client_id, application_generation, seller_generation, kind, scopes)
    select family, seller, client, application_generation, seller_generation, 'client_credentials', scopes
    from valid
)
insert into access_tokens (family_id, hash, expires_at)
select family, hash, clock.at + lifetime * interval '1 microsecond'
from valid
cross join (select api_now() as at) as clock
returning family_id

-- name: EXCHANGE
-- One element each for each exchange: $1 its place; $2 the family; $3 the hash of the code or refresh token; $4 the
-- versions of the rows that its verdict was about; $5 the scopes of its pair; $6 the access token's hash; $7 its expiry;
-- $8 the refresh token's hash; $9 its expiry; $10 when the request was counted.
-- Uses each credential whose rows are free, and are still those that were read; returns the places. A transaction that
-- has locked family and connection before it read the credential passes neither versions nor a time.
--
-- Locks are those of a single exchange, in its order: families, then connections. A locked row is skipped: nothing is
-- waited for, so application and seller are compared as of about the same moment. A row that another transaction has
-- changed since the statement began is compared again after it was locked.
with clock as materialized (
    -- Locks that cannot be skipped are waited for this long.
    select api_now() as at, set_config('lock_timeout', '50ms', true) as lock_timeout
),
family as materialized (
    select k.*, clock.at, f.seller_id, f.client_id, f.xmin as family_version
    from clock
    cross join unnest(
        (select $1::bigint[]), (select $2::uuid[]), (select $3::bytea[]), (select $4::text[]), (select $5::integer[]),
        (select $6::bytea[]), (select $7::timestamptz[]), (select $8::bytea[]), (select $9::timestamptz[]),
        (select $10::timestamptz[])
    ) as k (n, id, hash, versions, scopes, access, access_expires_at, refresh, refresh_expires_at, asked_at)
    join families as f on f.id = k.id
    -- The request was counted before its body was read: one with a slow body goes alone.
    where k.asked_at is null
       or clock.at < k.asked_at + interval '5 seconds'
    order by f.id
    for no key update of f skip locked
),
unchanged as materialized (
    select f.*
    from family as f
    join connections as c on c.client_id = f.client_id and c.seller_id = f.seller_id
    join applications as a on a.client_id = f.client_id
    join sellers as s on s.id = f.seller_id
    where f.versions is null
       or f.versions = concat_ws(' ', f.family_version, c.xmin, a.xmin, s.xmin)
    order by c.client_id, c.seller_id
    for share of c skip locked
),
code as (
    -- Of two uses of one credential, the second drops out. The used hash is kept for 90 days, or as long as it would
    -- have been valid, so that a second use is recognised.
    update authorization_codes as t
    set used_at = u.at, expires_at = greatest(t.expires_at, u.at + interval '90 days')
    from unchanged as u
    where t.family_id = u.id
      and t.hash = u.hash
      and t.used_at is null
    returning u.n
),
token as (
    update refresh_tokens as t
    set used_at = u.at, expires_at = greatest(t.expires_at, u.at + interval '90 days')
    from unchanged as u
    where t.family_id = u.id
      and t.hash = u.hash
      and t.used_at is null
    returning u.n
),
pair as materialized (
    select u.*
    from unchanged as u
    where u.n in (select n from code union all select n from token)
    order by u.id
),
refreshed as (
    insert into refresh_tokens (family_id, hash, scopes, expires_at)
    select id, refresh, scopes, refresh_expires_at
    from pair
),
issued as (
    insert into access_tokens (family_id, hash, scopes, expires_at)
    select id, access, scopes, access_expires_at
    from pair
)
select n
from pair
