//! What pgbench writes beside our endpoints: the same rows of the same tables, by the same kinds of statements.
//!
//! A claim on a fresh key, whose commit does not wait for the disk; then one transaction that locks the row, updates it,
//! tells the feed of changes, queues the buyer's mail where there is one, and completes the claim with a body as long as a
//! sealed one. No delivery, since nobody has subscribed.

use super::requests::{KEY_HIGH, LOWEST_PRICE};
use super::trade::{ID_HIGH as ORDER_HIGH, Trade};
use crate::catalogue::{Catalogue, ID_HIGH, ID_LOW};
use crate::cluster::Cluster;
use crate::pgbench::Script;

/// What the product reads of an offer.
const OFFER_COLUMNS: &str = "seller_id, id, created_at, updated_at, price_amount, stock, status, price_source, title, handle, \
                             ean, brand, signature, thumbnail, url";
/// What the product reads of an order.
const ORDER_COLUMNS: &str = "seller_id, order_id, placed_at, updated_at, paid_at, shipped_at, delivered_at, cancelled_at, \
     shipment_id, shipment_at, is_test, several_sellers, delivered_already, buyer_notified, status, number, carrier, \
     tracking_number, tracking_status, payment_method, delivery_method, buyer, shipping_address, items";
/// The scripts' own table: sellers' ids by their numbers.
const SELLERS_TABLE: &str = "bench_sellers";
/// A random number of 16 digits, for keys and ids.
const KEY: &str = "\\set key random(1000000000000000, 8999999999999999)\n";
/// The first half of the fences and of what else is random.
const RANDOM_HIGH: &str = "0199000000017000";

/// A change of a random offer's price. `sealed` is the remembered body in hexadecimal digits.
pub(super) fn patch(database: &str, catalogue: Catalogue, sealed: &str) -> Script {
    let last = catalogue.offers - 1;
    let expression = catalogue.seller_expression(":n");
    let (claim, complete) = (claim(), complete(200, sealed));
    let (lowest, highest) = (LOWEST_PRICE, 2 * LOWEST_PRICE - 1);
    let offer = format!("('{ID_HIGH}' || :low)::uuid");
    let text = format!(
        "\\set n random(0, {last})\n\
         \\set seller {expression}\n\
         \\set low {ID_LOW} + :n\n\
         \\set amount random({lowest}, {highest})\n\
         {KEY}{claim}\
         begin;\n\
         select {OFFER_COLUMNS} from offers where seller_id = :seller_id and id = {offer} for no key update;\n\
         update offers set updated_at = api_now(), price_amount = :amount, price_source = 'manual' \
         where seller_id = :seller_id and id = {offer};\n\
         insert into changes (seller_id, at, kind, offer_id, price_amount) \
         values (:seller_id, api_now(), 'offer.price_changed', {offer}, :amount);\n\
         {complete}\
         commit;\n"
    );
    Script {
        database: database.to_owned(),
        text,
    }
}

/// A shipment of a random order of those that are pgbench's.
pub(super) fn shipment(database: &str, trade: Trade, sealed: &str) -> Script {
    let (first, last) = (trade.servers(), trade.shippable() - 1);
    let (order, expression) = trade.to_ship_expressions();
    let (claim, complete) = (claim(), complete(201, sealed));
    let id = format!("('{ORDER_HIGH}' || :low)::uuid");
    let text = format!(
        "\\set n random({first}, {last})\n\
         \\set seller {expression}\n\
         \\set low {ID_LOW} + {order}\n\
         {KEY}{claim}\
         begin;\n\
         select {ORDER_COLUMNS} from seller_orders where seller_id = :seller_id and order_id = {id} for no key update;\n\
         update seller_orders set updated_at = api_now(), shipped_at = api_now(), \
         shipment_id = ('{RANDOM_HIGH}' || :key)::uuid, shipment_at = api_now(), delivered_already = false, \
         buyer_notified = true, status = 'shipped', carrier = 'other', tracking_number = 'BENCH' || :low \
         where seller_id = :seller_id and order_id = {id};\n\
         insert into mails (id, order_id, order_number, recipient, recipient_name, carrier, tracking_number) \
         values (('{RANDOM_HIGH}' || :key)::uuid, {id}, 'BENCH-' || :low, 'buyer-' || :low || '@poczta.example', \
         'Ewa Kowalska ' || :low, 'other', 'BENCH' || :low);\n\
         insert into changes (seller_id, at, kind, order_id) values (:seller_id, api_now(), 'order.shipped', {id});\n\
         {complete}\
         commit;\n"
    );
    Script {
        database: database.to_owned(),
        text,
    }
}

/// A placed order of one piece of a random offer of all but the first seller's.
pub(super) fn placing(database: &str, catalogue: Catalogue, sealed: &str) -> Script {
    let (first, last) = (catalogue.largest(), catalogue.offers - 1);
    let expression = catalogue.seller_expression(":n");
    let (claim, complete) = (claim(), complete(201, sealed));
    let (order, offer) = (
        format!("('{RANDOM_HIGH}' || :key)::uuid"),
        format!("('{ID_HIGH}' || :low)::uuid"),
    );
    let text = format!(
        "\\set n random({first}, {last})\n\
         \\set seller {expression}\n\
         \\set low {ID_LOW} + :n\n\
         {KEY}{claim}\
         begin;\n\
         insert into orders (order_id, number, is_test, created_at) values ({order}, 'SO-' || :key, false, api_now());\n\
         select {OFFER_COLUMNS} from offers where seller_id = :seller_id and id = {offer} for no key update;\n\
         update offers set updated_at = api_now(), stock = stock - 1 where seller_id = :seller_id and id = {offer};\n\
         insert into seller_orders (seller_id, order_id, placed_at, is_test, several_sellers, number, payment_method, \
         delivery_method, items, updated_at, status, buyer, shipping_address) values (:seller_id, {order}, api_now(), false, \
         false, 'SO-' || :key, 'blik', 'courier', json_build_array(json_build_object('offer', {offer}, \
         'title', 'Acme cordless drill 18 V, set number ' || :n, 'handle', 'cordless-drill-' || :n, 'quantity', 1, \
         'taken', 1, 'unit_price', 4990)), api_now(), 'pending', \
         '{{\"name\":\"Ewa Kowalska\",\"email\":\"ewa@poczta.example\",\"phone\":\"+48 600 100 200\"}}', \
         '{{\"line1\":\"Prosta 1\",\"postal_code\":\"00-001\",\"city\":\"Warszawa\",\"country\":\"PL\"}}');\n\
         {complete}\
         commit;\n"
    );
    Script {
        database: database.to_owned(),
        text,
    }
}

/// A statement of its own, as the server's. It gives the seller's id to the statements after it: pgbench has no variables
/// of texts but those that it is given by rows.
fn claim() -> String {
    let expired = "t.expires_at <= excluded.created_at";
    let fingerprint = "5a".repeat(32);
    format!(
        "insert into idempotency as t (seller_id, key, fence, fingerprint, created_at, expires_at) \
         select id, '{KEY_HIGH}' || :key, ('{RANDOM_HIGH}' || :key)::uuid, '\\x{fingerprint}'::bytea, at, \
         at + interval '30 seconds' from (select api_now() as at, set_config('synchronous_commit', 'off', true) as mode, \
         set_config('lock_timeout', '300', true) as patience) clock, {SELLERS_TABLE} where n = :seller \
         on conflict (seller_id, key) do update set \
         fence = case when {expired} then excluded.fence else t.fence end, \
         fingerprint = case when {expired} then excluded.fingerprint else t.fingerprint end, \
         status = case when {expired} then null else t.status end, body = case when {expired} then null else t.body end, \
         created_at = case when {expired} then excluded.created_at else t.created_at end, \
         expires_at = case when {expired} then excluded.expires_at else t.expires_at end \
         returning fence, fingerprint, status, body, seller_id as seller_id \\gset\n"
    )
}

fn complete(status: u16, sealed: &str) -> String {
    format!(
        "update idempotency set status = {status}, body = '\\x{sealed}'::bytea, \
         expires_at = api_now() + interval '24 hours' where seller_id = :seller_id and key = '{KEY_HIGH}' || :key \
         and fence = ('{RANDOM_HIGH}' || :key)::uuid and status is null;\n"
    )
}

/// Makes the table that the scripts find sellers' ids in. As an array in each statement they cost pgbench a third of its
/// rate at 1 000 sellers.
pub(super) async fn prepare(cluster: &Cluster, database: &str, sellers: &[&str]) -> anyhow::Result<()> {
    let ids = sellers.join(",");
    let sql = format!(
        "create table {SELLERS_TABLE} (n bigint primary key, id uuid not null); insert into {SELLERS_TABLE} \
         select n - 1, id from unnest('{{{ids}}}'::uuid[]) with ordinality as s (id, n); vacuum (analyze) {SELLERS_TABLE}"
    );
    for statement in sql.split(';') {
        cluster.sql(database, statement).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
