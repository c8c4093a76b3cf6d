-- name: ADMIT
-- One element each for each distinct token: $1 families; $2 hashes; $3 numbers of requests to count. $4 the limiter of requests.
-- Looks up all tokens and counts the requests of the live ones; of a dead one it tells whose it was and why it is dead.
--
-- It returns one row per known token, and one per application with the place of its last request. The caller joins
-- them, since the server's join of two results of unknown size costs the product of their sizes.
with clock as materialized (
    -- Read once, so that all counts fall into the same window. The commit is asynchronous; the setting stands beside
    -- the clock, which is always read: PostgreSQL does not execute a table expression that is never read.
    select at, date_trunc('minute', at, 'UTC') as window_start, mode
    from (select api_now() as at, set_config('synchronous_commit', 'off', true) as mode) as present
),
known as materialized (
    select k.n, k.times, caller.*
    from clock
    -- Subqueries pass the keys, so that one plan serves lists of any length.
    cross join unnest((select $1::uuid[]), (select $2::bytea[]), (select $3::bigint[])) with ordinality
        as k (family, hash, times, n)
    cross join lateral (
        -- A token may have its own, narrower scopes.
        select f.seller_id, s.seller_no, s.name as seller_name, f.client_id, a.name,
            coalesce(t.scopes, f.scopes) & a.scopes as scopes, f.kind, t.expires_at, a.rate_limit,
            case
                -- Null for a live token: its row, its family, its application and account must all be valid, and so
                -- must the connection of a family that came from a consent. The family must have their present
                -- generations: raising one revokes all tokens of an application, an account or a connection. An
                -- application ends with its owner's account. The valid states are listed, so that a state added later
                -- is rejected by default.
                when t.revoked_at is null
                    and (t.expires_at is null or t.expires_at > clock.at)
                    and f.revoked_at is null
                    and f.application_generation = a.token_generation
                    and f.seller_generation = s.token_generation
                    and a.deleted_at is null
                    and a.status in ('pending', 'active')
                    and s.closed_at is null
                    and (
                        a.owner_id = f.seller_id
                        or exists (select from sellers as o where o.id = a.owner_id and o.closed_at is null)
                    )
                    and (
                        f.generation is null
                        or exists (
                            select
                            from connections as c
                            where c.client_id = f.client_id
                              and c.seller_id = f.seller_id
                              and c.generation = f.generation
                        )
                    )
                    then null
                when t.expires_at <= clock.at then 'expired'
                when a.status = 'suspended' then 'suspended'
                when s.closed_at is not null
                    or exists (select from sellers as o where o.id = a.owner_id and o.closed_at is not null)
                    then 'closed'
                else 'revoked'
            end as ended
        from access_tokens as t
        join families as f on f.id = t.family_id
        join applications as a on a.client_id = f.client_id
        join sellers as s on s.id = f.seller_id
        where t.family_id = k.family
          and t.hash = k.hash
        -- Each key is looked up on its own: without this, the planner joins whole tables at the list length that it
        -- estimates.
        offset 0
    ) as caller
),
counted as (
    insert into rate_windows as w (window_start, kind, subject, used)
    select clock.window_start, $4, g.client_id, g.times
    from (
        select client_id, sum(times)::bigint as times
        from known
        where ended is null
          and times > 0
        group by client_id
    ) as g
    cross join clock
    -- One row for each application, locked in order. Otherwise two batches with the same applications in different
    -- orders could deadlock.
    order by g.client_id
    on conflict (window_start, kind, subject) do update
    set used = w.used + excluded.used
    returning subject, used
)
select n, seller_id, seller_no, seller_name, client_id, name, scopes, kind, expires_at, rate_limit, ended,
    null::bigint as used, at, window_start
from known
cross join clock
union all
select null, null, null, null, subject, null, null, null, null, null, null, used, at, window_start
from counted
cross join clock
