-- name: PARTS
-- $1 the sellers and $2 the orders of the questions.
select k.n, o.*
-- A subquery passes the keys, so that one plan serves lists of any length.
from unnest((select $1::uuid[]), (select $2::uuid[])) with ordinality as k (seller_id, order_id, n)
join seller_orders as o on o.seller_id = k.seller_id and o.order_id = k.order_id

-- name: FIND_BY_BUYER
-- $1 the buyer's address; $2 the order after which the search begins; $3 how many parts it passes at most.
select order_id, case when lower(buyer->>'email') = lower($1) then number end as number, placed_at
from seller_orders
where order_id > $2
order by order_id
limit $3
