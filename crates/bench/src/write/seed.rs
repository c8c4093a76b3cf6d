//! Filling the tables of orders by plain SQL: placing a million of them one by one is not what is measured here.

use std::sync::atomic::{AtomicU64, Ordering};

use super::trade::{ID_HIGH, Trade};
use crate::catalogue::{ID_HIGH as OFFER_HIGH, ID_LOW};
use crate::cluster::Cluster;
use crate::progress::Progress;

/// Orders made by one statement.
const CHUNK: u64 = 5_000;

/// Makes paid orders, one a second until an hour ago, each with one or two items, a buyer and an address.
pub(super) async fn orders(
    cluster: &Cluster,
    database: &str,
    trade: Trade,
    sellers: &[&str],
    progress: Progress,
) -> anyhow::Result<()> {
    let step = progress.counted("making orders", trade.orders);
    let (next, sellers) = (AtomicU64::new(0), sellers.join(","));
    let worker = async || {
        loop {
            let first = next.fetch_add(CHUNK, Ordering::Relaxed);
            if first >= trade.orders {
                return anyhow::Ok(());
            }
            let end = (first + CHUNK).min(trade.orders);
            cluster
                .sql(database, &statement(trade, &sellers, first, end))
                .await?;
            step.advance(end - first);
        }
    };
    tokio::try_join!(worker(), worker())?;
    Ok(())
}

/// Puts more of every offer into stock than orders will take.
pub(super) async fn stock(cluster: &Cluster, database: &str) -> anyhow::Result<()> {
    cluster.sql(database, "update offers set stock = 1000000").await?;
    Ok(())
}

/// Orders from `first` up to, but without, `end`.
fn statement(trade: Trade, sellers: &str, first: u64, end: u64) -> String {
    let (seller, orders) = (trade.seller_sql(), trade.orders);
    format!(
        "set synchronous_commit = off; \
         with numbered as materialized (select i, ('{ID_HIGH}' || {ID_LOW} + i)::uuid as id, \
           'BENCH-' || lpad(i::text, 9, '0') as number, \
           now() - ({orders} - i + 3600) * interval '1 second' as placed_at, \
           ('{{{sellers}}}'::uuid[])[1 + {seller}] as seller from generate_series({first}::bigint, {end} - 1) i), \
         directory as (insert into orders (order_id, number, is_test, created_at) \
           select id, number, false, placed_at from numbered) \
         insert into seller_orders (seller_id, order_id, placed_at, updated_at, paid_at, is_test, several_sellers, \
           status, number, payment_method, delivery_method, buyer, shipping_address, items) \
         select seller, id, placed_at, placed_at + interval '1 minute', placed_at + interval '1 minute', false, false, \
           'processing', number, 'blik', 'courier', \
           json_build_object('name', 'Ewa Kowalska ' || i, 'email', 'buyer-' || i || '@poczta.example', \
             'phone', '+48 600 000 000'), \
           json_build_object('line1', 'ul. Długa ' || i % 200, 'postal_code', '00-950', 'city', 'Warszawa', \
             'country', 'PL'), \
           case when i % 3 = 0 then json_build_array({one}, {other}) else json_build_array({one}) end \
         from numbered order by i",
        one = item("i"),
        other = item("i + 1"),
    )
}

/// Of an offer that need not exist: a list of orders shows what the order says.
fn item(number: &str) -> String {
    format!(
        "json_build_object('offer', ('{OFFER_HIGH}' || {ID_LOW} + ({number}) % 100000)::uuid, \
         'title', 'Acme cordless drill 18 V, set number ' || ({number}) % 100000, \
         'handle', 'cordless-drill-' || ({number}) % 100000, 'quantity', 1, \
         'unit_price', 499 + ({number}) * 37 % 250000)"
    )
}
