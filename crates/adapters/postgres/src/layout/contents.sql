-- Whether there is a worker, and whether a table has more than $1 rows.
select exists (select from pg_dist_node where groupid <> 0 and isactive),
    (select count(*) from (select from offers limit $1::bigint + 1) o) > $1
        or (select count(*) from (select from seller_orders limit $1 + 1) p) > $1
