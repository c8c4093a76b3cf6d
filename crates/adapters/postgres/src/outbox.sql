-- name: ADD_TO_FEED
-- $1 the sellers, $2 times and $3 kinds of the items; $4 their offers, or $5 orders, or $6 applications; $7 prices, $8 stocks, $9 statuses.
insert into changes (seller_id, at, kind, offer_id, order_id, client_id, price_amount, stock, status)
select *
from unnest(
    $1::uuid[], $2::timestamptz[], $3::text[], $4::uuid[], $5::uuid[], $6::uuid[], $7::bigint[], $8::integer[], $9::text[]
)

-- name: FAN_OUT
-- Queues one delivery per event and subscription of a seller.
-- $1 the seller; $2 the events' names; $3 their bodies, with nil ids of deliveries: see `Event::body_without_id`; $4 their times.
--
-- - A subscription receives the event if its queue is live.
-- - Its row is locked `for key share`, so fan-outs do not wait for each other, nor for a worker.
-- - Newest versions are found as in `webhooks/claiming.sql`, from one subscription to the one before.
with recursive subscribed (id, events) as (
    -- After an entry that is none.
    select 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid, null::text[]
    union all
    select n.*
    from subscribed as d
    cross join lateral (
        select id, events
        from subscriptions
        where seller_id = $1
          and id < d.id
        order by id desc
        limit 1
    ) as n
)
insert into deliveries (seller_id, subscription_id, id, created_at, due_at, event, body)
select $1, d.subscription_id, d.id, d.at, d.at, d.event, overlay(d.body placing convert_to(d.id::text, 'UTF8') from 8)
from (
    select q.id as subscription_id, api_uuid(e.at) as id, e.event, e.body, e.at
    from (
        select id
        from subscribed
        where events && $2
        order by id
    ) as d
    cross join lateral (
        select id, events
        from subscription_queues
        where seller_id = $1
          and id between d.id and d.id
          and events && $2
          and state = 'live'
        order by id desc
        limit 1
        for key share
    ) as q
    join unnest($2::text[], $3::bytea[], $4::timestamptz[]) with ordinality as e (event, body, at, n) on q.events @> array[e.event]
    order by q.id, e.n
) as d

-- name: ANNOUNCE
-- Records the events in their sellers' journals, and wakes the sleeping queues of their deliveries.
-- $1 the sellers, in order, $2 how many events each has; $3 the sellers, $4 ids and $5 names of the events, $6 when they occurred, $7 their
-- orders and $8 the orders' numbers, or $9 their offers, $10 how many of the seller's events follow; $11 the events' first and $12 last time.
--
-- - The rows in `journals` stay locked until the commit: numbers have no gaps, and the order of the commits. Only the idempotency key's is
--   locked later.
-- - FAN_OUT's lock is older than this statement's snapshot: what was released before is seen asleep here, what is released later meets
--   the lock: see CONTENDED. In one statement a queue could be put to sleep unseen.
-- - The update is executed before the other parts, so that queues, of all sellers, are locked before journals.
-- - A queue that is leased or due is left to its worker, which looks for deliveries once more after it has put the queue to sleep and the
--   fan-out's lock is gone. Only the queues of a suspended application sleep with work in them, until reinstatement wakes them.
-- - A queue wakes at the time of this statement, soon before the commit: workers look for queues from where they last saw one.
with recursive subscribed (seller_id, id, leased, wake_at, place) as (
    -- The subselect hides the array's length: PostgreSQL assumes ten sellers in every plan, and so keeps the generic one.
    select seller_id, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid, true, null::timestamptz, null::tid
    from unnest((select $1::uuid[])) as k (seller_id)
    union all
    select n.*
    from subscribed as d
    cross join lateral (
        select seller_id, id, leased, wake_at, ctid
        from subscriptions
        where seller_id = d.seller_id
          and id < d.id
        order by id desc
        limit 1
    ) as n
),
numbered as (
    insert into journals as j (seller_id, last_number, recorded_at)
    select seller_id, events, (select api_now())
    from unnest($1::uuid[], $2::bigint[]) as e (seller_id, events)
    on conflict (seller_id) do update
    set last_number = j.last_number + excluded.last_number, recorded_at = greatest(j.recorded_at, excluded.recorded_at)
    returning seller_id, last_number, recorded_at
),
recorded as (
    insert into journal (seller_id, number, id, event, occurred_at, recorded_at, order_id, order_number, offer_id)
    select
        seller_id, j.last_number - e.following, e.id, e.event, e.occurred_at, j.recorded_at, e.order_id, e.order_number, e.offer_id
    from numbered as j
    join unnest(
        $3::uuid[], $4::uuid[], $5::text[], $6::timestamptz[], $7::uuid[], $8::text[], $9::uuid[], $10::bigint[]
    ) as e (seller_id, id, event, occurred_at, order_id, order_number, offer_id, following) using (seller_id)
),
seen as materialized (
    select s.seller_id, s.id, s.place
    from subscribed as s
    where not s.leased
      and (s.wake_at is null or s.wake_at > (select api_now()))
      and exists (
          select
          from deliveries as d
          where d.seller_id = s.seller_id
            and d.subscription_id = s.id
            and d.attempt = 0
            and d.due_at between $11 and $12
          offset 0
      )
),
asleep as materialized (
    select s.seller_id, s.id
    from subscriptions as s
    where s.ctid = any(array(select place from seen))
      and not s.leased
      and (s.wake_at is null or s.wake_at > (select api_now()))
    order by s.seller_id, s.id
    for no key update of s
),
-- Those that another transaction changed at that moment, perhaps without waking them. They are locked by now: `asleep` locks the version
-- that it goes on to even where it leaves that out.
replaced as materialized (
    select seller_id, id
    from seen
    except
    select seller_id, id
    from asleep
),
woken as (
    update subscriptions as s
    set wake_at = (select api_now())
    where s.seller_id = any(array(select seller_id from replaced))
      and s.id = any(array(select id from replaced))
      and not s.leased
      and (s.wake_at is null or s.wake_at > (select api_now()))
)
update subscriptions as s
set wake_at = (select api_now())
where s.ctid = any(array(
          select w.place
          from seen as w
          join asleep as a using (seller_id, id)
      ))
