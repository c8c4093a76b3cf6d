-- Takes no lock: the function is new.

-- Where the newest version of a subscription is that the statement sees, if there is one. A busy queue has many that an old snapshot
-- keeps, and the entries of its key lead to all of them in the order of their places: read backwards, they begin with it.
-- By an equal key the planner would read them forwards, or all.
create function newest_version(seller uuid, subscription uuid) returns setof tid
    language sql stable parallel safe
    as $$
        select place
        from (
            select seller_id, id, ctid as place
            from subscriptions
            where (seller_id, id) <= (seller, subscription)
            order by seller_id desc, id desc
            limit 1
        ) as newest
        where (seller_id, id) = (seller, subscription)
    $$;

insert into schema_facts values ('0038', '0.1.0');
