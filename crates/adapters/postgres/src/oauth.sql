-- name: LOCK_FAMILY
-- $1 the family.
with family as materialized (
    select client_id, seller_id, generation
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
select (select count(*) from connection) as connections
from family

-- name: CREDENTIALS
-- One element each for each credential: $1 its family; $2 its hash, or an empty one for the family alone.
-- Returns the families that are known, each with all that a verdict depends on, as of one moment. `versions` changes with
-- each update of the family, its connection, its application and its seller.
with clock as materialized (
    select api_now() as at
)
select k.n, stored.*
from clock
cross join unnest((select $1::uuid[]), (select $2::bytea[])) with ordinality as k (family, hash, n)
cross join lateral (
    select clock.at, f.id, f.seller_id, f.client_id, f.scopes,
        f.revoked_at is not null
            or f.seller_generation <> s.token_generation
            or coalesce(f.application_generation <> a.token_generation, false) as revoked,
        f.generation is not null and c.generation is null as disconnected,
        s.closed_at is not null as closed, access.hash is not null as is_access,
        a.status, a.scopes as application_scopes,
        code.redirect_uri, code.code_challenge, token.scopes as token_scopes,
        coalesce(code.expires_at, token.expires_at) as expires_at,
        coalesce(code.used_at, token.used_at) as used_at,
        -- The guard of EXCHANGE, which lists the same rows in the same order. Every change of a row gives it
        -- another `xmin`; locks and freezing leave it. A row that is missing shortens the list.
        concat_ws(' ', f.xmin, c.xmin, a.xmin, s.xmin) as versions
    from families as f
    join sellers as s on s.id = f.seller_id
    left join applications as a on a.client_id = f.client_id and a.deleted_at is null
    left join connections as c on c.client_id = f.client_id and c.seller_id = f.seller_id
        and c.generation = f.generation
    left join authorization_codes as code on code.family_id = f.id and code.hash = k.hash
    left join refresh_tokens as token on token.family_id = f.id and token.hash = k.hash
    left join access_tokens as access on access.family_id = f.id and access.hash = k.hash
    where f.id = k.family
    -- Each key is looked up on its own, as in ADMIT.
    offset 0
) as stored

-- name: ADD_CONSENT
-- $1 the application; $2 the seller; $3 the family; $4 its kind; $5 its scopes; $6 the code's hash; $7 its expiry;
-- $8 the redirect URI; $9 the challenge.
with connection as (
    insert into connections as c (client_id, seller_id, connected_at)
    values ($1, $2, (select api_now()))
    on conflict (client_id, seller_id) do update
    set disconnected_at = null,
        connected_at = case when c.disconnected_at is null then c.connected_at else excluded.connected_at end
    returning client_id, seller_id, generation
),
family as (
    insert into families
        (id, kind, scopes, seller_id, client_id, generation, seller_generation, application_generation)
    select $3, $4, $5, c.seller_id, c.client_id, c.generation, s.token_generation, a.token_generation
    from connection as c
    join sellers as s on s.id = c.seller_id
    join applications as a on a.client_id = c.client_id
    returning id
)
insert into authorization_codes (family_id, hash, expires_at, redirect_uri, code_challenge)
select id, $6, $7, $8, $9
from family

-- name: ACCESS_TOKEN
-- $1 the family; $2 the access token's hash. A revoked one expired at that time.
select coalesce(t.scopes, f.scopes) as scopes, least(t.expires_at, t.revoked_at) as expires_at
from access_tokens as t
join families as f on f.id = t.family_id
where f.id = $1
  and t.hash = $2
