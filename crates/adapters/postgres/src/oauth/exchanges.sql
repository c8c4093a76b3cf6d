-- name: EXCHANGE_CODES
-- One element each for each exchange: $1 its place; $2 the family; $3 the code's hash; $4 the application; $5 the
-- redirect URI; $6 the challenge; $7 the access token's hash; $8 its lifetime in microseconds; $9 the refresh token's
-- hash; $10 its lifetime in microseconds; $11 when the request was counted. $12 all known scopes.
-- Exchanges the codes that are valid and whose rows are free; returns their places with the scopes of their pairs.
--
-- Locks are those of a single exchange, in its order: families, then connections. A locked row is skipped: nothing is
-- waited for, so application and seller are read as of about the same moment.
with clock as materialized (
    -- Locks that cannot be skipped are waited for this long.
    select api_now() as at, set_config('lock_timeout', '50ms', true) as lock_timeout
),
given as materialized (
    select k.*, clock.at
    from clock
    cross join unnest(
        (select $1::bigint[]), (select $2::uuid[]), (select $3::bytea[]), (select $4::uuid[]), (select $5::text[]),
        (select $6::text[]), (select $7::bytea[]), (select $8::bigint[]), (select $9::bytea[]),
        (select $10::bigint[]), (select $11::timestamptz[])
    ) as k (
        n, family, hash, client, redirect_uri, challenge, access, access_lifetime, refresh, refresh_lifetime, asked_at
    )
    -- The request was counted before its body was read: one with a slow body goes alone.
    where clock.at < k.asked_at + interval '5 seconds'
),
family as materialized (
    select g.n, f.seller_id, f.client_id, f.generation, f.scopes, f.application_generation, f.seller_generation
    from given as g
    join families as f on f.id = g.family
    where f.client_id = g.client
      and f.revoked_at is null
    order by f.id
    for no key update of f skip locked
),
connection as materialized (
    select f.n, f.scopes, f.application_generation, f.seller_generation, c.seller_id
    from family as f
    join connections as c on c.client_id = f.client_id and c.seller_id = f.seller_id
    where c.generation = f.generation
    order by c.client_id, c.seller_id
    for share of c skip locked
),
used as (
    -- A row that another transaction has changed since the statement began is compared again after it was locked. So of
    -- two uses of one code the second drops out.
    update authorization_codes as t
    set used_at = g.at, expires_at = g.at + interval '90 days'
    from connection as c
    join given as g on g.n = c.n
    join applications as a on a.client_id = g.client and a.status <> 'suspended' and a.deleted_at is null
        and a.token_generation = c.application_generation
    join sellers as s on s.id = c.seller_id and s.closed_at is null and s.token_generation = c.seller_generation
    where t.family_id = g.family
      and t.hash = g.hash
      and t.used_at is null
      and t.expires_at > g.at
      and t.redirect_uri = g.redirect_uri
      and t.code_challenge = g.challenge
      and c.scopes & a.scopes <> 0
      and c.scopes & a.scopes & ~$12::integer = 0
    returning g.n, c.scopes & a.scopes as scopes
),
pair as materialized (
    select g.*, u.scopes
    from used as u
    join given as g on g.n = u.n
    order by g.family
),
refreshed as (
    insert into refresh_tokens (family_id, hash, scopes, expires_at)
    select family, refresh, scopes, at + refresh_lifetime * interval '1 microsecond'
    from pair
),
issued as (
    insert into access_tokens (family_id, hash, scopes, expires_at)
    select family, access, scopes, at + access_lifetime * interval '1 microsecond'
    from pair
)
select n, scopes
from pair

-- name: EXCHANGE_REFRESH_TOKENS
-- The parameters are those of EXCHANGE_CODES; $3 the used refresh token's hash; $5 and $6 are null for each.
-- As EXCHANGE_CODES, except that the scopes are the token's own, and that nothing else has to be presented with it.
with clock as materialized (
    select api_now() as at, set_config('lock_timeout', '50ms', true) as lock_timeout
),
given as materialized (
    select k.*, clock.at
    from clock
    cross join unnest(
        (select $1::bigint[]), (select $2::uuid[]), (select $3::bytea[]), (select $4::uuid[]), (select $5::text[]),
        (select $6::text[]), (select $7::bytea[]), (select $8::bigint[]), (select $9::bytea[]),
        (select $10::bigint[]), (select $11::timestamptz[])
    ) as k (
        n, family, hash, client, redirect_uri, challenge, access, access_lifetime, refresh, refresh_lifetime, asked_at
    )
    where clock.at < k.asked_at + interval '5 seconds'
),
family as materialized (
    select g.n, f.seller_id, f.client_id, f.generation, f.application_generation, f.seller_generation
    from given as g
    join families as f on f.id = g.family
    where f.client_id = g.client
      and f.revoked_at is null
    order by f.id
    for no key update of f skip locked
),
connection as materialized (
    select f.n, f.application_generation, f.seller_generation, c.seller_id
    from family as f
    join connections as c on c.client_id = f.client_id and c.seller_id = f.seller_id
    where c.generation = f.generation
    order by c.client_id, c.seller_id
    for share of c skip locked
),
used as (
    update refresh_tokens as t
    set used_at = g.at, expires_at = g.at + interval '90 days'
    from connection as c
    join given as g on g.n = c.n
    join applications as a on a.client_id = g.client and a.status <> 'suspended' and a.deleted_at is null
        and a.token_generation = c.application_generation
    join sellers as s on s.id = c.seller_id and s.closed_at is null and s.token_generation = c.seller_generation
    where t.family_id = g.family
      and t.hash = g.hash
      and t.used_at is null
      and t.expires_at > g.at
      and t.scopes & a.scopes <> 0
      and t.scopes & a.scopes & ~$12::integer = 0
    returning g.n, t.scopes & a.scopes as scopes
),
pair as materialized (
    select g.*, u.scopes
    from used as u
    join given as g on g.n = u.n
    order by g.family
),
refreshed as (
    insert into refresh_tokens (family_id, hash, scopes, expires_at)
    select family, refresh, scopes, at + refresh_lifetime * interval '1 microsecond'
    from pair
),
issued as (
    insert into access_tokens (family_id, hash, scopes, expires_at)
    select family, access, scopes, at + access_lifetime * interval '1 microsecond'
    from pair
)
select n, scopes
from pair
