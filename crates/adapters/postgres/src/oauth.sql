-- name: LOCK_FAMILY
-- $1 the family.
-- A row is read as of its lock, not as of the statement's start.
with family as materialized (
    select seller_id, client_id, scopes, revoked_at, generation
    from families
    where id = $1
    for no key update
),
connection as materialized (
    -- A transaction that ends the connection either waits for this one, or was waited for.
    select c.generation
    from family as f
    join connections as c on c.client_id = f.client_id and c.seller_id = f.seller_id
    where f.generation is not null
    for share of c
)
select f.seller_id, f.client_id, f.scopes, f.revoked_at,
    f.generation is not null
        and not exists (select from connection as c where c.generation = f.generation) as disconnected
from family as f

-- name: FAMILY_STATE
-- $1 the family.
select f.seller_generation <> s.token_generation
        or coalesce(f.application_generation <> a.token_generation, false) as revoked,
    s.closed_at, a.status, a.scopes as application_scopes
from families as f
join sellers as s on s.id = f.seller_id
left join applications as a on a.client_id = f.client_id and a.deleted_at is null
where f.id = $1

-- name: ISSUE_TOKEN
-- $1 the family; $2 its kind; $3 its scopes; $4 the seller; $5 the application; $6 the token's hash; $7 its expiry.
with family as (
    insert into families (id, kind, scopes, seller_id, client_id, seller_generation, application_generation)
    select $1, $2, $3, s.id, a.client_id, s.token_generation, a.token_generation
    from sellers as s
    cross join applications as a
    where s.id = $4
      and a.client_id = $5
    returning id
)
insert into access_tokens (family_id, hash, expires_at)
select id, $6, $7
from family

-- name: USE_CODE
-- $1 the family; $2 the code's hash; $3 the refresh token's hash; $4 its expiry; $5 the access token's hash;
-- $6 its expiry; $7 the scopes of both tokens.
-- A code that was used before changes no row, and then nothing is stored.
with used as (
    -- The used hash is kept for 90 days, so that a second use is recognised.
    update authorization_codes
    set used_at = clock.at, expires_at = clock.at + interval '90 days'
    from (select api_now() as at) as clock
    where family_id = $1
      and hash = $2
      and used_at is null
    returning family_id
),
refresh as (
    insert into refresh_tokens (family_id, hash, scopes, expires_at)
    select family_id, $3, $7, $4
    from used
)
insert into access_tokens (family_id, hash, scopes, expires_at)
select family_id, $5, $7, $6
from used

-- name: USE_REFRESH_TOKEN
-- As USE_CODE; $2 the hash of the refresh token that is used.
with used as (
    update refresh_tokens
    set used_at = clock.at, expires_at = clock.at + interval '90 days'
    from (select api_now() as at) as clock
    where family_id = $1
      and hash = $2
      and used_at is null
    returning family_id
),
refresh as (
    insert into refresh_tokens (family_id, hash, scopes, expires_at)
    select family_id, $3, $7, $4
    from used
)
insert into access_tokens (family_id, hash, scopes, expires_at)
select family_id, $5, $7, $6
from used

-- name: STORED_SCOPES
-- $1 the family; $2 the access token's hash.
select coalesce(t.scopes, f.scopes) as scopes
from access_tokens as t
join families as f on f.id = t.family_id
where f.id = $1
  and t.hash = $2

-- name: REVOKE_FAMILY
-- $1 the family. One that is revoked already keeps its first `revoked_at`.
update families
set revoked_at = coalesce(revoked_at, clock.at)
from (select api_now() as at) as clock
where id = $1
