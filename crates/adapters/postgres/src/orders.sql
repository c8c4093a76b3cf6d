-- Parts of orders. Lists have a seller's, without test orders, newest first: see `listing.rs`.
--
-- The planner has to know two limits, which are therefore literals: 201, the largest page (`MAX_PAGE_SIZE`) and the row that shows whether
-- more follow; and 5000, the most updated rows that are sorted, and the most rows that are walked past.
--
-- A page ends with the row with which the documents of its items have 1048576 bytes: `is_end` marks it, if more rows follow.

-- name: PAGES
-- Several pages. $1 their sellers; $2 the statuses that they are filtered by, or nulls; $3 and $4 the times and ids after which they begin;
-- $5 the most rows of each; $6 the instants after which their rows were placed, or nulls.
--
-- The plan is generic: subqueries pass the arrays, since for known values the planner estimates a lower cost and would replan at each run.
-- For a limit that it does not know the planner expects a tenth of the rows, and so stays on the list's index where these are few; the
-- literal limit keeps it there where one seller has most of the rows.
--
-- The rows of a page come in its order: one branch has all of them, and the loop over the pages keeps the order of its index.
select k.n, true as matches, page.read >= 1048576 and page.has_next as is_end, page.*
from unnest(
    (select $1::uuid[]), (select $2::text[]), (select $3::timestamptz[]), (select $4::uuid[]), (select $5::bigint[]), (select $6::timestamptz[])
) with ordinality as k (seller_id, status, after, after_id, size, newer_than, n)
cross join lateral (
    select *, sum(length) over so_far as read, lead(true, 1, false) over so_far as has_next
    from (
        (
            select *, coalesce(items_length, pg_column_size(items)) as length
            from seller_orders
            where k.status is null
              and seller_id = k.seller_id
              and not is_test
              and placed_at > coalesce(k.newer_than, '-infinity')
              and (placed_at, order_id) < (k.after, k.after_id)
            order by placed_at desc, order_id desc
            limit k.size
        )
        union all
        (
            select *, coalesce(items_length, pg_column_size(items)) as length
            from seller_orders
            where seller_id = k.seller_id
              and status = k.status
              and not is_test
              and placed_at > coalesce(k.newer_than, '-infinity')
              and (placed_at, order_id) < (k.after, k.after_id)
            order by placed_at desc, order_id desc
            limit k.size
        )
        limit 201
    ) as parts
    window so_far as (rows unbounded preceding)
) as page
where page.read - page.length < 1048576

-- name: UPDATED
-- A page of rows that were updated after an instant. `is_end` marks the row at which the walk ended, which may not match.
-- $1 the seller; $2 the instant; $3 the instant after which the rows were placed, or null; $4 and $5 the time and id after which the page
-- begins; $6 the status that it is filtered by, or null; $7 how many rows at most.
--
-- It runs after `PLAN_BY_VALUES`. A part is executed only if the ones before have left rows missing.
with newer as materialized (
    -- Rows placed after the instant: all of them match.
    select placed_at, order_id
    from seller_orders
    where seller_id = $1
      and ($6::text is null or status = $6)
      and not is_test
      and placed_at > greatest($2, $3::timestamptz)
      and (placed_at, order_id) < ($4, $5)
    order by placed_at desc, order_id desc
    limit $7
),
updated as materialized (
    -- The limit comes before any other filter, in the order of the index on `updated_at`: it keeps the planner there.
    select placed_at, order_id, status
    from seller_orders
    where seller_id = $1
      and not is_test
      and updated_at > $2
      and (select count(*) < $7 from newer)
    order by updated_at
    limit 5000 + 1
),
few as materialized (
    select count(*) <= 5000 as all_found
    from updated
),
walked as (
    select placed_at, order_id, updated_at, row_number() over (order by placed_at desc, order_id desc) as n
    from seller_orders
    where not (select all_found from few)
      and seller_id = $1
      and ($6::text is null or status = $6)
      and not is_test
      and placed_at <= $2
      and placed_at > coalesce($3::timestamptz, '-infinity')
      and (placed_at, order_id) < ($4, $5)
    order by placed_at desc, order_id desc
    limit 5000
),
found as (
    select placed_at, order_id, true as matches, false as is_end
    from newer
    union all
    select placed_at, order_id, true, false
    from updated
    where (select all_found from few)
      and ($6::text is null or status = $6)
      and placed_at <= $2
      and placed_at > coalesce($3::timestamptz, '-infinity')
      and (placed_at, order_id) < ($4, $5)
    union all
    (
        select placed_at, order_id, updated_at > $2, n = 5000
        from walked
        where updated_at > $2
           or n = 5000
        order by placed_at desc, order_id desc
        limit $7
    )
),
page as (
    select *
    from found
    order by placed_at desc, order_id desc
    limit $7
)
select 1::bigint as n, page.is_match as matches, page.is_walked or page.read >= 1048576 and page.has_next as is_end, page.*
from (
    select *, sum(length) over so_far as read, lead(true, 1, false) over so_far as has_next
    from (
        select page.matches as is_match, page.is_end as is_walked, o.*, coalesce(o.items_length, pg_column_size(o.items)) as length
        from page
        join seller_orders as o on o.seller_id = $1 and o.order_id = page.order_id
        order by o.placed_at desc, o.order_id desc
    ) as parts
    window so_far as (rows unbounded preceding)
) as page
where page.read - page.length < 1048576

-- name: PARTS
-- Parts of orders by their ids, test orders too.
-- $1 the sellers and $2 the orders of the questions.
select k.n, true as matches, false as is_end, o.*
-- A subquery passes the keys, so that one plan serves lists of any length.
from unnest((select $1::uuid[]), (select $2::uuid[])) with ordinality as k (seller_id, order_id, n)
join seller_orders as o on o.seller_id = k.seller_id and o.order_id = k.order_id

-- name: BY_IDS
-- A seller's parts of orders, test orders too, in the order of their ids, to the one with which their items have a megabyte: `is_end`.
-- $1 the seller; $2 the orders.
select 1::bigint as n, true as matches, read >= 1048576 as is_end, parts.*
from (
    select *, sum(length) over (order by order_id) as read
    from (
        select o.*, coalesce(o.items_length, pg_column_size(o.items)) as length
        from unnest((select $2::uuid[])) as k (order_id)
        join seller_orders as o on o.seller_id = $1 and o.order_id = k.order_id
    ) as lengths
) as parts
where read - length < 1048576
order by order_id

-- name: FIND_BY_BUYER
-- $1 the buyer's address; $2 the order after which the search begins; $3 how many parts it passes at most.
select order_id, case when lower(buyer->>'email') = lower($1) then number end as number, placed_at
from seller_orders
where order_id > $2
order by order_id
limit $3
