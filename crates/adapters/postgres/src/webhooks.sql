-- A subscription is active unless it was ended or its queue has: see the view `subscription_queues`. Deliveries of an ended
-- queue have no `due_at`, even if their rows still have one.

-- name: SUBSCRIPTIONS_OF_APPLICATION
-- $1 the seller; $2 the application.
select id, client_id, url, events, created_at, active and state <> 'ended' as active
from subscription_queues
where seller_id = $1
  and client_id = $2
order by created_at, id

-- name: SUBSCRIPTIONS_OF_SELLER
-- $1 the seller; $2 and $3 the first and the last subscription that is meant; $4 how many at most.
-- Without those of deleted applications, which are deleted in batches.
select
    s.id, s.client_id, s.url, s.events, s.created_at, s.active and s.state <> 'ended' as active,
    a.name as app_name, a.owner_id = s.seller_id as is_own, s.secret, a.status = 'suspended' as is_suspended
from subscription_queues as s
join applications as a on a.client_id = s.client_id and a.deleted_at is null
where s.seller_id = $1
  and s.id between $2 and $3
order by s.id
limit $4

-- name: DELIVERIES
-- $1 the seller; $2 the application, or null; $3 the subscription; $4 and $5 the first and the last delivery that is meant.
-- The newest 100 by id, since ids rise with time, in the order in which they were queued. A subscription without such a delivery has
-- one row.
--
-- `is_under_way`: a worker has in hand what was due when it got the lease or extended it, 30 s before the lease's end. What has ended
-- since is done, or due later.
select
    d.id, d.event, d.created_at, d.attempt, case when s.state <> 'ended' then d.due_at end as due_at,
    d.delivered_at, d.response_status, d.failure, d.duration_ms, d.lost_after, d.body,
    s.state = 'live' as is_live,
    coalesce(
        s.leased
        and s.wake_at > (select api_now())
        and d.id = any(s.in_hand)
        and d.due_at <= s.wake_at - interval '30 seconds',
        false
    ) as is_under_way
from (
    select seller_id, id, leased, wake_at, in_hand, state
    from subscription_queues
    where seller_id = $1
      and client_id = coalesce($2, client_id)
      and id = $3
    -- The state is looked up once, not for each delivery.
    offset 0
) as s
left join lateral (
    select *
    from deliveries as d
    where (d.seller_id, d.subscription_id) = (s.seller_id, s.id)
      and d.id between $4 and $5
    order by d.id desc
    limit 100
) as d on true
order by d.created_at desc, d.id desc

-- name: DELIVERIES_OF_SELLER
-- $1 the seller; $2 one subscription, or null; $3 the delivery before which the page begins; $4 how many at most; $5
-- only failed ones; $6 the event, or null; $7 the first id that can be about an order, and $8 what the body of a delivery about
-- it contains, or nulls. It runs after `PLAN_BY_VALUES`.
-- Finds the ids in an index, and reads those rows alone. Without those of deleted applications.
select
    s.seller_id, s.id as subscription_id, s.app_name, s.is_own, s.url, s.state = 'live' as active,
    d.due_at is not null and s.state = 'suspended' as is_suspended,
    d.id, d.event, d.created_at, d.attempt, case when s.state <> 'ended' then d.due_at end as due_at,
    d.delivered_at, d.response_status, d.failure, d.duration_ms, d.lost_after, d.body
from (
    select s.*, a.name as app_name, a.owner_id = s.seller_id as is_own, d.id as delivery
    from subscription_queues as s
    join applications as a on a.client_id = s.client_id and a.deleted_at is null
    cross join lateral (
        -- Without event and order, an index alone is read: of failed ones, their own.
        select d.id
        from deliveries as d
        where (d.seller_id, d.subscription_id) = (s.seller_id, s.id)
          and d.id < $3
          and (not $5 or d.attempt > 0 and d.delivered_at is null)
          and ($6::text is null or d.event = $6)
          and ($7::uuid is null or d.id >= $7)
          and ($8::bytea is null or position($8 in d.body) > 0)
        order by d.id desc
        limit $4
    ) as d
    where s.seller_id = $1
      and ($2::uuid is null or s.id = $2)
    order by d.id desc
    limit $4
) as s
cross join lateral (
    select *
    from deliveries as d
    where (d.seller_id, d.subscription_id, d.id) = (s.seller_id, s.id, s.delivery)
    limit 1
) as d
order by d.id desc

-- name: UNDELIVERED
-- $1 one seller, or null; $2 one subscription, or null; $3 the delivery before which the page begins; $4 how many at
-- most; $5 those that wait, or else those of which all attempts failed. It runs after `PLAN_BY_VALUES`.
-- `queues` are those that have an entry in a partial index, after an entry that is none: one step for each, whatever the
-- other subscriptions have. A page of n rows needs at most the n queues with the newest deliveries.
with recursive queues (seller_id, subscription_id) as (
    select coalesce($1::uuid, '00000000-0000-0000-0000-000000000000'), '00000000-0000-0000-0000-000000000000'::uuid
    union all
    select d.*
    from queues as q
    cross join lateral (
        (
            select seller_id, subscription_id
            from deliveries
            where $5
              and due_at is not null
              and attempt = 0
              and (seller_id, subscription_id) > (q.seller_id, q.subscription_id)
            order by seller_id, subscription_id, due_at
            limit 1
        )
        union all
        (
            select seller_id, subscription_id
            from deliveries
            where attempt > 0
              and ($5 and due_at is not null or not $5 and delivered_at is null)
              and (seller_id, subscription_id) > (q.seller_id, q.subscription_id)
            order by seller_id, subscription_id
            limit 1
        )
        order by seller_id, subscription_id
        limit 1
    ) as d
    where d.seller_id = coalesce($1, d.seller_id)
),
listed as (
    -- Whether it has ended or is suspended matters to those that wait. Of the others, `active` is as stored.
    select s.*
    from queues as q
    cross join lateral (
        select s.seller_id, s.id as subscription_id, s.url, s.active, a.name as app_name, case when $5 then s.state end as state
        from subscription_queues as s
        join applications as a on a.client_id = s.client_id
        where (s.seller_id, s.id) = (q.seller_id, q.subscription_id)
        limit 1
    ) as s
    where s.subscription_id = coalesce($2, s.subscription_id)
      and s.state is distinct from 'ended'
),
newest as (
    select s.*, d.newest
    from listed as s
    cross join lateral (
        select d.id as newest
        from deliveries as d
        where (d.seller_id, d.subscription_id) = (s.seller_id, s.subscription_id)
          and d.id < $3
          -- First and repeated attempts each have an index.
          and ($5 and d.due_at is not null and (d.attempt = 0 or d.attempt > 0) or not $5 and d.attempt = 6 and d.delivered_at is null)
        order by d.id desc
        limit 1
    ) as d
    order by newest desc
    limit $4
),
page as (
    select s.*, d.delivery
    from newest as s
    cross join lateral (
        select d.id as delivery
        from deliveries as d
        where (d.seller_id, d.subscription_id) = (s.seller_id, s.subscription_id)
          and d.id <= s.newest
          and ($5 and d.due_at is not null and (d.attempt = 0 or d.attempt > 0) or not $5 and d.attempt = 6 and d.delivered_at is null)
        order by d.id desc
        limit $4
    ) as d
    order by delivery desc
    limit $4
)
select
    -- `is_own`: an operator sees the whole URL.
    s.seller_id, s.subscription_id, s.app_name, true as is_own, s.url, s.active, s.state is not distinct from 'suspended' as is_suspended,
    d.id, d.event, d.created_at, d.attempt, d.due_at, d.delivered_at, d.response_status, d.failure, d.duration_ms, d.lost_after, d.body
from page as s
cross join lateral (
    select *
    from deliveries as d
    where (d.seller_id, d.subscription_id, d.id) = (s.seller_id, s.subscription_id, s.delivery)
    limit 1
) as d
order by d.id desc

-- name: ADD_SUBSCRIPTION
-- $1 the seller; $2 the subscription; $3 the application; $4 the time; $5 the URL; $6 the events; $7 the sealed secret; $8 how many
-- places there are.
-- Returns a row unless all places are taken. Where the application, its owner or the seller has ended, nothing is stored, as if the request had come
-- just before: the follow-up of the end may have been here already, and would not see it. Else the end waits for this transaction.
--
-- It is bound to the open connection, if there is one. If another seller's application has none, it was disconnected after the request
-- arrived: the result is the same as if the request had come just before.
--
-- Each row is locked after those before were read: application, accounts, connection, places. Not `for share`: who shares a
-- lock passes a closure that waits for it, and a seller that adds subscriptions all the time could not be closed.
with application as materialized (
    select client_id, owner_id
    from applications
    where client_id = $3
      and deleted_at is null
    for no key update
),
accounts as materialized (
    select id
    from sellers
    where id = any(array(select unnest(array[$1::uuid, owner_id]) from application))
      and closed_at is null
    order by id
    for no key update
),
live as materialized (
    select client_id, owner_id = $1 as is_own
    from application
    where (select count(*) from accounts) = case when owner_id = $1 then 1 else 2 end
),
connection as materialized (
    select c.generation
    from live as l
    join connections as c on c.client_id = l.client_id and c.seller_id = $1
    where c.disconnected_at is null
    for no key update of c
),
place as (
    insert into subscription_quota as q (seller_id, client_id, used)
    select $1, l.client_id, 1
    from live as l
    cross join (
        select count(*)
        from connection
    ) as bound
    on conflict (seller_id, client_id) do update
    set used = q.used + 1
    where q.used < $8
    returning client_id
),
added as (
    insert into subscriptions (seller_id, id, client_id, created_at, url, events, secret, connection_generation, active)
    select $1, $2, p.client_id, $4, $5, $6, $7, c.generation, l.is_own or c.generation is not null
    from place as p
    cross join live as l
    left join connection as c on true
)
select 1
where exists (select from place)
   or not exists (select from live)

-- name: CHANGE_SUBSCRIPTION
-- $1 the seller; $2 the application; $3 the subscription; $4 its URL, or null; $5 its events, or null.
update subscriptions as s
set url = coalesce($4, s.url),
    events = coalesce($5, s.events)
from subscription_queues as q
where q.seller_id = $1
  and q.client_id = $2
  and q.id = $3
  and s.seller_id = q.seller_id
  and s.id = q.id
returning s.id, s.client_id, s.url, s.events, s.created_at, q.active and q.state <> 'ended' as active

-- name: LOCK_SECRETS
-- $1 the seller; $2 the application; $3 the subscription.
select q.secret, q.active and q.state <> 'ended' as active
from subscription_queues as q
where q.seller_id = $1
  and q.client_id = $2
  and q.id = $3
for no key update of q

-- name: REMOVE_SUBSCRIPTION
-- $1 the seller; $2 the subscription; $3 its application.
-- Its deliveries are deleted in a statement of their own, which sees all that were queued before.
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

-- name: QUEUE_DELIVERY
-- $1 the seller; $2 the subscription; $3 the delivery; $4 the time; $5 the event; $6 the body.
-- If the queue is live, queues the delivery and wakes the queue. A leased one is left to its worker, as by a fan-out.
with queue as materialized (
    select q.seller_id, q.id, q.leased, q.wake_at
    from subscription_queues as q
    where q.seller_id = $1
      and q.id = $2
      and q.state = 'live'
    for no key update of q
),
woken as (
    update subscriptions as s
    set wake_at = (select api_now())
    from queue as l
    where s.seller_id = l.seller_id
      and s.id = l.id
      and not l.leased
      and (l.wake_at is null or l.wake_at > $4)
)
insert into deliveries (seller_id, subscription_id, id, created_at, due_at, event, body)
select l.seller_id, l.id, $3, $4, $4, $5, $6
from queue as l

-- name: REQUEUE_DELIVERY
-- $1 the seller; $2 the subscription; $3 the delivery; $4 the time; $5 whether it has ended, and begins anew.
-- The queue is locked. A leased one is left to its worker, which has the delivery in hand no more: see RECORD.
with queue as (
    update subscriptions
    set in_hand = array_remove(in_hand, $3),
        wake_at = case
            when not leased and (wake_at is null or wake_at > $4) then (select api_now())
            else wake_at
        end
    where seller_id = $1
      and id = $2
)
update deliveries
set due_at = least(due_at, $4),
    delivered_at = null,
    attempt = case when $5 then 0 else attempt end,
    lost = case when $5 then 0 else lost end,
    lost_after = case when not $5 then lost_after end,
    duration_ms = case when not $5 then duration_ms end,
    response_status = case when not $5 then response_status end,
    failure = case when not $5 then failure end
where seller_id = $1
  and subscription_id = $2
  and id = $3
  and (due_at is null) = $5
