-- The state of the queue of a subscription `s`: `live`; `suspended` while its application is suspended; `ended` if
-- nothing will ever be delivered there again. It is a correlated subquery, so that the application of each queue is
-- looked up by key, however many queues the planner estimates.
--
-- The deliveries of a subscription are read from `none_due_before` on, and from half a minute ago at most, since a
-- transaction may be as old as that, and clocks step back.
--
-- The due deliveries of a queue `l` are up to `capacity`, except those `running`, ordered by `place`: three first
-- attempts for each repeated one, beginning with a first one, and at most `repeats` repeated ones. Each index is read
-- only that far, however much is waiting, and from `due_from` on. The constant limits are for the planner, which cannot
-- see the others.

-- name: CLAIM
-- $1 attempts at most; $2 of these, in failing queues; $3 per queue; $4 per failing queue; $5 per application with
-- those under way; $6 of these, in failing queues; $7 applications that have used up their share; $8 those whose
-- failing queues have used up theirs; $9, $10, $11 applications with attempts under way, their number, and the number
-- in failing queues; $12, $13 where the search for healthy queues begins, and for failing ones; $14 the fence.
-- Leases due queues, the longest waiting first, and reads their due deliveries. The commit is asynchronous: if a crash
-- loses the claim, its fence is invalid and the queues are due again.
with clock as materialized (
    select api_now() as at, set_config('synchronous_commit', 'off', true) as mode
),
-- Each index is read from its first queue at the last claim on, less a second for transactions that were under way.
searched as materialized (
    select least($12, at) - interval '1 second' as healthy, least($13, at) - interval '1 second' as failing
    from clock
),
firsts as materialized (
    select
        least((
            select wake_at
            from subscriptions
            where wake_at >= (select healthy from searched)
              and not failing
            order by wake_at
            limit 1
        ), at) as healthy,
        least((
            select wake_at
            from subscriptions
            where wake_at >= (select failing from searched)
              and failing
            order by wake_at
            limit 1
        ), at) as failing
    from clock
),
-- Failing queues have an index of their own: however many wait, the others are found without passing over them. As many
-- queues are locked as there is capacity for attempts. Queues of an application that has used up its share are skipped:
-- each costs some microseconds, which bounds how much an application with unresponsive receivers can delay others.
healthy as materialized (
    select *
    from (
        select
            seller_id, id, client_id, connection_generation, active, leased, failing, wake_at, in_hand, none_due_before,
            url, secret, ctid as place
        from subscriptions
        where wake_at >= (select healthy from searched)
          and wake_at <= (select at from clock)
          and not failing
          and client_id <> all($7)
        order by wake_at
        limit 128
        for no key update skip locked
    ) as s
    limit $1
),
failing_queues as materialized (
    select *
    from (
        select
            seller_id, id, client_id, connection_generation, active, leased, failing, wake_at, in_hand, none_due_before,
            url, secret, ctid as place
        from subscriptions
        where wake_at >= (select failing from searched)
          and wake_at <= (select at from clock)
          and failing
          and client_id <> all($8)
        order by wake_at
        limit 128
        for no key update skip locked
    ) as s
    limit least($2, $1)
),
queues as materialized (
    select s.*, greatest(s.capacity - 1, 1) as repeats
    from (
        select
            s.*,
            '{}'::uuid[] as running,
            case when s.failing then $4::bigint else $3::bigint end as capacity,
            least(coalesce(s.none_due_before, '-infinity'), (select at from clock) - interval '30 seconds') as due_from,
            case when not s.active then 'ended' else coalesce((
                select case
                    when a.deleted_at is not null or o.closed_at is not null or v.closed_at is not null
                        or (s.connection_generation is not null
                            and s.connection_generation is distinct from c.generation)
                        then 'ended'
                    when a.status = 'suspended' then 'suspended'
                    else 'live'
                end
                from applications as a
                join sellers as o on o.id = a.owner_id
                join sellers as v on v.id = s.seller_id
                left join connections as c
                    on c.client_id = a.client_id and c.seller_id = v.id and c.disconnected_at is null
                where a.client_id = s.client_id
            ), 'ended') end as state
        from (
            select *
            from healthy
            union all
            select *
            from failing_queues
        ) as s
    ) as s
    -- A lock shows the newest version of a row, but deliveries are read as they were when the statement began. A queue
    -- that another worker has leased and released in between, which changes `wake_at`, is left to the next claim: its
    -- deliveries may be sent already. A locked row is found again by its place: its key leads past every version that
    -- an old snapshot keeps.
    where exists (
        select
        from subscriptions as o
        where o.ctid = s.place
          and o.wake_at = s.wake_at
    )
),
due as materialized (
    select l.failing, l.wake_at, l.client_id, l.seller_id, l.id as queue, w.*
    from queues as l
    cross join lateral (
        select u.*
        from (
            (
                select f.*, 2 * row_number() over (order by f.due_at) as place
                from (
                    select d.id, d.event, d.body, d.attempt, d.lost, d.due_at
                    from deliveries as d
                    where d.seller_id = l.seller_id
                      and d.subscription_id = l.id
                      and d.due_at is not null
                      and d.attempt = 0
                      and d.due_at >= l.due_from
                      and d.due_at <= (select at from clock)
                      and d.id <> all(l.running)
                    order by d.due_at
                    limit 128
                ) as f
                limit l.capacity
            )
            union all
            (
                select f.*, 6 * row_number() over (order by f.due_at) - 3 as place
                from (
                    select d.id, d.event, d.body, d.attempt, d.lost, d.due_at
                    from deliveries as d
                    where d.seller_id = l.seller_id
                      and d.subscription_id = l.id
                      and d.due_at is not null
                      and d.attempt > 0
                      and d.due_at >= l.due_from
                      and d.due_at <= (select at from clock)
                      and d.id <> all(l.running)
                    order by d.due_at
                    limit 128
                ) as f
                limit l.repeats
            )
        ) as u
        order by u.place
        limit l.capacity
    ) as w
    where l.state = 'live'
),
-- An application has a share of the capacity, and a smaller one within it for its failing queues, so that they use up
-- nothing reserved for its healthy ones.
within_failing_share as materialized (
    select d.*, coalesce(u.number, 0) as under_way
    from (
        select
            *,
            row_number() over (partition by client_id, failing order by wake_at, seller_id, queue, place) as turn
        from due
    ) as d
    left join unnest($9::uuid[], $10::integer[], $11::integer[]) as u (client_id, number, failing)
        on u.client_id = d.client_id
    where not d.failing
       or d.turn + coalesce(u.failing, 0) <= $6
),
within_share as materialized (
    select d.*
    from (
        select
            failing, wake_at, client_id, seller_id, queue, id, event, body, attempt, lost, place, under_way,
            row_number() over (partition by client_id order by wake_at, seller_id, queue, place) as turn
        from within_failing_share
    ) as d
    where d.turn + d.under_way <= $5
),
within_capacity as materialized (
    select *, row_number() over (order by wake_at, seller_id, queue, place) as n
    from (
        select *, row_number() over (partition by failing order by wake_at, seller_id, queue, place) as nth
        from within_share
    ) as d
    where not failing
       or nth <= $2
),
chosen as materialized (
    select *
    from within_capacity
    where n <= $1
),
-- Those that get no capacity stay due. A queue without due deliveries is leased too: only its lease holder puts it to
-- sleep.
claimed as materialized (
    select l.*, g.ids
    from queues as l
    left join (
        select distinct seller_id, queue
        from due
    ) as d on d.seller_id = l.seller_id and d.queue = l.id
    left join (
        select seller_id, queue, array_agg(id) as ids
        from chosen
        group by seller_id, queue
    ) as g on g.seller_id = l.seller_id and g.queue = l.id
    where l.state = 'live'
      and (d.queue is null or g.ids is not null)
),
leased as (
    update subscriptions as s
    set leased = true,
        fence = $14,
        wake_at = clock.at + interval '30 seconds',
        in_hand = coalesce(t.ids, '{}')
    from claimed as t, clock
    where s.ctid = t.place
),
-- A queue with an expired lease was abandoned by its worker. Deliveries that this worker had in hand and did not report
-- count one more loss: those given out were due 30 s before the lease's end, and those rescheduled by an attempt were
-- not.
lost as (
    update deliveries as d
    set lost = least(d.lost + 1, 255)
    from claimed as t
    where t.leased
      and d.seller_id = t.seller_id
      and d.subscription_id = t.id
      and d.id = any(t.in_hand)
      and d.due_at <= t.wake_at - interval '30 seconds'
    returning d.seller_id, d.subscription_id, d.id, d.lost
)
-- One row without a queue if there is none. Queues that are not live are returned with their state, unchanged.
select
    f.healthy as first_healthy, f.failing as first_failing,
    l.seller_id, l.id as subscription_id, l.client_id, l.state,
    -- Some due queues were not examined, or one got no capacity.
    (select count(*) from healthy) >= least(128, $1)
        or (select count(*) from failing_queues) >= greatest(1, least(128, $2, $1))
        or exists (
            select
            from due as d
            where not exists (
                select
                from chosen as g
                where g.seller_id = d.seller_id
                  and g.queue = d.queue
            )
        ) as more,
    l.url, l.secret, l.failing,
    g.id, g.event, g.body, g.attempt, coalesce(x.lost, g.lost) as lost
from firsts as f
left join (
    queues as l
    left join claimed as t on t.seller_id = l.seller_id and t.id = l.id
    left join chosen as g on g.seller_id = l.seller_id and g.queue = l.id
    left join lost as x on x.seller_id = l.seller_id and x.subscription_id = l.id and x.id = g.id
) on t.id is not null or l.state <> 'live'
order by l.wake_at, l.seller_id, l.id, g.place

-- name: REFILL
-- $1, $2, $3 sellers, subscriptions and fences of the leases; $4 how many more deliveries each can start; $5 how many
-- of them repeated; $6, $7 the deliveries that are running, each with the number of its lease, from 1.
-- Extends leases to the full duration and reads further due deliveries. Afterwards the worker has in hand those that it
-- reported and those that are returned. As for a claim, the commit is asynchronous.
with clock as materialized (
    select api_now() as at, set_config('synchronous_commit', 'off', true) as mode
),
valid as materialized (
    select
        s.seller_id, s.id, s.fence, s.client_id, s.connection_generation, s.active, k.capacity, k.repeats, k.n,
        s.none_due_before
    from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::integer[], $5::integer[]) with ordinality
        as k (seller_id, id, fence, capacity, repeats, n)
    join subscriptions as s on s.seller_id = k.seller_id and s.id = k.id
    where s.leased
      and s.fence = k.fence
    order by s.seller_id, s.id
    for no key update of s
),
queues as materialized (
    select
        s.seller_id, s.id, s.fence, s.capacity, s.repeats,
        least(coalesce(s.none_due_before, '-infinity'), (select at from clock) - interval '30 seconds') as due_from,
        -- When the first delivery that waits is due.
        (
            select min(w.due_at)
            from (
                (
                    select due_at
                    from deliveries as d
                    where d.seller_id = s.seller_id
                      and d.subscription_id = s.id
                      and d.due_at is not null
                      and d.attempt = 0
                      and d.due_at >= least(
                          coalesce(s.none_due_before, '-infinity'),
                          (select at from clock) - interval '30 seconds'
                      )
                    order by due_at
                    limit 1
                )
                union all
                (
                    select due_at
                    from deliveries as d
                    where d.seller_id = s.seller_id
                      and d.subscription_id = s.id
                      and d.due_at is not null
                      and d.attempt > 0
                      and d.due_at >= least(
                          coalesce(s.none_due_before, '-infinity'),
                          (select at from clock) - interval '30 seconds'
                      )
                    order by due_at
                    limit 1
                )
            ) as w
        ) as first_due,
        array(
            select r.id
            from unnest($6::bigint[], $7::uuid[]) as r (n, id)
            where r.n = s.n
        ) as running
    from valid as s
    where case when not s.active then 'ended' else coalesce((
        select case
            when a.deleted_at is not null or o.closed_at is not null or v.closed_at is not null
                or (s.connection_generation is not null
                    and s.connection_generation is distinct from c.generation)
                then 'ended'
            when a.status = 'suspended' then 'suspended'
            else 'live'
        end
        from applications as a
        join sellers as o on o.id = a.owner_id
        join sellers as v on v.id = s.seller_id
        left join connections as c
            on c.client_id = a.client_id and c.seller_id = v.id and c.disconnected_at is null
        where a.client_id = s.client_id
    ), 'ended') end = 'live'
),
chosen as materialized (
    select l.seller_id, l.id as queue, w.*
    from queues as l
    cross join lateral (
        select u.*
        from (
            (
                select f.*, 2 * row_number() over (order by f.due_at) as place
                from (
                    select d.id, d.event, d.body, d.attempt, d.lost, d.due_at
                    from deliveries as d
                    where d.seller_id = l.seller_id
                      and d.subscription_id = l.id
                      and d.due_at is not null
                      and d.attempt = 0
                      and d.due_at >= l.due_from
                      and d.due_at <= (select at from clock)
                      and d.id <> all(l.running)
                    order by d.due_at
                    limit 128
                ) as f
                limit l.capacity
            )
            union all
            (
                select f.*, 6 * row_number() over (order by f.due_at) - 3 as place
                from (
                    select d.id, d.event, d.body, d.attempt, d.lost, d.due_at
                    from deliveries as d
                    where d.seller_id = l.seller_id
                      and d.subscription_id = l.id
                      and d.due_at is not null
                      and d.attempt > 0
                      and d.due_at >= l.due_from
                      and d.due_at <= (select at from clock)
                      and d.id <> all(l.running)
                    order by d.due_at
                    limit 128
                ) as f
                limit l.repeats
            )
        ) as u
        order by u.place
        limit l.capacity
    ) as w
),
leased as (
    update subscriptions as s
    set wake_at = clock.at + interval '30 seconds',
        none_due_before = least(l.first_due, clock.at - interval '30 seconds'),
        in_hand = l.running || array(
            select g.id
            from chosen as g
            where g.seller_id = l.seller_id
              and g.queue = l.id
        )
    from queues as l, clock
    where s.seller_id = l.seller_id
      and s.id = l.id
)
select l.seller_id, l.id as subscription_id, l.fence, g.id, g.event, g.body, g.attempt, g.lost
from queues as l
left join chosen as g on g.seller_id = l.seller_id and g.queue = l.id
order by l.seller_id, l.id, g.place

-- name: RECONCILE
-- Wakes queues that are neither leased nor due although one of their deliveries is. A queue that is due within a few
-- seconds is not stuck: it is paused because its host had no capacity. Each queue is looked up by its key, however many
-- there are. `first` and `repeated` as in PENDING.
with recursive clock as materialized (
    select api_now() as at
),
asked as materialized (
    select null::uuid as seller
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
),
due as materialized (
    select seller_id, subscription_id
    from first, clock
    where due_at <= at
    union
    select seller_id, subscription_id
    from repeated, clock
    where due_at <= at
),
forgotten as materialized (
    select s.place
    from due as d
    cross join lateral (
        select s.ctid as place
        from subscriptions as s
        cross join clock
        where s.seller_id = d.seller_id
          and s.id = d.subscription_id
          and s.active
          and not s.leased
          and (s.wake_at is null or s.wake_at > clock.at + interval '5 seconds')
          and case when not s.active then 'ended' else coalesce((
              select case
                  when a.deleted_at is not null or o.closed_at is not null or v.closed_at is not null
                      or (s.connection_generation is not null
                          and s.connection_generation is distinct from c.generation)
                      then 'ended'
                  when a.status = 'suspended' then 'suspended'
                  else 'live'
              end
              from applications as a
              join sellers as o on o.id = a.owner_id
              join sellers as v on v.id = s.seller_id
              left join connections as c
                  on c.client_id = a.client_id and c.seller_id = v.id and c.disconnected_at is null
              where a.client_id = s.client_id
          ), 'ended') end = 'live'
        limit 1
        for no key update of s skip locked
    ) as s
)
update subscriptions as s
set wake_at = clock.at,
    none_due_before = null
from forgotten as f, clock
where s.ctid = f.place

-- name: SUSPEND
-- $1, $2 sellers and subscriptions of queues that are not live.
-- Puts queues to sleep: those of suspended applications until reinstatement wakes them, ended ones for ever. Locked
-- rows are skipped and examined the next time.
with clock as materialized (
    select api_now() as at
),
locked as materialized (
    select s.seller_id, s.id, s.client_id, s.active, s.connection_generation
    from unnest($1::uuid[], $2::uuid[]) as k (seller_id, id)
    join subscriptions as s on s.seller_id = k.seller_id and s.id = k.id
    where s.wake_at <= (select at from clock)
    order by s.seller_id, s.id
    for no key update of s skip locked
),
queues as materialized (
    select
        s.*,
        case when not s.active then 'ended' else coalesce((
            select case
                when a.deleted_at is not null or o.closed_at is not null or v.closed_at is not null
                    or (s.connection_generation is not null
                        and s.connection_generation is distinct from c.generation)
                    then 'ended'
                when a.status = 'suspended' then 'suspended'
                else 'live'
            end
            from applications as a
            join sellers as o on o.id = a.owner_id
            join sellers as v on v.id = s.seller_id
            left join connections as c
                on c.client_id = a.client_id and c.seller_id = v.id and c.disconnected_at is null
            where a.client_id = s.client_id
        ), 'ended') end as state
    from locked as s
),
-- A suspended queue is put to sleep under a lock on its application: one that is being reinstated is skipped, and one
-- already reinstated is no longer suspended.
applications_asleep as materialized (
    select a.client_id
    from applications as a
    where a.status = 'suspended'
      and a.client_id = any(array(
          select client_id
          from queues
          where state = 'suspended'
      ))
    for share skip locked
),
sleeping as materialized (
    select l.seller_id, l.id
    from queues as l
    left join applications_asleep as r on r.client_id = l.client_id
    where l.state = 'ended'
       or (l.state = 'suspended' and r.client_id is not null)
    union
    -- Other awake, unleased queues of the same applications are put to sleep too, so that few claims meet them, however
    -- many there are.
    select o.seller_id, o.id
    from (
        select s.seller_id, s.id
        from applications_asleep as r
        join subscriptions as s on s.client_id = r.client_id
        where s.active
          and not s.leased
          and s.wake_at is not null
        limit 2000
        for no key update of s skip locked
    ) as o
)
update subscriptions as s
set wake_at = null,
    leased = false,
    fence = null,
    in_hand = '{}'
from sleeping as h
where s.seller_id = h.seller_id
  and s.id = h.id
