-- name: OFFERS_TO_CHANGE
-- $1 the offers' sellers; $2 their ids; $3 the spaces of the keys; $4 the keys; $5 the requests' fingerprints. Each question has exactly one
-- row: a seller has an offer or a key once.
with clock as materialized (
    select api_now() as at
)
select
    clock.at, i.fence, i.fingerprint, i.status as answer_status,
    -- Another request's answer may have a megabyte.
    case when i.fingerprint = k.fingerprint then i.body end as body,
    i.etag, o.*
from clock
cross join unnest((select $1::uuid[]), (select $2::uuid[]), (select $3::uuid[]), (select $4::text[]), (select $5::bytea[]))
    with ordinality as k (seller_id, id, space, key, fingerprint, n)
left join lateral (
    -- An expired key counts as absent.
    select *
    from idempotency
    where seller_id = k.space
      and key = k.key
      and expires_at > clock.at
    offset 0
) as i on true
left join lateral (
    select *
    from offers
    where seller_id = k.seller_id
      and id between k.id and k.id
    order by id desc
    limit 1
) as o on true
order by k.n

-- name: SAVE_CHANGES
-- Saves the members of a batch of which the row is free and as expected, and the key unused; returns their places.
--
-- $1 the members' places in the batch; $2 the sellers; $3 the offers; $4 when they were read; $5 their `updated_at` and $6 their price
-- sources then; and after the change $7 `updated_at`, $8 prices, $9 price sources, $10 stocks, $11 statuses and $12 external
-- ids; $13 the keys, $14 their fences and $15 their fingerprints; $16 the statuses, $17 the sealed bodies and $18 the entity tags of the
-- answers.
-- The items of the feed: $19 the places of their members, $20 times, $21 kinds, $22 prices, $23 stocks, $24 statuses.
--
-- - Each step joins what the step before returned, so a member is saved whole or drops out.
-- - Locks are taken in the order of all transactions: offers, then keys, each sorted. A locked offer is skipped. A locked key is waited
--   for, but not for long, since the whole batch waits: after 50 ms its members go alone.
-- - A row that another transaction has changed since the statement began drops out.
with clock as materialized (
    select api_now() as at, set_config('lock_timeout', '50ms', true) as lock_timeout
),
locked as materialized (
    select w.*, v.place, o.ctid as locked_at, clock.at
    from clock
    cross join unnest(
        (select $1::bigint[]), (select $2::uuid[]), (select $3::uuid[]), (select $4::timestamptz[]),
        (select $5::timestamptz[]), (select $6::text[]), (select $7::timestamptz[]), (select $8::bigint[]),
        (select $9::text[]), (select $10::integer[]), (select $11::text[]), (select $12::text[]),
        (select $13::text[]), (select $14::uuid[]), (select $15::bytea[]), (select $16::smallint[]), (select $17::bytea[]),
        (select $18::text[])
    ) as w (
        n, seller_id, offer_id, read_at, old_updated_at, old_source, updated_at, amount, source, stock, status, external_id,
        key, fence, fingerprint, answer_status, answer, etag
    )
    cross join lateral (
        select ctid as place
        from offers
        where seller_id = w.seller_id
          and id between w.offer_id and w.offer_id
        order by id desc
        limit 1
    ) as v
    join offers as o on o.ctid = v.place
    where o.updated_at = w.old_updated_at
      and o.price_source is not distinct from w.old_source
      -- Longer than the request waits. A batch that reaches the server later changes nothing.
      and clock.at < w.read_at + interval '5 seconds'
    order by o.seller_id, o.id
    for no key update of o skip locked
),
keyed as (
    insert into idempotency as t (seller_id, key, fence, fingerprint, created_at, expires_at, status, body, etag)
    select seller_id, key, fence, fingerprint, at, at + interval '24 hours', answer_status, answer, etag
    from locked
    -- Before 15.15 PostgreSQL locks a version that another transaction put in its stead just now, and `changed` would not see that.
    where locked_at = place
    order by seller_id, key
    on conflict (seller_id, key) do update
    set fence = excluded.fence, fingerprint = excluded.fingerprint, created_at = excluded.created_at,
        expires_at = excluded.expires_at, status = excluded.status, body = excluded.body, etag = excluded.etag
    where t.expires_at <= excluded.created_at
    returning seller_id, key
),
changed as (
    update offers as o
    set updated_at = w.updated_at, price_amount = w.amount, price_source = w.source, stock = w.stock, status = w.status,
        external_id = w.external_id
    from locked as w
    join keyed on keyed.seller_id = w.seller_id and keyed.key = w.key
    where o.ctid = w.place
    returning w.n, w.seller_id, w.offer_id
),
fed as (
    insert into changes (seller_id, at, kind, offer_id, price_amount, stock, status)
    select c.seller_id, e.at, e.kind, c.offer_id, e.amount, e.stock, e.status
    from changed as c
    join unnest(
        (select $19::bigint[]), (select $20::timestamptz[]), (select $21::text[]), (select $22::bigint[]),
        (select $23::integer[]), (select $24::text[])
    ) with ordinality as e (n, at, kind, amount, stock, status, place) on e.n = c.n
    order by e.place
)
select n
from changed
