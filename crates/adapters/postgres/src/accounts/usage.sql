-- name: ADD_USAGE
-- $1 sellers, $2 applications, $3 statuses and $4 numbers of calls, one of each per count.
-- Each row is written once and in order, so that concurrent processes cannot deadlock.
with clock as materialized (
    -- Asynchronous commit.
    select at, date_trunc('hour', at, 'UTC') as hour, mode
    from (select api_now() as at, set_config('synchronous_commit', 'off', true) as mode) present
),
counted as materialized (
    select *
    from unnest($1::uuid[], $2::uuid[], $3::smallint[], $4::bigint[]) as k (seller, client, status, calls)
    where k.calls > 0
),
used as (
    -- The last use by seller, to the minute.
    insert into last_uses as l (seller_id, client_id, used_at)
    select distinct k.seller, k.client, clock.at
    from clock
    cross join counted k
    where not exists (
        select
        from last_uses l
        where l.seller_id = k.seller
          and l.client_id = k.client
          and l.used_at > clock.at - interval '1 minute'
    )
    order by k.seller, k.client
    on conflict (seller_id, client_id) do update
    set used_at = greatest(l.used_at, excluded.used_at)
)
insert into application_usage as u (client_id, hour, calls, status)
select k.client, clock.hour, sum(k.calls)::bigint, k.status
from clock
cross join counted k
group by k.client, clock.hour, k.status
order by k.client, k.status
on conflict (client_id, hour, status) do update
set calls = u.calls + excluded.calls

-- name: USAGE
-- $1 the application; $2 since when; $3 the kind of limit; $4 the limit's subject.
(
    select hour, status, calls
    from application_usage
    where client_id = $1
      and hour > $2::timestamptz - interval '1 hour'
    order by hour, status
)
union all
-- The current minute.
select null, null, used
from rate_windows
where window_start = date_trunc('minute', (select api_now()), 'UTC')
  and kind = $3
  and subject = $4
