-- Takes no lock that anybody waits for.

-- Subscriptions as the queues of their deliveries. What another table decides about a queue is a correlated subquery, so that it is looked
-- up by key, however many queues the planner expects. Nothing in it is volatile, so that no column costs anything that a statement does
-- not read.
create view subscription_queues as
select
    s.seller_id, s.id, s.client_id, s.created_at, s.url, s.events, s.secret, s.active, s.failing, s.leased, s.fence, s.in_hand, s.wake_at,
    -- No pending delivery is due before this.
    coalesce(s.none_due_before, '-infinity') as due_from,
    -- Where a locked row is found again: its key leads past every version that an old snapshot keeps.
    s.ctid as place,
    -- `ended` if nothing will ever be delivered there again: the rows of an application, a seller or a connection that ended follow in
    -- batches. `suspended` as long as its application is. Else `live`.
    case when s.active then coalesce((
        select case
            when a.deleted_at is not null or o.closed_at is not null or v.closed_at is not null
                or (s.connection_generation is not null and s.connection_generation is distinct from c.generation)
                then 'ended'
            when a.status = 'suspended' then 'suspended'
            else 'live'
        end
        from applications as a
        join sellers as o on o.id = a.owner_id
        join sellers as v on v.id = s.seller_id
        left join connections as c on c.client_id = a.client_id and c.seller_id = v.id and c.disconnected_at is null
        where a.client_id = s.client_id
    ), 'ended') else 'ended' end as state,
    -- When the first pending delivery is due.
    least(
        (
            select d.due_at
            from deliveries as d
            where d.seller_id = s.seller_id
              and d.subscription_id = s.id
              and d.attempt = 0
              and d.due_at >= coalesce(s.none_due_before, '-infinity')
            order by d.due_at
            limit 1
        ),
        (
            select d.due_at
            from deliveries as d
            where d.seller_id = s.seller_id
              and d.subscription_id = s.id
              and d.attempt > 0
              and d.due_at >= coalesce(s.none_due_before, '-infinity')
            order by d.due_at
            limit 1
        )
    ) as first_due
from subscriptions as s;

insert into schema_facts values ('0028', '0.1.0');
