-- A subscription has ended if nothing will ever be delivered there again. It is inactive then, even if its row is not
-- yet: those of one application or seller are many, and follow its end in batches. Its deliveries have no `due_at`,
-- even if their rows still have one. What tells the end is a correlated subquery, so that the application of each
-- subscription is looked up by key, however many the planner estimates.

-- name: SUBSCRIPTIONS_OF_APPLICATION
-- $1 the seller; $2 the application.
select
    s.id, s.client_id, s.url, s.events, s.created_at,
    s.active and not coalesce((
        select
            a.deleted_at is not null or o.closed_at is not null or v.closed_at is not null
            or (s.connection_generation is not null and s.connection_generation is distinct from c.generation)
        from applications as a
        join sellers as o on o.id = a.owner_id
        join sellers as v on v.id = s.seller_id
        left join connections as c
            on c.client_id = a.client_id and c.seller_id = v.id and c.disconnected_at is null
        where a.client_id = s.client_id
    ), true) as active
from subscriptions as s
where s.seller_id = $1
  and s.client_id = $2
order by s.created_at, s.id

-- name: SUBSCRIPTION
-- $1 the seller; $2 the subscription.
-- With its application, unless that is deleted: its subscriptions are deleted in batches.
select
    s.id, s.client_id, s.url, s.events, s.created_at,
    s.active and not coalesce((
        select
            a.deleted_at is not null or o.closed_at is not null or v.closed_at is not null
            or (s.connection_generation is not null and s.connection_generation is distinct from c.generation)
        from applications as a
        join sellers as o on o.id = a.owner_id
        join sellers as v on v.id = s.seller_id
        left join connections as c
            on c.client_id = a.client_id and c.seller_id = v.id and c.disconnected_at is null
        where a.client_id = s.client_id
    ), true) as active,
    app.name as app_name, app.owner_id = s.seller_id as is_own
from subscriptions as s
left join applications as app on app.client_id = s.client_id and app.deleted_at is null
where s.seller_id = $1
  and s.id = $2

-- name: SUBSCRIPTIONS_OF_SELLER
-- $1 the seller; $2 the subscription after which the page begins; $3 how many at most.
-- Without those of deleted applications.
select
    s.id, s.client_id, s.url, s.events, s.created_at,
    s.active and not coalesce((
        select
            a.deleted_at is not null or o.closed_at is not null or v.closed_at is not null
            or (s.connection_generation is not null and s.connection_generation is distinct from c.generation)
        from applications as a
        join sellers as o on o.id = a.owner_id
        join sellers as v on v.id = s.seller_id
        left join connections as c
            on c.client_id = a.client_id and c.seller_id = v.id and c.disconnected_at is null
        where a.client_id = s.client_id
    ), true) as active,
    app.name as app_name, app.owner_id = s.seller_id as is_own
from subscriptions as s
join applications as app on app.client_id = s.client_id and app.deleted_at is null
where s.seller_id = $1
  and s.id > $2
order by s.id
limit $3

-- name: HISTORY
-- $1 the seller; $2 the application; $3 the subscription.
-- Finds the newest by id, since ids rise with time, and returns them in the order in which they were queued. A
-- subscription without deliveries has one row.
select
    d.id, d.event, d.created_at, d.attempt,
    case when s.active and not coalesce((
        select
            a.deleted_at is not null or o.closed_at is not null or v.closed_at is not null
            or (s.connection_generation is not null and s.connection_generation is distinct from c.generation)
        from applications as a
        join sellers as o on o.id = a.owner_id
        join sellers as v on v.id = s.seller_id
        left join connections as c
            on c.client_id = a.client_id and c.seller_id = v.id and c.disconnected_at is null
        where a.client_id = s.client_id
    ), true) then d.due_at end as due_at,
    d.delivered_at, d.response_status, d.failure, d.duration_ms
from subscriptions as s
left join lateral (
    select *
    from deliveries as d
    where d.seller_id = s.seller_id
      and d.subscription_id = s.id
    order by d.id desc
    limit 100
) as d on true
where s.seller_id = $1
  and s.client_id = $2
  and s.id = $3
order by d.created_at desc, d.id desc

-- name: DELIVERIES_OF_SELLER
-- $1 the seller; $2 one subscription, or null; $3 the delivery before which the page begins; $4 how many at most; $5
-- only failed ones; $6 only those of an event or an order; $7 the event, or null; $8 the first id that can be about the
-- order; $9 what the body of a delivery about the order contains.
-- Finds the ids in an index, and reads those rows alone. Without those of deleted applications.
select
    s.id as subscription_id, s.app_name, s.is_own, s.url, s.active,
    d.id, d.event, d.created_at, d.attempt,
    case when s.active and not coalesce((
        select
            a.deleted_at is not null or o.closed_at is not null or v.closed_at is not null
            or (s.connection_generation is not null and s.connection_generation is distinct from c.generation)
        from applications as a
        join sellers as o on o.id = a.owner_id
        join sellers as v on v.id = s.seller_id
        left join connections as c
            on c.client_id = a.client_id and c.seller_id = v.id and c.disconnected_at is null
        where a.client_id = s.client_id
    ), true) then d.due_at end as due_at,
    d.delivered_at, d.response_status, d.failure, d.duration_ms
from (
    select s.*, app.name as app_name, app.owner_id = s.seller_id as is_own, d.id as delivery
    from subscriptions as s
    join applications as app on app.client_id = s.client_id and app.deleted_at is null
    cross join lateral (
        -- Only one of the four is executed. Without event and order, the index alone is read.
        (
            select d.id
            from deliveries as d
            where not $5
              and not $6
              and d.seller_id = s.seller_id
              and d.subscription_id = s.id
              and d.id < $3
            order by d.id desc
            limit $4
        )
        union all
        (
            select d.id
            from deliveries as d
            where $5
              and not $6
              and d.seller_id = s.seller_id
              and d.subscription_id = s.id
              and d.attempt > 0
              and d.delivered_at is null
              and d.id < $3
            order by d.id desc
            limit $4
        )
        union all
        (
            select d.id
            from deliveries as d
            where not $5
              and $6
              and d.seller_id = s.seller_id
              and d.subscription_id = s.id
              and d.id < $3
              and d.event = coalesce($7, d.event)
              and d.id >= $8
              and position($9 in d.body) > 0
            order by d.id desc
            limit $4
        )
        union all
        (
            select d.id
            from deliveries as d
            where $5
              and $6
              and d.seller_id = s.seller_id
              and d.subscription_id = s.id
              and d.attempt > 0
              and d.delivered_at is null
              and d.id < $3
              and d.event = coalesce($7, d.event)
              and d.id >= $8
              and position($9 in d.body) > 0
            order by d.id desc
            limit $4
        )
    ) as d
    where s.seller_id = $1
      and s.id = coalesce($2, s.id)
    order by d.id desc
    limit $4
) as s
cross join lateral (
    select *
    from deliveries as d
    where d.seller_id = s.seller_id
      and d.subscription_id = s.id
      and d.id = s.delivery
    limit 1
) as d
order by d.id desc

-- name: PENDING
-- $1 one seller, or null; $2 one subscription, or null; $3 the delivery before which the page begins; $4 how many at
-- most.
-- `first` and `repeated` are the queues that have an entry in a partial index, each with its first: one step in the
-- index for each queue, whatever the other subscriptions have. Of one seller, they include a queue of another one at
-- most.
with recursive asked as materialized (
    select $1::uuid as seller
),
first (seller_id, subscription_id, due_at) as (
    (
        select seller_id, subscription_id, due_at
        from deliveries
        where due_at is not null
          and attempt = 0
          and seller_id >= coalesce((select seller from asked), '00000000-0000-0000-0000-000000000000')
        order by seller_id, subscription_id, due_at
        limit 1
    )
    union all
    select d.*
    from first as q
    cross join lateral (
        select seller_id, subscription_id, due_at
        from deliveries
        where due_at is not null
          and attempt = 0
          and (seller_id, subscription_id) > (q.seller_id, q.subscription_id)
        order by seller_id, subscription_id, due_at
        limit 1
    ) as d
    where q.seller_id = coalesce((select seller from asked), q.seller_id)
),
repeated (seller_id, subscription_id, due_at) as (
    (
        select seller_id, subscription_id, due_at
        from deliveries
        where due_at is not null
          and attempt > 0
          and seller_id >= coalesce((select seller from asked), '00000000-0000-0000-0000-000000000000')
        order by seller_id, subscription_id, due_at
        limit 1
    )
    union all
    select d.*
    from repeated as q
    cross join lateral (
        select seller_id, subscription_id, due_at
        from deliveries
        where due_at is not null
          and attempt > 0
          and (seller_id, subscription_id) > (q.seller_id, q.subscription_id)
        order by seller_id, subscription_id, due_at
        limit 1
    ) as d
    where q.seller_id = coalesce((select seller from asked), q.seller_id)
)
select
    s.seller_id, s.id as subscription_id, app.name as app_name, s.url,
    d.id, d.event, d.created_at, d.attempt,
    case when s.active and not coalesce((
        select
            a.deleted_at is not null or o.closed_at is not null or v.closed_at is not null
            or (s.connection_generation is not null and s.connection_generation is distinct from c.generation)
        from applications as a
        join sellers as o on o.id = a.owner_id
        join sellers as v on v.id = s.seller_id
        left join connections as c
            on c.client_id = a.client_id and c.seller_id = v.id and c.disconnected_at is null
        where a.client_id = s.client_id
    ), true) then d.due_at end as due_at,
    d.delivered_at, d.response_status, d.failure, d.duration_ms
from (
    select seller_id, subscription_id
    from first
    union
    select seller_id, subscription_id
    from repeated
) as q
cross join lateral (
    select *
    from subscriptions as s
    where s.seller_id = q.seller_id
      and s.id = q.subscription_id
    limit 1
) as s
cross join lateral (
    select name
    from applications as a
    where a.client_id = s.client_id
    limit 1
) as app
cross join lateral (
    (
        select *
        from deliveries as d
        where d.seller_id = s.seller_id
          and d.subscription_id = s.id
          and d.due_at is not null
          and d.attempt = 0
          and d.id < $3
        order by d.id desc
        limit $4
    )
    union all
    (
        select *
        from deliveries as d
        where d.seller_id = s.seller_id
          and d.subscription_id = s.id
          and d.due_at is not null
          and d.attempt > 0
          and d.id < $3
        order by d.id desc
        limit $4
    )
) as d
where s.active
  and s.seller_id = coalesce($1, s.seller_id)
  and s.id = coalesce($2, s.id)
order by d.id desc
limit $4

-- name: EXHAUSTED
-- $1 one seller, or null; $2 one subscription, or null; $3 the delivery before which the page begins; $4 how many at
-- most.
-- `failed` are the queues that have an entry in a partial index, as in PENDING.
with recursive asked as materialized (
    select $1::uuid as seller
),
failed (seller_id, subscription_id, id) as (
    (
        select seller_id, subscription_id, id
        from deliveries
        where attempt > 0
          and delivered_at is null
          and seller_id >= coalesce((select seller from asked), '00000000-0000-0000-0000-000000000000')
        order by seller_id, subscription_id, id
        limit 1
    )
    union all
    select d.*
    from failed as q
    cross join lateral (
        select seller_id, subscription_id, id
        from deliveries
        where attempt > 0
          and delivered_at is null
          and (seller_id, subscription_id) > (q.seller_id, q.subscription_id)
        order by seller_id, subscription_id, id
        limit 1
    ) as d
    where q.seller_id = coalesce((select seller from asked), q.seller_id)
)
select
    s.seller_id, s.id as subscription_id, app.name as app_name, s.url,
    d.id, d.event, d.created_at, d.attempt,
    case when s.active and not coalesce((
        select
            a.deleted_at is not null or o.closed_at is not null or v.closed_at is not null
            or (s.connection_generation is not null and s.connection_generation is distinct from c.generation)
        from applications as a
        join sellers as o on o.id = a.owner_id
        join sellers as v on v.id = s.seller_id
        left join connections as c
            on c.client_id = a.client_id and c.seller_id = v.id and c.disconnected_at is null
        where a.client_id = s.client_id
    ), true) then d.due_at end as due_at,
    d.delivered_at, d.response_status, d.failure, d.duration_ms
from failed as q
cross join lateral (
    select *
    from subscriptions as s
    where s.seller_id = q.seller_id
      and s.id = q.subscription_id
    limit 1
) as s
cross join lateral (
    select name
    from applications as a
    where a.client_id = s.client_id
    limit 1
) as app
cross join lateral (
    select *
    from deliveries as d
    where d.seller_id = s.seller_id
      and d.subscription_id = s.id
      and d.attempt = 6
      and d.delivered_at is null
      and d.id < $3
    order by d.id desc
    limit $4
) as d
where s.seller_id = coalesce($1, s.seller_id)
  and s.id = coalesce($2, s.id)
order by d.id desc
limit $4

-- name: TAKE_SUBSCRIPTION_PLACE
-- $1 the seller; $2 the application; $3 the limit.
-- Locks the connection first, by the order of locks; the subscription will be bound to it.
with connection as materialized (
    select
    from connections
    where client_id = $2
      and seller_id = $1
    for share
)
insert into subscription_quota as q (seller_id, client_id, used)
select $1, $2, 1
from (
    select count(*)
    from connection
) as c
on conflict (seller_id, client_id) do update
set used = q.used + 1
where q.used < $3

-- name: ADD_SUBSCRIPTION
-- $1 the seller; $2 the subscription; $3 the application; $4 the time; $5 the URL; $6 the events; $7 the sealed secret.
-- Binds it to the open connection, if there is one. If another seller's application has none, it was disconnected after
-- the request arrived: the result is the same as if the request had come just before.
with connection as materialized (
    select generation
    from connections
    where client_id = $3
      and seller_id = $1
      and disconnected_at is null
    for share
)
insert into subscriptions (seller_id, id, client_id, created_at, url, events, secret, connection_generation, active)
select
    n.*, c.generation,
    c.generation is not null or exists (
        select
        from applications as a
        where a.client_id = n.client_id
          and a.owner_id = n.seller_id
          and a.deleted_at is null
    )
from (
    select $1::uuid as seller_id, $2::uuid, $3::uuid as client_id, $4::timestamptz, $5::text, $6::text[], $7::bytea
) as n
left join connection as c on true

-- name: QUEUE_DELIVERY
-- $1 the seller; $2 the subscription; $3 the delivery; $4 the time; $5 the event; $6 the body.
-- If the queue is live, queues the delivery and wakes the queue, under the same locks as a fan-out.
with queue as materialized (
    select s.seller_id, s.id, s.leased, s.wake_at
    from subscriptions as s
    where s.seller_id = $1
      and s.id = $2
      and s.active
      and not coalesce((
          select
              a.status = 'suspended'
              or a.deleted_at is not null or o.closed_at is not null or v.closed_at is not null
              or (s.connection_generation is not null and s.connection_generation is distinct from c.generation)
          from applications as a
          join sellers as o on o.id = a.owner_id
          join sellers as v on v.id = s.seller_id
          left join connections as c
              on c.client_id = a.client_id and c.seller_id = v.id and c.disconnected_at is null
          where a.client_id = s.client_id
      ), true)
    for key share of s
),
asleep as materialized (
    select s.seller_id, s.id, s.leased, s.wake_at
    from queue as l
    join subscriptions as s on s.seller_id = l.seller_id and s.id = l.id
    where not l.leased
      and (l.wake_at is null or l.wake_at > $4)
    for no key update of s
),
woken as (
    update subscriptions as s
    set wake_at = (select api_now())
    from asleep as w
    where s.seller_id = w.seller_id
      and s.id = w.id
      and not w.leased
      and (w.wake_at is null or w.wake_at > $4)
)
insert into deliveries (seller_id, subscription_id, id, created_at, due_at, event, body)
select l.seller_id, l.id, $3, $4, $4, $5, $6
from queue as l
