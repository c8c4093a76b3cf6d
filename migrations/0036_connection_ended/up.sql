-- Locks `subscriptions` and `deliveries` for a moment: the new column is added to the catalogue alone, and the checks, which allow more
-- than the ones before, are for new rows alone.
set local lock_timeout = '2s';

-- Whether a subscription has ended with a last delivery, `connection.ended`.
alter table subscriptions add column is_ending boolean not null default false;

alter table subscriptions drop constraint subscriptions_events_check, add constraint subscriptions_events_check check (
    cardinality(events) > 0 and events <@ array['order.created', 'order.paid', 'order.shipped', 'order.delivered', 'order.cancelled',
        'offer.rejected', 'connection.ended']) not valid;
alter table deliveries drop constraint deliveries_event_check, add constraint deliveries_event_check check (event in (
    'order.created', 'order.paid', 'order.shipped', 'order.delivered', 'order.cancelled', 'offer.rejected', 'connection.ended')) not valid;

create or replace view subscription_queues as
select
    s.seller_id, s.id, s.client_id, s.created_at, s.url, s.events, s.secret, s.active, s.failing, s.leased, s.fence, s.in_hand, s.wake_at,
    -- No pending delivery is due before this.
    coalesce(s.none_due_before, '-infinity') as due_from,
    -- Where a locked row is found again: its key leads past every version that an old snapshot keeps.
    s.ctid as place,
    -- `ended` if nothing may be delivered there: the rows of an application, a seller or a connection that ended follow in batches.
    -- `suspended` as long as its application is. `ending` if it has ended and `connection.ended` is its last delivery. Else `live`.
    case when s.active or s.is_ending then coalesce((
        select case
            when a.deleted_at is not null
                or s.is_ending and o.closed_at is not null and o.id <> v.id
                or not s.is_ending and (o.closed_at is not null or v.closed_at is not null
                    or (s.connection_generation is not null and s.connection_generation is distinct from c.generation))
                then 'ended'
            when a.status = 'suspended' then 'suspended'
            when s.is_ending then 'ending'
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

insert into schema_facts values ('0036', '0.1.0');
