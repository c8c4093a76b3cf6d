-- name: ACCOUNT
-- $1 the mail address.
select id, seller_no, name, email, created_at, closed_at, password_hash
from sellers
where lower(email) = lower($1)

-- name: SIGNED_IN
-- $1 the sessions' hashes, each once; $2 how long one lasts without use, $3 and at most, both in microseconds.
with clock as materialized (
    -- Uses are committed asynchronously: if a crash loses one, its session ends a minute early.
    select api_now() as at, set_config('synchronous_commit', 'off', true) as mode
),
valid as materialized (
    select e.hash, e.created_at as opened_at, e.seen_at,
        s.id, s.seller_no, s.name, s.email, s.created_at, s.closed_at
    from clock
    cross join unnest((select $1::bytea[])) as k (hash)
    join sessions e on e.hash = k.hash
    join sellers s on s.id = e.seller_id
    where e.seen_at > clock.at - $2::bigint * interval '1 microsecond'
      and e.created_at > clock.at - $3::bigint * interval '1 microsecond'
      and s.closed_at is null
      and s.session_generation = e.generation
),
-- Another batch may record the same uses in another order: skipping its rows avoids a deadlock.
unrecorded as materialized (
    select e.hash
    from clock
    cross join valid
    join sessions e on e.hash = valid.hash
    where e.seen_at <= clock.at - interval '1 minute'
    for no key update of e skip locked
),
recorded as (
    update sessions e
    set seen_at = clock.at
    from clock
    cross join unrecorded
    where e.hash = unrecorded.hash
    returning e.hash, e.seen_at
)
select valid.hash, valid.id, valid.seller_no, valid.name, valid.email, valid.created_at, valid.closed_at, valid.opened_at,
    coalesce(recorded.seen_at, valid.seen_at) as seen_at, clock.at as now
from valid
cross join clock
left join recorded on recorded.hash = valid.hash

-- name: LINK
-- $1 the link's hash.
select l.kind, l.expires_at, s.id, s.seller_no, s.name, s.email, s.created_at, s.closed_at
from (
    select hash, seller_id, kind, expires_at from links
    union all
    select hash, seller_id, kind, expires_at from earlier_links
) l
join sellers s on s.id = l.seller_id
where l.hash = $1
  and l.expires_at > (select api_now())
  and s.closed_at is null

-- name: PERSONAL_TOKENS
-- $1 the seller; $2 the time at which the tokens are live, or null for the present.
select p.id, p.name, f.scopes, p.created_at, t.expires_at
from personal_tokens p
join families f on f.id = p.id
join access_tokens t on t.family_id = f.id
join sellers s on s.id = f.seller_id and s.token_generation = f.seller_generation
join applications a on a.client_id = f.client_id and a.token_generation = f.application_generation
where p.seller_id = $1
  and f.revoked_at is null
  and t.revoked_at is null
  and (t.expires_at is null or t.expires_at > coalesce($2, (select api_now())))
order by p.created_at desc, p.id desc

-- name: OPERATORS
-- $1 the tokens' hashes, each once.
with clock as materialized (
    -- Uses are committed asynchronously: a crash may lose the last one.
    select api_now() as at, set_config('synchronous_commit', 'off', true) as mode
),
known as materialized (
    select o.hash, o.id, o.name, o.created_at, o.revoked_at, o.used_at, o.expires_at, o.read_only,
        o.revoked_at is null and (o.expires_at is null or o.expires_at > clock.at) as live
    from clock
    cross join unnest((select $1::bytea[])) as k (hash)
    join operator_tokens o on o.hash = k.hash
),
-- Skips rows that another batch records: see SIGNED_IN.
unrecorded as materialized (
    select o.id
    from clock
    cross join known
    join operator_tokens o on o.id = known.id
    where known.live
      and (o.used_at is null or o.used_at <= clock.at - interval '1 minute')
    for no key update of o skip locked
),
used as (
    update operator_tokens o
    set used_at = clock.at
    from clock
    cross join unrecorded
    where o.id = unrecorded.id
)
select *
from known
