-- The state of a queue and its first due delivery are columns of the view `subscription_queues`. The deliveries of a
-- queue are read from `due_from` on: those before it are done, and their index entries may be read in vain for as long
-- as an old snapshot keeps them.
--
-- The constant limits of these reads are for the planner, which cannot see the others. A queue starts 12 attempts at a
-- time, so that 16 are enough.
--
-- A busy queue has many versions that an old snapshot keeps, and the entries of its key lead to all of them in the order of their places:
-- read backwards, they mostly begin with the newest one. So the statements of leases, here and in `recording.sql`, look a queue up
-- by a range of one id, since an equal key has no order, and change what they have locked where it was: if another transaction
-- changed it at that moment, the queue counts as locked by it.

-- name: DUE
-- $1 queues at most; $2 failing ones at most; $3, $4 where the search for healthy queues begins, and for failing ones;
-- $5 owners of applications that have used up their share; $6 those whose failing queues have used up theirs.
-- Locks due queues, the longest waiting first, and counts what is due in each: nothing in one that is not live, so that it
-- takes no share from others. Failing queues have an index of their own:
-- however many wait, the others are found without passing over them. The queues of a full owner are skipped: each
-- costs some microseconds, which bounds how much it can delay others. One row without a queue if there is none.
with clock as materialized (
    select api_now() as at
),
of_full_owners as materialized (
    -- Each half matches an index. A deleted application's queues are put to sleep.
    select client_id, owner_id
    from applications
    where owner_id = any($5::uuid[] || $6)
      and deleted_at is null
      and not built_in
    union all
    select client_id, owner_id
    from applications
    where owner_id = any($5::uuid[] || $6)
      and built_in
),
healthy as materialized (
    select seller_id, id, client_id, failing, fence, url, secret, wake_at, due_from, state
    from subscription_queues
    where wake_at between $3 and (select at from clock)
      and not failing
      and client_id not in (select client_id from of_full_owners where owner_id = any($5))
    order by wake_at
    limit $1
    for no key update skip locked
),
failing as materialized (
    select seller_id, id, client_id, failing, fence, url, secret, wake_at, due_from, state
    from subscription_queues
    where wake_at between $4 and (select at from clock)
      and failing
      and client_id not in (select client_id from of_full_owners where owner_id = any($6))
    order by wake_at
    limit $2
    for no key update skip locked
)
select
    -- The first queue at or after the beginning of each search.
    least((select min(wake_at) from subscriptions where wake_at >= $3 and not failing), at) as first_healthy,
    least((select min(wake_at) from subscriptions where wake_at >= $4 and failing), at) as first_failing,
    q.seller_id, q.id, q.client_id, (select owner_id from applications as a where a.client_id = q.client_id) as owner_id,
    q.failing, q.fence, q.url, q.secret, q.wake_at, at,
    (
        select count(*)
        from (
            select
            from deliveries as d
            where (d.seller_id, d.subscription_id) = (q.seller_id, q.id)
              and d.attempt = 0
              and d.due_at between q.due_from and clock.at
              and q.state in ('live', 'ending')
            order by d.due_at
            limit 16
        ) as d
    ) as first_attempts,
    (
        select count(*)
        from (
            select
            from deliveries as d
            where (d.seller_id, d.subscription_id) = (q.seller_id, q.id)
              and d.attempt > 0
              and d.due_at between q.due_from and clock.at
              and q.state in ('live', 'ending')
            order by d.due_at
            limit 16
        ) as d
    ) as repeats
from clock
left join (
    select *
    from healthy
    union all
    select *
    from failing
) as q on true
order by q.wake_at, q.seller_id, q.id

-- name: ABANDONED
-- $1, $2 sellers and subscriptions of locked queues whose leases have expired.
-- The deliveries that their workers had in hand and did not report: those given out were due 30 s before the lease's end, and those
-- rescheduled by an attempt were not.
with in_hand as materialized (
    select s.seller_id, s.id as subscription_id, s.wake_at, unnest(s.in_hand) as id
    from unnest($1::uuid[], $2::uuid[]) as k (seller_id, id)
    join subscription_queues as s on s.seller_id = k.seller_id and s.id = k.id
    where s.state in ('live', 'ending')
)
select d.seller_id, d.subscription_id, d.id, d.attempt, d.lost
from in_hand as h
join deliveries as d on (d.seller_id, d.subscription_id, d.id) = (h.seller_id, h.subscription_id, h.id)
where d.due_at <= h.wake_at - interval '30 seconds'

-- name: LOSE
-- $1, $2, $3 sellers, subscriptions and ids of deliveries; $4, $5 their attempts and losses; $6 their losses from now on.
update deliveries as d
set lost = c.next_lost,
    lost_after = c.attempt
from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::smallint[], $5::smallint[], $6::smallint[])
    as c (seller_id, subscription_id, id, attempt, lost, next_lost)
where (d.seller_id, d.subscription_id, d.id) = (c.seller_id, c.subscription_id, c.id)
  and d.attempt = c.attempt
  and d.lost = c.lost

-- name: LEASE
-- $1, $2 sellers and subscriptions; $3 the present fences, or null; $4 the new ones: the same, if a lease is extended;
-- $5 how many deliveries each queue can start; $6 how many of them repeated; $7, $8 the deliveries that are running, each
-- with the number of its queue, from 1.
-- Leases live queues for 30 s, and reads their due deliveries, three first attempts for each repeated one, beginning with
-- a first one. Afterwards the worker has in hand those that it reported and those that are returned, but for one that was
-- queued anew after its attempt: a report from before must not take it back. A queue that is ending has its last delivery
-- alone, once no other is running. One that another transaction has locked is left as it is.
with clock as materialized (
    select api_now() as at, set_config('synchronous_commit', 'off', true) as mode
),
queues as materialized (
    select
        k.n, k.fence, k.attempts, k.repeats, q.*,
        array(select id from unnest($7::bigint[], $8::uuid[]) as r (n, id) where r.n = k.n) as running
    from clock
    cross join unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $5::integer[], $6::integer[]) with ordinality
        as k (seller_id, id, held, fence, attempts, repeats, n)
    cross join lateral (
        select seller_id, id, place, state, url, secret, due_from, first_due
        from subscription_queues
        where seller_id = k.seller_id
          and id between k.id and k.id
          and fence is not distinct from k.held
          and state in ('live', 'ending')
        order by id desc
        limit 1
        for no key update skip locked
    ) as q
),
given as materialized (
    select q.n, d.*
    from clock
    cross join queues as q
    cross join lateral (
        select *
        from (
            (
                select d.id, d.event, d.body, d.attempt, d.lost, d.due_at, 2 * row_number() over (order by d.due_at) as place
                from deliveries as d
                where (d.seller_id, d.subscription_id) = (q.seller_id, q.id)
                  and d.attempt = 0
                  and d.due_at between q.due_from and clock.at
                  and d.id <> all(q.running)
                  and (q.state = 'live' or d.event = 'connection.ended' and q.running = '{}')
                order by d.due_at
                limit 16
            )
            union all
            (
                select d.id, d.event, d.body, d.attempt, d.lost, d.due_at, 6 * row_number() over (order by d.due_at) - 3
                from deliveries as d
                where (d.seller_id, d.subscription_id) = (q.seller_id, q.id)
                  and d.attempt > 0
                  and d.due_at between q.due_from and clock.at
                  and d.id <> all(q.running)
                  and (q.state = 'live' or d.event = 'connection.ended' and q.running = '{}')
                order by d.due_at
                limit 16
            )
        ) as d
        where d.attempt = 0
           or d.place <= 6 * q.repeats - 3
        order by d.place
        limit q.attempts
    ) as d
),
leased as (
    update subscriptions as s
    set leased = true,
        fence = q.fence,
        wake_at = clock.at + interval '30 seconds',
        none_due_before = least(q.first_due, clock.at - interval '30 seconds'),
        in_hand = array(
            select id
            from unnest(q.running) as id
            where id = any(s.in_hand)
            union all
            select id
            from given as g
            where g.n = q.n
        )
    from clock
    cross join queues as q
    where s.ctid = q.place
    returning q.n
)
select
    q.seller_id, q.id as subscription_id, q.fence, q.url, q.secret, clock.at, g.id, g.event, g.body, g.attempt, g.lost, g.due_at
from clock
cross join leased as l
join queues as q on q.n = l.n
left join given as g on g.n = q.n
order by q.n, g.place
