-- name: PAGE
-- What is needed to judge a page's beginning, once, and its events, unsorted.
-- $1 the seller; $2 the number after which it begins, else $3 the time from which it has all events, else it begins with the oldest; $4 the
-- names of events; $5 how many events at most; $6 how many are looked at.
--
-- A transaction lasts 10 s at most, but its COMMIT may wait for a disk or a standby: what was recorded up to a minute before $3 may have
-- been committed later.
-- Numbers have no gaps, so that the number of the last event that was looked at follows from the first's.
with state as materialized (
    select
        coalesce(max(j.last_number), 0) as last,
        (select number from journal where seller_id = $1 order by number limit 1) as oldest,
        (select id from journal where seller_id = $1 and number = $2) as present,
        (select api_now()) as at,
        (select set_at from instance where key = 'journal') as begun_at
    from journals as j
    where j.seller_id = $1
),
start as materialized (
    select
        case
            when $2::bigint is not null then $2
            when $3::timestamptz > at then last
            when $3 is not null then coalesce(
                (
                    select number - 1
                    from journal
                    where seller_id = $1
                      and recorded_at >= $3 - interval '1 minute'
                    order by recorded_at, number
                    limit 1
                ),
                last
            )
            else coalesce(oldest - 1, last)
        end as number
    from state
)
select state.last, state.oldest, state.present, state.at, state.begun_at, start.number as start, ended.id as ended,
    null as number, null as id, null as event, null as occurred_at, null as order_id, null as order_number, null as offer_id
from state
cross join start
left join lateral (
    select id
    from journal
    where seller_id = $1
      and number = least(state.last, start.number + $6)
) as ended on true
union all
select null, null, null, null, null, null, null, e.number, e.id, e.event, e.occurred_at, e.order_id, e.order_number, e.offer_id
from start
cross join lateral (
    select *
    from journal
    where seller_id = $1
      and number > start.number
      and number <= start.number + $6
      and event = any($4)
    order by number
    limit $5
) as e

-- name: LAST_NUMBERS
-- $1 sellers.
-- Each is looked up on its own, so that one plan serves lists of any length.
select k.seller_id, j.last_number
from unnest((select $1::uuid[])) as k (seller_id)
cross join lateral (
    select last_number
    from journals
    where seller_id = k.seller_id
    offset 0
) as j
