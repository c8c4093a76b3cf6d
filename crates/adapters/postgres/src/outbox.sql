-- name: ADD_TO_FEED
-- $1 the sellers, $2 times and $3 kinds of the items; $4 their offers, or $5 orders, or $6 applications; $7 prices, $8 stocks, $9 statuses.
insert into changes (seller_id, at, kind, offer_id, order_id, client_id, price_amount, stock, status)
select *
from unnest(
    $1::uuid[], $2::timestamptz[], $3::text[], $4::uuid[], $5::uuid[], $6::uuid[], $7::bigint[], $8::integer[], $9::text[]
)

-- name: FAN_OUT
-- Queues one delivery per event and subscription, and wakes sleeping delivery queues.
-- $1 the seller; $2 the events' names; $3 and $4 their bodies before and after the delivery's id; $5 their times; $6 the latest of these.
--
-- - A subscription receives the event if its queue is live.
-- - Its row is locked `for key share`, so fan-outs do not wait for each other, nor for a worker. A leased queue is left to its worker,
--   which looks for deliveries once more after it has put the queue to sleep and this lock is gone. Only the queues of a suspended
--   application sleep with work in them, until reinstatement wakes them.
-- - It wakes at the time of this statement, soon before the commit: workers look for queues from where they last saw one.
-- - Whether to wake a queue is decided by its locked row. The statement's snapshot may be older, and a queue judged by it could sleep
--   forever with work in it.
with live as materialized (
    select q.seller_id, q.id, q.events, q.leased, q.wake_at
    from subscription_queues as q
    where q.seller_id = $1
      and q.events && $2
      and q.state = 'live'
    order by q.id
    for key share of q
),
queued as (
    insert into deliveries (seller_id, subscription_id, id, created_at, due_at, event, body)
    select d.seller_id, d.subscription_id, d.id, d.at, d.at, d.event, d.before || convert_to(d.id::text, 'UTF8') || d.after
    from (
        select l.seller_id, l.id as subscription_id, api_uuid(e.at) as id, e.event, e.before, e.after, e.at
        from live as l
        join unnest($2, $3::bytea[], $4::bytea[], $5::timestamptz[]) with ordinality as e (event, before, after, at, n)
            on l.events @> array[e.event]
        order by l.id, e.n
    ) as d
),
asleep as materialized (
    select s.seller_id, s.id, s.leased, s.wake_at
    from live as l
    join subscriptions as s on s.seller_id = l.seller_id and s.id = l.id
    where not l.leased
      and (l.wake_at is null or l.wake_at > $6)
    order by s.id
    for no key update of s
)
update subscriptions as s
set wake_at = (select api_now())
from asleep as w
where s.seller_id = w.seller_id
  and s.id = w.id
  and not w.leased
  and (w.wake_at is null or w.wake_at > $6)
