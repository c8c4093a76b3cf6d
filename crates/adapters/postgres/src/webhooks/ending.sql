-- name: STOP_DELIVERIES
-- $1 the seller, or null for an application whose owner is closed; $2 that application, or the only one of the seller, or
-- null; $3 how many subscriptions at most.
with ended as materialized (
    (
        select seller_id, id
        from subscription_queues
        where seller_id = $1
          and client_id = coalesce($2, client_id)
          and active
          and state = 'ended'
        limit $3
    )
    union all
    (
        select seller_id, id
        from subscription_queues
        where $1::uuid is null
          and client_id = $2
          and active
          and state = 'ended'
        limit $3
    )
),
theirs as materialized (
    select s.seller_id, s.id
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
select seller_id, id
from theirs

-- name: DEACTIVATE
-- $1 the sellers and $2 the ids of the subscriptions.
update subscriptions as s
set active = false,
    wake_at = case when s.leased then s.wake_at end
from unnest($1::uuid[], $2::uuid[]) as t (seller_id, id)
join subscription_queues as q on q.seller_id = t.seller_id and q.id = t.id
where s.seller_id = q.seller_id
  and s.id = q.id
  and q.first_due is null

-- name: REMOVE
-- $1 the seller; $2 the subscription; $3 its application.
with removed as (
    delete from subscriptions
    where seller_id = $1
      and id = $2
      and client_id = $3
    returning seller_id, client_id, id
),
freed as (
    update subscription_quota as q
    set used = q.used - 1
    from removed as r
    where q.seller_id = r.seller_id
      and q.client_id = r.client_id
)
select seller_id, id
from removed

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
      and q.active
      and not q.leased
      and q.wake_at is null
      and q.first_due is not null
    limit $3
    for no key update of q skip locked
)
update subscriptions as s
set wake_at = (select api_now())
where s.ctid = any(array(select place from sleeping))
