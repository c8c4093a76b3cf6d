-- name: RECONCILE
-- $1 the seller and $2 the id of the subscription behind which the walk begins; $3 how many it passes at most.
-- Wakes queues that are neither leased nor due although one of their deliveries is. A queue that is due within a few
-- seconds is not stuck: it is paused because its host had no capacity. Of every queue, it shows claims again what was
-- committed so late that it lies before `due_from`. Returns how many it woke, and the last it passed if there may be more.
with recursive clock as materialized (
    select api_now() as at
),
-- The queues with pending deliveries, after an entry that is none, each with its first: one step in the partial indexes
-- for each, whatever the other subscriptions have.
pending (seller_id, subscription_id, due_at, passed) as (
    select $1::uuid, $2::uuid, 'infinity'::timestamptz, 0::bigint
    union all
    select d.*, q.passed + 1
    from pending as q
    cross join lateral (
        (
            select seller_id, subscription_id, due_at
            from deliveries
            where due_at is not null
              and attempt = 0
              and (seller_id, subscription_id) > (q.seller_id, q.subscription_id)
            order by seller_id, subscription_id, due_at
            limit 1
        )
        union all
        (
            select seller_id, subscription_id, due_at
            from deliveries
            where due_at is not null
              and attempt > 0
              and (seller_id, subscription_id) > (q.seller_id, q.subscription_id)
            order by seller_id, subscription_id, due_at
            limit 1
        )
        order by seller_id, subscription_id, due_at
        limit 1
    ) as d
    where q.passed < $3
),
forgotten as materialized (
    select s.place
    from clock
    cross join pending as p
    cross join lateral (
        select q.place
        from subscription_queues as q
        where (q.seller_id, q.id) = (p.seller_id, p.subscription_id)
          and (
              not q.leased and (q.wake_at is null or q.wake_at > clock.at + interval '5 seconds')
              or p.due_at < q.due_from
          )
          and q.state in ('live', 'ending')
        limit 1
        for no key update skip locked
    ) as s
    where p.due_at <= clock.at
),
woken as (
    update subscriptions as s
    set wake_at = case when s.leased then s.wake_at else least(s.wake_at, clock.at) end,
        none_due_before = null
    from forgotten as f, clock
    where s.ctid = f.place
    returning s.id
)
select (select count(*) from woken) as woken, p.seller_id, p.subscription_id
from (select) as one
left join pending as p on p.passed = $3

-- name: PUT_TO_SLEEP
-- $1, $2 sellers and subscriptions of queues that are not live.
-- Puts queues to sleep: those of suspended applications until reinstatement wakes them, ended ones until they have a last
-- delivery, if ever. Locked rows are skipped and examined the next time.
with queues as materialized (
    select q.seller_id, q.id, q.client_id, q.state
    from unnest($1::uuid[], $2::uuid[]) as k (seller_id, id)
    join subscription_queues as q on q.seller_id = k.seller_id and q.id = k.id
    where q.wake_at <= (select api_now())
    order by q.seller_id, q.id
    for no key update of q skip locked
),
-- Suspended applications, and those that are deleted or have a closed owner. A suspended queue is put to sleep under a lock on its
-- application: one that is being reinstated, or otherwise changed, is left to the next claim, and one already reinstated is no longer suspended.
stopped as materialized (
    select a.client_id, a.deleted_at is null and o.closed_at is null as may_resume
    from applications as a
    join sellers as o on o.id = a.owner_id
    where a.client_id = any(array(select client_id from queues))
      and (a.status = 'suspended' or a.deleted_at is not null or o.closed_at is not null)
    for share of a skip locked
),
sleeping as materialized (
    select seller_id, id
    from queues
    where state = 'ended'
       or state = 'suspended' and client_id in (select client_id from stopped)
    union
    -- Other awake, unleased queues of the same applications are put to sleep too, so that few claims meet them, however
    -- many there are; not those that end with a deleted application: they may owe their last delivery.
    select *
    from (
        select s.seller_id, s.id
        from stopped as a
        join subscriptions as s on s.client_id = a.client_id
        where (s.active or s.is_ending and a.may_resume)
          and not s.leased
          and s.wake_at is not null
        limit 2000
        for no key update of s skip locked
    ) as others
)
update subscriptions as s
set wake_at = null,
    leased = false,
    fence = null,
    in_hand = '{}'
from sleeping as h
where s.seller_id = h.seller_id
  and s.id = h.id
