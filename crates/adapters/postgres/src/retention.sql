-- What the query builder cannot delete or erase. Oldest rows are those by the timestamp with which an index begins.

-- name: FAMILIES
-- $1 the families.
-- Those that have no token and no code, with their `personal_tokens` rows. A family without either never gets another
-- one, so nothing can be inserted concurrently, and nothing is left to cascade to.
with deleted as (
    delete from families as f
    where f.id = any($1)
      and not exists (
          select
          from access_tokens as t
          where t.family_id = f.id
      )
      and not exists (
          select
          from refresh_tokens as t
          where t.family_id = f.id
      )
      and not exists (
          select
          from authorization_codes as c
          where c.family_id = f.id
      )
    returning f.seller_id, f.id
),
personal as (
    delete from personal_tokens as p
    using deleted
    where p.seller_id = deleted.seller_id
      and p.id = deleted.id
)
select 1
from deleted

-- name: AUDIT_LOG
-- $1 rows at most; $2 microseconds.
-- Ids rise with time: the first rows are examined, and no index by time is needed.
delete from audit_log
where id in (
    select id
    from (
        select id, at
        from audit_log
        order by id
        limit $1
    ) as oldest
    where at < (select api_now()) - $2::bigint * interval '1 microsecond'
)

-- name: CHANGES
-- $1 the position after which further items are examined; $2 how many of them; $3 rows at most.
-- The order of the change feed is that of time, apart from long transactions and clocks that ran ahead, and no index by
-- time is needed: each batch examines the first items, and further ones from where the last batch ended, so none is
-- left out for long. Returns where the next batch continues: here if this one was full, else behind the last of the further items, and null
-- at the end.
with further as materialized (
    select seller_id, xid, id, at
    from changes
    where (xid, id) > (split_part($1, ' ', 1)::bigint, split_part($1, ' ', 2)::bigint)
    order by xid, id
    limit $2
),
expired as materialized (
    select seller_id, id
    from (
        select *
        from (
            select seller_id, xid, id, at
            from changes
            order by xid, id
            limit $3
        ) as first
        union
        select *
        from further
    ) as examined
    where at < (select api_now()) - interval '30 days'
    order by xid, id
    limit $3
),
deleted as (
    delete from changes as c
    using expired as e
    where c.seller_id = e.seller_id
      and c.id = e.id
)
select
    size.rows,
    case
        when size.rows >= $3 then $1
        else (
            select xid || ' ' || id
            from further
            order by further.xid, further.id
            offset $2 - 1
            limit 1
        )
    end as next
from (select count(*) as rows from expired) as size

-- name: DELIVERIES
-- $1 the queue at which it continues; $2 queues examined at most; $3 rows at most.
-- Deletes old deliveries, except the last hundred of each subscription, and all deliveries whose subscription was
-- deleted. Those that rest between two attempts, or have not been due for an hour, stay for another day: repeated again
-- and again, they would hold up what is behind the oldest thousand.
--
-- It walks the queues by the primary key, in which ids rise with time. So it reads the oldest of each queue and, if that is old
-- enough, the oldest thousand and the hundred it keeps, and needs no index of its own. Returns where the next batch continues:
-- here if this one was full, else at the queue after the last examined, and null at the end.
with recursive age as materialized (
    -- The id of thirty days ago is that timestamp with all random bits zero.
    select
        at,
        (
            lpad(to_hex(floor(extract(epoch from at - interval '30 days') * 1000)::bigint), 12, '0') || repeat('0', 20)
        )::uuid as id
    from (
        select api_now() as at
    ) as clock
),
queue as (
    (
        select seller_id, subscription_id, id as oldest, 0 as n
        from deliveries
        where (seller_id, subscription_id) >= (split_part($1, ' ', 1)::uuid, split_part($1, ' ', 2)::uuid)
        order by seller_id, subscription_id, id
        limit 1
    )
    union all
    select d.seller_id, d.subscription_id, d.id, l.n + 1
    from queue as l
    cross join lateral (
        select seller_id, subscription_id, id
        from deliveries
        where (seller_id, subscription_id) > (l.seller_id, l.subscription_id)
        order by seller_id, subscription_id, id
        limit 1
    ) as d
    where l.n < $2
),
expired as materialized (
    select d.seller_id, d.subscription_id, d.id, d.due_at
    from queue as l
    cross join age
    left join subscriptions as s on s.seller_id = l.seller_id and s.id = l.subscription_id
    cross join lateral (
        select x.seller_id, x.subscription_id, x.id, x.due_at, x.created_at
        from deliveries as x
        where x.seller_id = l.seller_id
          and x.subscription_id = l.subscription_id
          and x.id < case
              when s.id is null then 'ffffffff-ffff-ffff-ffff-ffffffffffff'
              -- None is old enough.
              when l.oldest >= age.id then l.oldest
              else least(age.id, coalesce((
                  select h.id
                  from deliveries as h
                  where h.seller_id = l.seller_id
                    and h.subscription_id = l.subscription_id
                  order by h.id desc
                  offset 99
                  limit 1
              ), '00000000-0000-0000-0000-000000000000'))
          end
        order by x.id
        limit 1000
    ) as d
    where l.n < $2
      and (
          s.id is null
          or d.due_at is null
          or d.due_at < age.at - interval '1 hour'
          or d.created_at < age.at - interval '31 days'
      )
    -- Without an order, which would read all of them first.
    limit $3
),
cleared as (
    delete from deliveries as d
    using expired as x
    where d.seller_id = x.seller_id
      and d.subscription_id = x.subscription_id
      and d.id = x.id
      -- It may have been queued anew meanwhile.
      and d.due_at is not distinct from x.due_at
)
select
    count(*) as rows,
    case
        when count(*) >= $3 then $1
        else (select seller_id || ' ' || subscription_id from queue where n = $2)
    end as next
from expired

-- name: CLOSED_SELLERS
-- $1 rows at most; $2 microseconds.
-- The new address is unique, and marks an account as erased. Its subscriptions go first: nobody could delete them afterwards.
-- Their deliveries are left to `DELIVERIES`.
with due as materialized (
    select id
    from sellers
    where closed_at < (select api_now()) - $2::bigint * interval '1 microsecond'
      and email not like '%@erased.invalid'
    order by closed_at
    limit $1
    for no key update skip locked
),
theirs as materialized (
    select s.seller_id, s.id
    from due as d
    join subscriptions as s on s.seller_id = d.id
    order by s.seller_id, s.id
    limit $1
    for update of s
),
deleted as (
    delete from subscriptions as s
    using theirs as t
    where s.seller_id = t.seller_id
      and s.id = t.id
    returning s.id
),
erased as (
    update sellers as s
    set name = 'erased',
        email = id || '@erased.invalid',
        password_hash = null
    where id in (select id from due)
      and not exists (
          select
          from subscriptions as o
          where o.seller_id = s.id
      )
    returning id
),
quotas as (
    delete from subscription_quota as q
    using erased as e
    where q.seller_id = e.id
),
mails as (
    delete from account_mails as m
    using erased as e
    where m.seller_id = e.id
)
select id
from erased
union all
select id
from deleted

-- name: ERASE_BUYERS
-- $1 the orders.
-- The set-based form of `SellerOrder::erase_buyer`, which defines the rule, including `updated_at`; a test compares the
-- two.
with clock as materialized (
    select api_now() as at
),
-- Locked by seller, as in every transaction.
parts as materialized (
    select seller_id, order_id
    from seller_orders
    where order_id = any($1)
      and num_nonnulls(buyer, shipping_address, delivery_point, invoice) > 0
    order by seller_id, order_id
    for no key update
)
update seller_orders as p
set buyer = null,
    shipping_address = null,
    delivery_point = null,
    invoice = null,
    updated_at = case
        when p.paid_at is null then p.updated_at
        else greatest(p.updated_at + interval '1 us', (select at from clock))
    end
from parts
where p.seller_id = parts.seller_id
  and p.order_id = parts.order_id

-- name: ERASE_BUYERS_OF_SELLER
-- $1 the seller; $2 the orders; $3 the time.
-- The same on Citus, where only immutable functions may be in the SET clause: no clock, and, since days have different
-- lengths where clocks change, no interval added to a time with time zone.
update seller_orders
set buyer = null,
    shipping_address = null,
    delivery_point = null,
    invoice = null,
    updated_at = case
        when paid_at is null then updated_at
        else greatest((updated_at at time zone 'UTC' + interval '1 us') at time zone 'UTC', $3)
    end
where seller_id = $1
  and order_id = any($2)
  and num_nonnulls(buyer, shipping_address, delivery_point, invoice) > 0
