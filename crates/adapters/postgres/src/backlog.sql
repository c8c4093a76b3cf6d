-- name: QUEUES
-- $1 the largest count; $2 carriers.
-- Reads index entries only. The sort orders are those of the indexes: they keep the planner from scanning a table in which it expects to
-- find enough rows soon.
with clock as materialized (
    select api_now() as at
),
bounds as materialized (
    select $1::bigint as most, 200 as queues
),
queues as materialized (
    -- The delivery queues that have been due longest: they are searched for the oldest delivery. One whose receiver fails
    -- delays its own deliveries, whatever the workers do; likewise a slow one, whose queue is leased, or paused for its host:
    -- `wake_at` is then the end of the lease or the pause. Nothing is due before `due_from`: entries there would be read in vain.
    select seller_id, id, coalesce(none_due_before, '-infinity') as due_from
    from subscriptions
    where wake_at <= (select at from clock)
      and not failing
    order by wake_at
    limit (select queues from bounds)
),
backlog (queue, waiting, oldest) as (
    select 'first',
        (
            select count(*)
            from (
                select
                from deliveries
                where due_at is not null
                  and attempt = 0
                order by seller_id, subscription_id, due_at
                limit (select most from bounds)
            ) d
        ),
        (
            select min(d.due_at)
            from queues l
            cross join lateral (
                select due_at
                from deliveries
                where seller_id = l.seller_id
                  and subscription_id = l.id
                  and due_at >= l.due_from
                  and attempt = 0
                order by due_at
                limit 1
            ) d
        )
    union all
    select 'repeated',
        (
            select count(*)
            from (
                select
                from deliveries
                where due_at is not null
                  and attempt > 0
                order by seller_id, subscription_id, due_at
                limit (select most from bounds)
            ) d
        ),
        (
            select min(d.due_at)
            from queues l
            cross join lateral (
                select due_at
                from deliveries
                where seller_id = l.seller_id
                  and subscription_id = l.id
                  and due_at >= l.due_from
                  and attempt > 0
                order by due_at
                limit 1
            ) d
        )
    union all
    select 'shipment_mails', count(*), min(due_at)
    from (
        select due_at
        from mails
        where due_at is not null
        order by due_at
        limit (select most from bounds)
    ) m
    union all
    select 'account_mails', count(*), min(due_at)
    from (
        select due_at
        from account_mails
        where due_at is not null
        order by due_at
        limit (select most from bounds)
    ) m
    union all
    select c.carrier, p.waiting, p.oldest
    from unnest($2::text[]) as c (carrier)
    cross join lateral (
        select count(*) as waiting, min(due_at) as oldest
        from (
            select due_at
            from parcels
            where carrier = c.carrier
              and due_at <= (select at from clock)
            order by due_at
            limit (select most from bounds)
        ) q
    ) p
)
-- An item that is due later counts as zero.
select queue, waiting::integer, greatest(extract(epoch from (select at from clock) - oldest), 0)::float8 as overdue
from backlog

-- name: OLDEST_SNAPSHOT
-- A transaction that writes holds back the change feed, one with a snapshot the removal of dead rows. Autovacuum, of which
-- only an ANALYZE does, is left out. Sessions of other roles show theirs to members of `pg_read_all_stats` alone: what others see is no
-- more than a lower bound.
select case when age > 60 or pg_has_role('pg_read_all_stats', 'usage') then age end as age
from (
    select greatest(
        extract(
            epoch from (select api_now()) - least(
                (
                    select min(xact_start)
                    from pg_stat_activity
                    where coalesce(backend_xmin, backend_xid) is not null
                      and backend_type <> 'autovacuum worker'
                ),
                (select min(prepared) from pg_prepared_xacts)
            )
        ),
        0
    )::float8 as age
) as seen

-- name: WORKERS
-- On Citus alone.
select (count(*) filter (where not success))::integer as unreachable,
    coalesce(sum(case when success then result::integer end), 0)::integer as in_doubt
from run_command_on_workers(
    $$select count(*) from pg_prepared_xacts where prepared < now() - interval '30 s'$$
)
