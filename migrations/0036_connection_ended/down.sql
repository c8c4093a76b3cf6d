delete from schema_facts where version = '0036';

-- What the older program cannot read.
delete from deliveries where event = 'connection.ended';
with deleted as (
    delete from subscriptions
    where events = array['connection.ended']
    returning seller_id, client_id
)
update subscription_quota as q
set used = q.used - d.n
from (
    select seller_id, client_id, count(*) as n
    from deleted
    group by seller_id, client_id
) as d
where q.seller_id = d.seller_id
  and q.client_id = d.client_id;
update subscriptions set events = array_remove(events, 'connection.ended') where events @> array['connection.ended'];

create or replace view subscription_queues as
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

alter table deliveries drop constraint deliveries_event_check, add constraint deliveries_event_check check (event in (
    'order.created', 'order.paid', 'order.shipped', 'order.delivered', 'order.cancelled', 'offer.rejected'));
alter table subscriptions drop constraint subscriptions_events_check, add constraint subscriptions_events_check check (
    cardinality(events) > 0 and events <@ array['order.created', 'order.paid', 'order.shipped', 'order.delivered', 'order.cancelled',
        'offer.rejected']);
alter table subscriptions drop column is_ending;
