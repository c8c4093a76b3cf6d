-- A seller's offers, newest first: see `listing.rs`.
--
-- The planner has to know two limits, which are therefore literals: 201, the largest page (`MAX_PAGE_SIZE`) and the row that shows whether
-- more follow; and 5000, the most updated rows that are sorted, and the most rows that are walked past.

-- name: PAGES
-- Several pages. $1 their sellers; $2 the statuses that they are filtered by, or nulls; $3 and $4 the times and ids after which they begin;
-- $5 the most rows of each; $6 the instants after which their rows were created, or nulls.
--
-- The plan is generic: subqueries pass the arrays, since for known values the planner estimates a lower cost and would replan at each run.
-- For a limit that it does not know the planner expects a tenth of the rows, and so stays on the list's index where these are few; the
-- literal limit keeps it there where one seller has most of the rows.
--
-- The rows of a page come in its order: one branch has all of them, and the loop over the pages keeps the order of its index.
select k.n, true as matches, false as is_end, page.*
from unnest(
    (select $1::uuid[]), (select $2::text[]), (select $3::timestamptz[]), (select $4::uuid[]), (select $5::bigint[]), (select $6::timestamptz[])
) with ordinality as k (seller_id, status, after, after_id, size, newer_than, n)
cross join lateral (
    (
        select *
        from offers
        where k.status is null
          and seller_id = k.seller_id
          and created_at > coalesce(k.newer_than, '-infinity')
          and (created_at, id) < (k.after, k.after_id)
        order by created_at desc, id desc
        limit k.size
    )
    union all
    (
        select *
        from offers
        where seller_id = k.seller_id
          and status = k.status
          and created_at > coalesce(k.newer_than, '-infinity')
          and (created_at, id) < (k.after, k.after_id)
        order by created_at desc, id desc
        limit k.size
    )
    limit 201
) as page

-- name: BY_IDS
-- A seller's offers. $1 the seller; $2 their ids.
select 1::bigint as n, true as matches, false as is_end, o.*
from unnest((select $2::uuid[])) as k (id)
join offers as o on o.seller_id = $1 and o.id = k.id

-- name: UPDATED
-- A page of rows that were updated after an instant. `is_end` marks the row at which the walk ended, which may not match.
-- $1 the seller; $2 the instant; $3 the instant after which the rows were created, or null; $4 and $5 the time and id after which the page
-- begins; $6 the status that it is filtered by, or null; $7 how many rows at most.
--
-- It runs after `PLAN_BY_VALUES`. A part is executed only if the ones before have left rows missing.
with newer as materialized (
    -- Rows created after the instant: all of them match.
    select created_at, id
    from offers
    where seller_id = $1
      and ($6::text is null or status = $6)
      and created_at > greatest($2, $3::timestamptz)
      and (created_at, id) < ($4, $5)
    order by created_at desc, id desc
    limit $7
),
updated as materialized (
    -- The limit comes before any other filter, in the order of the index on `updated_at`: it keeps the planner there.
    select created_at, id, status
    from offers
    where seller_id = $1
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
    select created_at, id, updated_at, row_number() over (order by created_at desc, id desc) as n
    from offers
    where not (select all_found from few)
      and seller_id = $1
      and ($6::text is null or status = $6)
      and created_at <= $2
      and created_at > coalesce($3::timestamptz, '-infinity')
      and (created_at, id) < ($4, $5)
    order by created_at desc, id desc
    limit 5000
),
found as (
    select created_at, id, true as matches, false as is_end
    from newer
    union all
    select created_at, id, true, false
    from updated
    where (select all_found from few)
      and ($6::text is null or status = $6)
      and created_at <= $2
      and created_at > coalesce($3::timestamptz, '-infinity')
      and (created_at, id) < ($4, $5)
    union all
    (
        select created_at, id, updated_at > $2, n = 5000
        from walked
        where updated_at > $2
           or n = 5000
        order by created_at desc, id desc
        limit $7
    )
),
page as (
    select *
    from found
    order by created_at desc, id desc
    limit $7
)
select 1::bigint as n, page.matches, page.is_end, o.*
from page
join offers as o on o.seller_id = $1 and o.id = page.id
order by o.created_at desc, o.id desc

-- name: BY_CODE
-- A page of the offers with an external id; to find them by another code, its column is put in place of this one. It examines at most 201
-- of them for the other filters, as many rows as a page has: other pages wait behind it. `is_end` marks the row at which it ended, which may
-- not match.
-- $1 the seller; $2 the code; $3 other codes, by column; $4 the instant after which the rows were updated, or null; $5 and $6 the time and id
-- after which the page begins; $7 the status that it is filtered by, or null; $8 how many rows at most.
--
-- Any number of offers may have the same code. Compared by `=`, it would be no part of the order, and a planner that expects all offers to
-- have it would take the list's index, to pass all of them where none has. Only the index on the code has this order.
select *
from (
    select *, n = 201 as is_end,
        (
            status = coalesce($7, status)
            and updated_at > coalesce($4::timestamptz, '-infinity')
            and ($3::json::text = '{}' or to_jsonb(walked) @> $3::jsonb)
        ) as matches
    from (
        select *, row_number() over (order by external_id desc, created_at desc, id desc) as n
        from offers
        where seller_id = $1
          and external_id >= $2
          and (external_id, created_at, id) < ($2, $5, $6)
        order by external_id desc, created_at desc, id desc
        limit 201
    ) as walked
) as looked_at
where matches
   or is_end
order by created_at desc, id desc
limit $8
