-- Takes no lock: the functions are new.

-- Where the newest version of a subscription is that the statement sees, if there is one. A busy queue has many that an old snapshot
-- keeps, and the entries of its key lead to all of them in the order of their places: read backwards, they mostly begin with it.
-- By an equal key the planner would read them forwards, or all.
create function newest_version(seller uuid, subscription uuid) returns setof tid
    language sql stable parallel safe
    as $$
        select place
        from (
            select id, ctid as place
            from subscriptions
            where seller_id = seller
              and id <= subscription
            order by seller_id desc, id desc
            limit 1
        ) as newest
        where id = subscription
    $$;

-- The same of all subscriptions of a seller, the last one first.
create function newest_versions(seller uuid) returns table (id uuid, place tid)
    language sql stable parallel safe
    as $$
        -- After an entry that is none.
        with recursive found (id, place) as (
            select 'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid, null::tid
            union all
            select n.*
            from found as f
            cross join lateral (
                select s.id, s.ctid
                from subscriptions as s
                where s.seller_id = seller
                  and s.id < f.id
                order by s.seller_id desc, s.id desc
                limit 1
            ) as n
        )
        select found.id, found.place
        from found
        where found.place is not null
    $$;

insert into schema_facts values ('0038', '0.1.0');
