-- name: RECORD
-- $1, $2, $3 sellers, subscriptions and fences of the leases; $4, $5, $6 sellers, subscriptions and ids of the
-- deliveries; $7, $8 how many attempts had ended when each was given out, and how often it was lost; $9, $10 the same
-- after this attempt; $11 whether it is delivered; $12 microseconds until the next attempt, or null; $13 milliseconds;
-- $14 the status of the response, or null; $15 the failure, or null.
-- Stores the states that were decided after attempts under leases that are still valid, if the deliveries are in the
-- states on which this was decided. A delivery that was stopped meanwhile stays stopped. Returns the queues that other
-- transactions have locked, without waiting for any: nothing of them is stored.
with clock as materialized (
    -- Well below `deadlock_timeout`: this can wait in a circle with the cleaning of old deliveries, which locks no queue. The
    -- caller sends it again.
    select api_now() as at, set_config('lock_timeout', '300ms', true) as lock_timeout
),
valid as materialized (
    select s.seller_id, s.id, s.in_hand
    from clock
    cross join unnest($1::uuid[], $2::uuid[], $3::uuid[]) as k (seller_id, id, fence)
    cross join lateral (
        select seller_id, id, in_hand
        from subscriptions
        where seller_id = k.seller_id
          and id between k.id and k.id
          and fence = k.fence
        order by id desc
        limit 1
        for no key update skip locked
    ) as s
),
-- Ended attempts are joined with their leases before the delivery row is looked up, so that its whole key comes from
-- one side. Otherwise the planner treats sellers and subscriptions as independent and may read all deliveries of a
-- queue.
ended as materialized (
    select c.*
    from unnest(
        $4::uuid[], $5::uuid[], $6::uuid[],
        $7::smallint[], $8::smallint[], $9::smallint[], $10::smallint[], $11::boolean[], $12::bigint[],
        $13::integer[], $14::smallint[], $15::text[]
    ) as c (
        seller_id, queue, id, attempt, lost, next_attempt, next_lost, delivered, delay, duration, status, failure
    )
    join valid as h on h.seller_id = c.seller_id and h.id = c.queue
    -- A record that is sent again, since its first answer was lost, must not end a delivery that was queued anew meanwhile.
    where c.id = any(h.in_hand)
),
recorded as (
    update deliveries as d
    set attempt = c.next_attempt,
        lost = c.next_lost,
        due_at = case when d.due_at is not null then clock.at + c.delay * interval '1 microsecond' end,
        delivered_at = case when c.delivered then clock.at end,
        duration_ms = c.duration,
        response_status = c.status,
        failure = c.failure
    from clock, ended as c
    where d.seller_id = c.seller_id
      and d.subscription_id = c.queue
      and d.id = c.id
      and d.attempt = c.attempt
      and d.lost = c.lost
      and d.delivered_at is null
)
select s.seller_id, s.id
from unnest($1::uuid[], $2::uuid[], $3::uuid[]) as k (seller_id, id, fence)
join subscriptions as s on s.seller_id = k.seller_id and s.id = k.id
-- Read only if a queue is missing.
where (select count(*) from valid) < cardinality($1)
  and s.fence = k.fence
  and (s.seller_id, s.id) not in (select seller_id, id from valid)

-- name: RELEASE
-- $1, $2, $3 sellers, subscriptions and fences of the leases; $4 whether each queue counts as failing, or null; $5
-- microseconds of its pause.
-- Releases queues: asleep if nothing waits, due with the next delivery, and at the back if one is due now; never before
-- its pause is over. Returns those that are not due now, and those that other transactions have locked, of which it waits
-- for none: the end of their pause is null.
--
-- A transaction that queues deliveries meanwhile leaves a leased queue to its lease holder to wake. This statement does
-- not see those deliveries; WAKE finds them afterwards. The commit is asynchronous: a release that is lost ends with
-- its lease.
with clock as materialized (
    select api_now() as at, set_config('synchronous_commit', 'off', true) as mode
),
leases as materialized (
    select q.seller_id, q.id, q.place, q.first_due, k.failing, clock.at + k.pause * interval '1 microsecond' as resumes
    from clock
    cross join unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::boolean[], $5::bigint[])
        as k (seller_id, id, fence, failing, pause)
    cross join lateral (
        select seller_id, id, place, first_due
        from subscription_queues
        where seller_id = k.seller_id
          and id between k.id and k.id
          and fence = k.fence
        order by id desc
        limit 1
        for no key update skip locked
    ) as q
),
released as (
    update subscriptions as s
    set leased = false,
        fence = null,
        in_hand = '{}',
        failing = coalesce(l.failing, s.failing),
        -- A transaction that is under way may still queue a delivery that is due since it began, half a minute ago at most.
        -- If the clock was set back, this takes back the bound as well.
        none_due_before = least(l.first_due, clock.at - interval '30 seconds'),
        wake_at = case when l.first_due is not null then greatest(l.first_due, l.resumes) end
    from clock, leases as l
    where s.ctid = l.place
    returning s.seller_id, s.id, s.wake_at, l.resumes
)
select seller_id, id, resumes
from released, clock
where wake_at is null
   or wake_at > clock.at
union all
select s.seller_id, s.id, null
from unnest($1::uuid[], $2::uuid[], $3::uuid[]) as k (seller_id, id, fence)
join subscriptions as s on s.seller_id = k.seller_id and s.id = k.id
-- Read only if a queue is missing.
where (select count(*) from released) < cardinality($1)
  and s.fence = k.fence
  and (s.seller_id, s.id) not in (select seller_id, id from released)

-- name: CONTENDED
-- $1, $2 sellers and subscriptions of queues that were put to sleep; $3 the ends of their pauses.
-- Returns those locked by another transaction, which may be queueing deliveries. It waits for none, and its own locks
-- end with it. The commit is asynchronous, so that a transaction that queues deliveries
-- waits for no disk.
with setting as materialized (
    select set_config('synchronous_commit', 'off', true) as mode
),
asleep as materialized (
    select s.seller_id, s.id, k.resumes
    from setting
    cross join unnest($1::uuid[], $2::uuid[], $3::timestamptz[]) as k (seller_id, id, resumes)
    cross join lateral (
        select seller_id, id, leased
        from subscriptions
        where seller_id = k.seller_id
          and id between k.id and k.id
        order by id desc
        limit 1
    ) as s
    where not s.leased
)
select a.seller_id, a.id, a.resumes
from asleep as a
left join lateral (
    select true as is_free
    from subscriptions
    where seller_id = a.seller_id
      and id between a.id and a.id
    order by id desc
    limit 1
    for update skip locked
) as s on true
where s.is_free is null

-- name: WAKE
-- $1, $2 sellers and subscriptions of queues that were put to sleep; $3 the ends of their pauses.
-- Wakes those that have deliveries. As before, the commit is asynchronous. Only those are locked that are woken: others
-- may be locked by transactions that queue deliveries.
with clock as materialized (
    select api_now() as at, set_config('synchronous_commit', 'off', true) as mode,
        set_config('lock_timeout', '2s', true) as lock_timeout
),
found as materialized (
    select q.seller_id, q.id, q.first_due, greatest(k.resumes, clock.at) as resumes
    from clock
    cross join unnest($1::uuid[], $2::uuid[], $3::timestamptz[]) as k (seller_id, id, resumes)
    cross join lateral (
        select seller_id, id, leased, first_due
        from subscription_queues
        where seller_id = k.seller_id
          and id between k.id and k.id
        order by id desc
        limit 1
    ) as q
    where not q.leased
),
asleep as materialized (
    select s.seller_id, s.id, greatest(f.first_due, f.resumes) as due_at
    from found as f
    join subscriptions as s on s.seller_id = f.seller_id and s.id = f.id
    where f.first_due is not null
      and not s.leased
      and (s.wake_at is null or s.wake_at > greatest(f.first_due, f.resumes))
    order by s.seller_id, s.id
    for no key update of s
)
update subscriptions as s
set wake_at = a.due_at
from asleep as a
where s.seller_id = a.seller_id
  and s.id = a.id
