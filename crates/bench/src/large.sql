-- A marketplace that has run for two years: with bench.scale 1, 5 million offers, 1 million orders, 3 million deliveries of 100 000
-- subscriptions, 5 million idempotency keys, 200 000 families and 1 million feed items. One seller has a fifth of the offers and orders, one
-- application a quarter of the connections, one subscription a tenth of the deliveries.
--
-- Sealed values are random, under a key `bench`.
--
-- `bench large` sends each statement by itself; the scale is the setting bench.scale.

-- No foreign keys are checked, and no commit waits for the disk.
set session_replication_role = replica;

set synchronous_commit = off;

create temporary table size as
select now() as at, greatest(50, (50000 * scale)::bigint) as sellers, greatest(10, (1000 * scale)::bigint) as applications,
    (200000 * scale)::bigint as families, (100000 * scale)::bigint as subscriptions, (5000000 * scale)::bigint as offers,
    (1000000 * scale)::bigint as orders, (3000000 * scale)::bigint as deliveries, (5000000 * scale)::bigint as keys,
    (1000000 * scale)::bigint as changes
from (select current_setting('bench.scale')::float8 as scale) s;

-- The id of row n.
create function pg_temp.id(high text, n bigint) returns uuid
    language sql immutable parallel safe as $$ select (high || 8000000000000000 + n)::uuid $$;

-- The id of row n, created then.
create function pg_temp.id_at(at timestamptz, n bigint) returns uuid
    language sql immutable parallel safe
    as $$ select (lpad(to_hex(floor(extract(epoch from at) * 1000)::bigint), 12, '0') || '7000' || 8000000000000000 + n)::uuid $$;

create function pg_temp.seller(n bigint) returns uuid
    language sql immutable parallel safe as $$ select pg_temp.id('0196000000007000', n) $$;

-- The application of a seller's nth connection.
create function pg_temp.application(seller bigint, nth bigint, applications bigint) returns uuid
    language sql immutable parallel safe
    as $$ select pg_temp.id('0196000000017000', case nth when 0 then 0 else 1 + (3 * seller + nth) % (applications - 1) end) $$;

create function pg_temp.hash(n bigint) returns bytea
    language sql immutable parallel safe as $$ select sha256(int8send(n)) $$;

-- One in a hundred has left.
insert into sellers (id, name, email, created_at, closed_at)
select pg_temp.seller(n), 'Seller ' || n, 'seller-' || n || '@bench.example', at - interval '700 days',
    case when n % 100 = 99 then at - interval '10 days' end
from size, generate_series(0, sellers - 1) n;

insert into applications (client_id, owner_id, name, documentation_url, purpose, client_type, redirect_uris, scopes, status, built_in,
    secret_hash, created_at, updated_at)
select pg_temp.id('0196000000017000', n), pg_temp.seller(n % sellers), 'Bench ' || n, 'https://docs.example/bench', 'for_other_sellers',
    'confidential', '{https://app.example/callback}', 63, case when n % 50 = 49 then 'suspended' else 'active' end, false,
    pg_temp.hash(n), at - interval '600 days', at - interval '600 days'
from size, generate_series(0, applications - 1) n;

insert into families (id, seller_id, client_id, kind, scopes, generation, created_at, revoked_at)
select pg_temp.id('0196000000027000', n), pg_temp.seller(n % sellers), pg_temp.application(n % sellers, n / sellers, applications),
    'authorization_code', 63, 1, at - interval '80 days', case when n % 50 = 1 then at - interval '30 minutes' end
from size, generate_series(0, families - 1) n;

insert into connections (client_id, seller_id, connected_at) select client_id, seller_id, created_at from families;

insert into access_tokens (family_id, hash, created_at, expires_at)
select pg_temp.id('0196000000027000', n), pg_temp.hash(n), at, at + n % 720 * interval '1 minute'
from size, generate_series(0, families - 1) n;

-- One current token of each family, and nine used ones.
insert into refresh_tokens (family_id, hash, scopes, created_at, used_at, expires_at)
select pg_temp.id('0196000000027000', n), pg_temp.hash(10 * n + nth), 63, at - nth * interval '1 day',
    case when nth > 0 then at - nth * interval '1 day' end, at + (90 - nth) * interval '1 day'
from size, generate_series(0, families - 1) n, generate_series(0, 9) nth;

insert into offers (seller_id, id, created_at, updated_at, price_amount, stock, status, price_source, title, handle, ean, brand, signature,
    thumbnail, url)
select pg_temp.seller(case when n % 5 = 0 then 0 else 1 + n % (sellers - 1) end), pg_temp.id_at(born, n), born,
    born + random() * (at - born), 499 + n * 37 % 250000, (n * 7 % 120)::integer,
    ('{draft,rejected,proposed,published,published,published,published,published,published,published}'::text[])[1 + n % 100 / 10],
    'manual', brand || ' cordless drill 18 V, set number ' || n, 'cordless-drill-' || n, (5900000000000 + n)::text, brand,
    'C' || n || '|' || brand, 'https://img.shop.example/t/' || n || '/160.webp', 'https://shop.example/p/cordless-drill-' || n
from (select *, at - interval '700 days' + n * (interval '699 days' / offers) as born,
        ('{Acme,Bolt,Żubr,Kowal,Nord & Co}'::text[])[1 + n % 5] as brand
    from size, generate_series(0, offers - 1) n) numbered;

-- One order in ten is pending, processing or on its way, half of the others have lost their buyer by age.
insert into seller_orders (seller_id, order_id, placed_at, updated_at, paid_at, shipped_at, delivered_at, cancelled_at, shipment_id,
    shipment_at, carrier, tracking_number, delivered_already, buyer_notified, is_test, several_sellers, status, number, payment_method,
    delivery_method, buyer, shipping_address, items)
select pg_temp.seller(case when n % 5 = 0 then 0 else 1 + n % (sellers - 1) end), pg_temp.id_at(placed, n), placed, placed + interval '4 hours',
    case when status <> 'pending' then placed end, case when shipped then placed + interval '1 hour' end,
    case when status = 'delivered' then placed + interval '4 hours' end, case when status = 'cancelled' then placed + interval '4 hours' end,
    case when shipped then pg_temp.id_at(placed, n) end, case when shipped then placed + interval '1 hour' end,
    case when shipped then carrier end, case when shipped then 'TRACK' || n end, case when shipped then false end,
    case when shipped then true end, false, false, status, 'BENCH-' || n, 'card', 'courier',
    case when n >= orders / 2 then json_build_object('name', 'Buyer ' || n, 'email', 'buyer-' || n || '@bench.example') end,
    case when n >= orders / 2 then json_build_object('line1', n || ' Long Street', 'postal_code', '00-001', 'city', 'Warszawa', 'country', 'PL') end,
    json_build_array(json_build_object('offer', pg_temp.id_at(placed, n), 'title', 'Cordless drill', 'quantity', 1, 'unit_price', 19900))
from (select *, status in ('shipped', 'delivered') as shipped,
        ('{inpost,dhl,poczta_polska,dpd,gls,ups,fedex}'::text[])[1 + n % 7] as carrier
    from (select *, at - interval '700 days' + n * (interval '699 days' / orders) as placed,
            (case when n % 1000 < 20 then 'pending' when n % 1000 < 50 then 'processing' when n % 1000 < 100 then 'shipped'
                when n % 1000 < 150 then 'cancelled' else 'delivered' end) as status
        from size, generate_series(0, orders - 1) n) placed) numbered;

insert into orders (order_id, number, is_test, created_at, buyer_erased_at, sellers)
select order_id, number, is_test, placed_at, case when buyer is null then at - interval '1 day' end, array[seller_id]
from size, seller_orders;

insert into parcels (seller_id, order_id, shipped_at, due_at, carrier, tracking_number)
select seller_id, order_id, shipped_at, at + random() * interval '4 hours' - interval '1 minute', carrier, tracking_number
from size, seller_orders where status = 'shipped';

-- The mails of thirty days, one in a thousand given up, and some of them waiting.
insert into mails (id, order_id, created_at, due_at, sent_at, dead_at, attempts, order_number, recipient, carrier, tracking_number)
select pg_temp.id_at(placed, n), pg_temp.id_at(placed, n), placed, case when n % 1000 = 1 then at + n * interval '1 ms' end,
    case when n % 1000 > 1 then placed end, case when n % 1000 = 0 then placed end, 1, 'BENCH-' || n, 'buyer-' || n || '@bench.example', 'dhl', 'TRACK' || n
from (select *, at - interval '30 days' + n * (interval '30 days' / orders) as placed from size, generate_series(0, orders / 2) n) numbered;

insert into subscriptions (seller_id, id, client_id, created_at, connection_generation, active, failing, url, events, secret)
select pg_temp.seller(n % sellers), pg_temp.id('0196000000037000', n), pg_temp.application(n % sellers, n / sellers, applications),
    at - interval '80 days', 1, n % 100 <> 98, n % 100 = 1, 'http://127.0.0.1:9/hooks/' || n % 5000,
    '{order.created,order.paid,order.cancelled}', '\x0562656e6368' || sha512(int8send(n))
from size, generate_series(0, subscriptions - 1) n;

insert into subscription_quota (seller_id, client_id, used)
select seller_id, client_id, count(*) from subscriptions group by seller_id, client_id;

-- The first subscription has a backlog of 100 000, a thousandth of the others each a retry, a first attempt, or nothing but failures.
insert into deliveries (seller_id, subscription_id, id, created_at, due_at, delivered_at, duration_ms, attempt, response_status, failure, event,
    body)
select pg_temp.seller(queue % sellers), pg_temp.id('0196000000037000', queue), pg_temp.id_at(made, n), made,
    case when kind in (0, 1) then at - interval '1 minute' when kind = 2 then at + n * interval '1 ms' end,
    case when kind > 3 then made end, case when kind > 1 then 20 end, case kind when 0 then 0 when 1 then 0 when 2 then 2 when 3 then 6 else 1 end,
    case when kind > 3 then 204 end, case when kind in (2, 3) then 'connect' end, 'order.paid',
    convert_to('{"id":"' || pg_temp.id_at(made, n) || '","event":"order.paid","data":{"order_id":"' || pg_temp.id_at(made, n)
        || '","order_number":"BENCH-' || n || '"}}', 'UTF8')
from (select *, case when n % 30 = 0 then 0 when n % 10 = 0 then 4 when n % 1000 in (1, 2, 3) then n % 1000 else 4 end as kind,
        case when n % 10 = 0 then 0 else n % subscriptions end as queue,
        at - interval '29 days' + n * (interval '29 days' / deliveries) as made
    from size, generate_series(0, deliveries - 1) n) numbered;

update subscriptions s set wake_at = d.due_at
from (select seller_id, subscription_id, min(due_at) as due_at from deliveries where due_at is not null group by 1, 2) d
where s.seller_id = d.seller_id and s.id = d.subscription_id and s.active;

insert into idempotency (seller_id, fence, created_at, expires_at, status, key, fingerprint, body)
select pg_temp.seller(case when n % 5 = 0 then 0 else 1 + n % (sellers - 1) end), pg_temp.id('0196000000047000', n), made,
    made + interval '24 hours', 200, 'key-' || n, pg_temp.hash(n), '\x0562656e6368' || sha512(int8send(n)) || sha512(int8send(-n)) || sha512(int8send(3 * n))
from (select *, at - interval '24 hours' + n * (interval '24 hours' / keys) as made from size, generate_series(0, keys - 1) n) numbered;

-- A thousand items a transaction: the feed's order is that of transactions.
do $$
begin
    for item in 0 .. (select changes - 1 from size) by 1000 loop
        insert into changes (seller_id, at, kind, offer_id, stock)
        select pg_temp.seller(n % sellers), at - interval '29 days' + n * (interval '29 days' / changes), 'offer.stock_changed',
            pg_temp.seller(n), n % 100
        from size, generate_series(item, least(item + 1000, changes) - 1) n;
        commit;
    end loop;
end $$;

vacuum (analyze);
