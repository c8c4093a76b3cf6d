-- A busy offer has many versions that an old snapshot keeps, and its key's entries lead to all of them, in the order of their places: read
-- backwards, here and in `offers/changes.sql`, they mostly begin with the newest. That takes a range, of one id: an equal key has no order.

-- name: OFFERS
-- $1 the sellers and $2 the ids of the questions.
select k.n, true as matches, false as is_end, o.*
-- A subquery passes the keys: with bare parameters a short list would be replanned at each run, since the planner estimates a lower cost
-- for so few rows than for the generic plan.
from unnest((select $1::uuid[]), (select $2::uuid[])) with ordinality as k (seller_id, id, n)
cross join lateral (
    select *
    from offers
    where seller_id = k.seller_id
      and id between k.id and k.id
    order by id desc
    limit 1
) as o

-- name: INSERT_OFFERS
-- $1 the rows. An existing offer is a conflict on `offers_pkey`.
insert into offers
select *
from json_populate_recordset(null::offers, $1)

-- name: SAVE_OFFERS
-- $1 the seller; $2 the offers' states.
update offers
set updated_at = u.updated_at, price_amount = u.price_amount, stock = u.stock, status = u.status, price_source = u.price_source,
    external_id = u.external_id
from json_populate_recordset(null::offers, $2) as u
where offers.seller_id = $1
  and offers.id = u.id

-- name: UPDATE_OFFERS
-- $1 the seller; $2 the rows.
update offers
set updated_at = u.updated_at, price_amount = u.price_amount, stock = u.stock, status = u.status, price_source = u.price_source,
    title = u.title, handle = u.handle, ean = u.ean, brand = u.brand, signature = u.signature, thumbnail = u.thumbnail, url = u.url,
    external_id = u.external_id
from json_populate_recordset(null::offers, $2) as u
where offers.seller_id = $1
  and offers.id = u.id
