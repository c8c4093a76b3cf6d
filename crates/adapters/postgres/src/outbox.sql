-- name: ADD_TO_FEED
-- $1 the sellers, $2 times and $3 kinds of the items; $4 their offers, or $5 orders, or $6 applications; $7 prices, $8 stocks, $9 statuses.
insert into changes (seller_id, at, kind, offer_id, order_id, client_id, price_amount, stock, status)
select *
from unnest(
    $1::uuid[], $2::timestamptz[], $3::text[], $4::uuid[], $5::uuid[], $6::uuid[], $7::bigint[], $8::integer[], $9::text[]
)

-- name: ANNOUNCE
-- Records the events in the seller's journal, queues one delivery per event and subscription, and wakes sleeping delivery queues.
-- $1 the seller; $2 the events' names; $3 their bodies, with nil ids: see `Event::body_without_ids`; $4 their times; $5 when they occurred;
-- $6 their orders and $7 the orders' numbers, or $8 their offers.
--
-- - The row in `journals` stays locked until the commit: numbers have no gaps, and the order of the commits. Only the idempotency key's is locked later.
-- - A subscription receives the event if its queue is live.
-- - Its row is locked `for key share`, so fan-outs do not wait for each other, nor for a worker. A leased queue is left to its worker,
--   which looks for deliveries once more after it has put the queue to sleep and this lock is gone. Only the queues of a suspended
--   application sleep with work in them, until reinstatement wakes them.
-- - It wakes at the time of this statement, soon before the commit: workers look for queues from where they last saw one.
-- - Whether to wake a queue is decided by its locked row. The statement's snapshot may be older, and a queue judged by it could sleep
--   forever with work in it.
with announced as materialized (
    select e.*, api_uuid(e.at) as id
    from unnest(
        $2::text[], $3::bytea[], $4::timestamptz[], $5::timestamptz[], $6::uuid[], $7::text[], $8::uuid[]
    ) with ordinality as e (event, body, at, occurred_at, order_id, order_number, offer_id, n)
),
live as materialized (
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
    select d.seller_id, d.subscription_id, d.id, d.at, d.at, d.event,
        overlay(
            overlay(d.body placing convert_to(d.id::text, 'UTF8') from 8)
            placing convert_to(d.event_id::text, 'UTF8') from octet_length(d.body) - 38
        )
    from (
        select l.seller_id, l.id as subscription_id, api_uuid(e.at) as id, e.id as event_id, e.event, e.body, e.at
        from live as l
        join announced as e on l.events @> array[e.event]
        order by l.id, e.n
    ) as d
),
numbered as (
    insert into journals as j (seller_id, last_number, recorded_at)
    values ($1, cardinality($2), (select api_now()))
    on conflict (seller_id) do update
    set last_number = j.last_number + excluded.last_number, recorded_at = greatest(j.recorded_at, excluded.recorded_at)
    returning last_number - cardinality($2) as before, recorded_at
),
recorded as (
    insert into journal (seller_id, number, id, event, occurred_at, recorded_at, order_id, order_number, offer_id)
    select $1, j.before + e.n, e.id, e.event, e.occurred_at, j.recorded_at, e.order_id, e.order_number, e.offer_id
    from numbered as j
    cross join announced as e
),
asleep as materialized (
    select s.seller_id, s.id, s.leased, s.wake_at
    from live as l
    join subscriptions as s on s.seller_id = l.seller_id and s.id = l.id
    where not l.leased
      and (l.wake_at is null or l.wake_at > (select api_now()))
    order by s.id
    for no key update of s
)
update subscriptions as s
set wake_at = (select api_now())
from asleep as w
where s.seller_id = w.seller_id
  and s.id = w.id
  and not w.leased
  and (w.wake_at is null or w.wake_at > (select api_now()))
