-- name: STOP_DELIVERIES
-- $1 the seller, or null for an application whose owner is closed; $2 that application, or the only one of the seller, or
-- null; $3 how many subscriptions at most. It runs after `PLAN_BY_VALUES`.
-- A subscription has a last delivery, `connection.ended`, if it asked for it and its seller ended it: not the application's owner.
with ended as materialized (
    select seller_id, id
    from subscription_queues
    where ($1::uuid is null or seller_id = $1)
      and ($2::uuid is null or client_id = $2)
      and active
      and state = 'ended'
    limit $3
),
theirs as materialized (
    select s.seller_id, s.id, s.client_id, s.connection_generation, s.events
    from subscriptions as s
    where (s.seller_id, s.id) in (select seller_id, id from ended)
      and s.active
    order by s.seller_id, s.id
    for update of s
),
pending as materialized (
    select t.seller_id, t.id as subscription_id, d.id
    from theirs as t
    cross join lateral (
        -- Two conditions, since each has its index.
        (
            select id
            from deliveries as d
            where (d.seller_id, d.subscription_id) = (t.seller_id, t.id)
              and d.due_at is not null
              and d.attempt = 0
            limit 500
        )
        union all
        (
            select id
            from deliveries as d
            where (d.seller_id, d.subscription_id) = (t.seller_id, t.id)
              and d.due_at is not null
              and d.attempt > 0
            limit 500
        )
    ) as d
    limit 1000
),
stopped as (
    update deliveries as d
    set due_at = null
    from pending as p
    where d.seller_id = p.seller_id
      and d.subscription_id = p.subscription_id
      and d.id = p.id
)
select
    t.seller_id, t.id,
    case
        when not t.events @> array['connection.ended'] then null
        when v.closed_at is not null and v.id = o.id then v.closed_at
        when o.closed_at is not null then null
        when v.closed_at is not null then v.closed_at
        when t.connection_generation is not null
            and (c.disconnected_at is not null or c.generation is distinct from t.connection_generation)
            -- A seller who has connected it again disconnected it before.
            then coalesce(c.disconnected_at, c.connected_at, (select api_now()))
    end as ended_at
from theirs as t
join sellers as v on v.id = t.seller_id
join applications as a on a.client_id = t.client_id
join sellers as o on o.id = a.owner_id
left join connections as c on c.client_id = t.client_id and c.seller_id = t.seller_id

-- name: DEACTIVATE
-- $1 the sellers and $2 the ids of the subscriptions; $3 the bodies of their last deliveries, with nil ids as in `FAN_OUT`, or null.
-- Those without pending deliveries become inactive, and their last deliveries are queued.
with clock as materialized (
    select api_now() as at
),
done as materialized (
    select q.seller_id, q.id, t.body
    from unnest($1::uuid[], $2::uuid[], $3::bytea[]) as t (seller_id, id, body)
    join subscription_queues as q on q.seller_id = t.seller_id and q.id = t.id
    where q.first_due is null
),
last as (
    insert into deliveries (seller_id, subscription_id, id, created_at, due_at, event, body)
    select
        d.seller_id, d.id, d.delivery, d.at, d.at, 'connection.ended',
        overlay(d.body placing convert_to(d.delivery::text, 'UTF8') from 8)
    from (
        select d.*, c.at, api_uuid(c.at) as delivery
        from done as d
        cross join clock as c
        where d.body is not null
    ) as d
)
update subscriptions as s
set active = false,
    is_ending = d.body is not null,
    wake_at = case
        when s.leased then s.wake_at
        when d.body is not null then c.at
    end
from done as d, clock as c
where s.seller_id = d.seller_id
  and s.id = d.id

-- name: DELETE_OF_APPLICATION
-- $1 the application; $2 how many subscriptions at most.
with theirs as materialized (
    select seller_id, id
    from subscriptions
    where client_id = $1
    order by seller_id, id
    limit $2
    for update
)
delete from subscriptions as s
using theirs as t
where s.seller_id = t.seller_id
  and s.id = t.id
returning s.seller_id, s.id

-- name: DELETE_QUOTAS
-- $1 the application; $2 how many rows at most.
delete from subscription_quota
where (seller_id, client_id) in (
        select seller_id, client_id
        from subscription_quota
        where client_id = $1
        limit $2
      )

-- name: DELETE_DELIVERIES
-- $1 the sellers and $2 the ids of the subscriptions.
delete from deliveries as d
using (
    select x.seller_id, x.subscription_id, x.id
    from unnest($1::uuid[], $2::uuid[]) as l (seller_id, id)
    cross join lateral (
        select seller_id, subscription_id, id
        from deliveries as y
        where y.seller_id = l.seller_id
          and y.subscription_id = l.id
        order by y.id
        limit 1000
    ) as x
    limit 5000
) as x
where d.seller_id = x.seller_id
  and d.subscription_id = x.subscription_id
  and d.id = x.id

-- name: WAKE
-- $1 the owner; $2 the application; $3 how many queues at most.
-- Returns a row for each that it found: those of them that others have locked are left to the next batch.
with sleeping as materialized (
    select q.place
    from subscription_queues as q
    where q.client_id = $2
      and exists (
          select
          from applications as a
          where a.client_id = $2
            and a.owner_id = $1
            and a.status <> 'suspended'
      )
      and q.state <> 'ended'
      and not q.leased
      and q.wake_at is null
      and q.first_due is not null
    limit $3
),
free as materialized (
    select s.ctid as place
    from subscriptions as s
    where s.ctid = any(array(select place from sleeping))
      and not s.leased
      and s.wake_at is null
    for no key update of s skip locked
),
woken as (
    update subscriptions as s
    set wake_at = (select api_now())
    where s.ctid = any(array(select place from free))
)
select 1
from sleeping
