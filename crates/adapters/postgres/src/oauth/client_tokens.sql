-- name: ISSUE
-- One element each for each token: $1 families; $2 sellers; $3 applications; $4 scopes; $5 hashes; $6 lifetimes in
-- microseconds.
-- Returns the families that were stored: those of which application and owner are valid, and the scopes still granted.
-- It locks the applications and then their owners, each in the order of their keys, which is the same for all batches.
-- Their state is read from the locked rows.
with given as materialized (
    select *
    from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::integer[], $5::bytea[], $6::bigint[])
        as k (family, seller, client, scopes, hash, lifetime)
),
setting as materialized (
    -- A transaction that changes one of the rows holds it until its commit, and the whole batch would wait for it. So
    -- the timeout is short, and a batch that exceeds it is split.
    select set_config('lock_timeout', '100ms', true) as lock_timeout
),
application as materialized (
    select a.client_id, a.owner_id, a.scopes, a.token_generation
    from setting
    cross join applications as a
    -- Read, so that it is set: PostgreSQL does not execute a table expression that is never read.
    where setting.lock_timeout <> ''
      and a.client_id in (select client from given)
      and a.status <> 'suspended'
      and a.deleted_at is null
    order by a.client_id
    for share of a
),
owner as materialized (
    select s.id, s.token_generation
    from sellers as s
    -- An array: for a list, the planner's estimate is so high that it scans the whole table while there are only a few
    -- thousand sellers.
    where s.id = any(array(select owner_id from application))
      and s.closed_at is null
    order by s.id
    for share of s
),
valid as materialized (
    select g.*, a.token_generation as application_generation, owner.token_generation as seller_generation
    from given as g
    join application as a on a.client_id = g.client and a.owner_id = g.seller and g.scopes & ~a.scopes = 0
    join owner on owner.id = g.seller
),
family as (
    insert into families (id, seller_id, client_id, application_generation, seller_generation, kind, scopes)
    select family, seller, client, application_generation, seller_generation, 'client_credentials', scopes
    from valid
    order by client, family
)
insert into access_tokens (family_id, hash, expires_at)
select family, hash, clock.at + lifetime * interval '1 microsecond'
from valid
cross join (select api_now() as at) as clock
order by family
returning family_id
