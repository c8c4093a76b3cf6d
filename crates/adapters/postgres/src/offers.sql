-- name: OFFERS
-- $1 the sellers and $2 the ids of the questions.
select
    k.n, o.seller_id, o.id, o.created_at, o.updated_at, o.price_amount, o.stock, o.status, o.price_source, o.title,
    o.handle, o.ean, o.brand, o.signature, o.thumbnail, o.url
-- A subquery passes the keys: with bare parameters a short list would be replanned at each run, since the planner estimates a lower cost
-- for so few rows than for the generic plan.
from unnest((select $1::uuid[]), (select $2::uuid[])) with ordinality as k (seller_id, id, n)
join offers as o on o.seller_id = k.seller_id and o.id = k.id

-- name: INSERT_OFFERS
-- $1 the seller; then one array for each further column. An existing offer is a conflict on `offers_pkey`.
insert into offers (
    seller_id, id, created_at, updated_at, price_amount, stock, status, price_source, title, handle, ean, brand, signature,
    thumbnail, url
)
select $1, u.*
from unnest(
    $2::uuid[], $3::timestamptz[], $4::timestamptz[], $5::bigint[], $6::integer[], $7::text[], $8::text[], $9::text[],
    $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[]
) as u

-- name: UPDATE_OFFERS
-- The parameters of INSERT_OFFERS.
update offers
set updated_at = u.updated_at, price_amount = u.price_amount, stock = u.stock, status = u.status, price_source = u.price_source,
    title = u.title, handle = u.handle, ean = u.ean, brand = u.brand, signature = u.signature, thumbnail = u.thumbnail, url = u.url
from unnest(
    $2::uuid[], $3::timestamptz[], $4::timestamptz[], $5::bigint[], $6::integer[], $7::text[], $8::text[], $9::text[],
    $10::text[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[]
) as u (
    id, created_at, updated_at, price_amount, stock, status, price_source, title, handle, ean, brand, signature, thumbnail, url
)
where offers.seller_id = $1
  and offers.id = u.id
