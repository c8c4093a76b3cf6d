//! The scripts on the product's own tables: a row that is not found would go unnoticed, and cost nothing.

use std::time::Duration;

use super::*;
use crate::catalogue;
use crate::migrated::{self, SELLERS, check};
use crate::pgbench::{self, Run};
use crate::progress::Progress;
use crate::write::seed;

const TRADE: Trade = Trade {
    orders: 200,
    sellers: 2,
};

async fn migrated() -> Cluster {
    let cluster = migrated::cluster().await;
    prepare(&cluster, "postgres", &SELLERS).await.unwrap();
    cluster
}

async fn run(cluster: &Cluster, script: &Script) -> Run {
    let run = pgbench::run(cluster, script, 2, Duration::from_secs(1))
        .await
        .unwrap();
    assert!(run.transactions > 10, "{run:?}");
    run
}

async fn with_offers(catalogue: Catalogue) -> Cluster {
    let cluster = migrated().await;
    for offer in 0..catalogue.offers {
        let (id, seller) = (catalogue::offer_id(offer), catalogue.seller_of(offer));
        let seller = SELLERS[usize::try_from(seller).unwrap()];
        let sql = format!(
            "insert into offers (seller_id, id, created_at, updated_at, price_amount, stock, status, price_source, title, \
             handle, url) values ('{seller}', '{id}', now(), now(), 1, 1000000, 'published', 'automatic', 'T', 'h', 'https://x')"
        );
        cluster.sql("postgres", &sql).await.unwrap();
    }
    cluster
}

#[tokio::test]
async fn a_change_writes_what_a_change_writes() {
    let catalogue = Catalogue::new(20, 2);
    let cluster = with_offers(catalogue).await;
    let script = patch("postgres", catalogue, "5a5a");
    assert_eq!(script.statements(), 7);
    let run = run(&cluster, &script).await;
    let counts = [
        "changes c join offers o on o.seller_id = c.seller_id and o.id = c.offer_id and o.price_source = 'manual'",
        "idempotency where status = 200 and body = '\\x5a5a'",
    ];
    check(&cluster, &run, &counts).await;
}

#[tokio::test]
async fn a_shipment_writes_what_a_shipment_writes() {
    let cluster = migrated().await;
    let seeded = seed::orders(&cluster, "postgres", TRADE, &SELLERS, Progress::new());
    seeded.await.unwrap();
    let script = shipment("postgres", TRADE, "5a5a");
    assert_eq!(script.statements(), 8);
    let run = run(&cluster, &script).await;
    let counts = [
        "changes c join seller_orders o on o.order_id = c.order_id and o.seller_id = c.seller_id and o.status = 'shipped'",
        "mails m join orders o on o.order_id = m.order_id",
        "idempotency where status = 201",
    ];
    check(&cluster, &run, &counts).await;
    // The others are the server's, which would be refused an order that is shipped already.
    let others = format!(
        "select count(*) from seller_orders where status = 'shipped' and order_id < \
         (select order_id from seller_orders where number = 'BENCH-' || lpad('{}', 9, '0'))",
        TRADE.to_ship(TRADE.servers()).0
    );
    assert_eq!(cluster.sql("postgres", &others).await.unwrap(), ["0"]);
}

#[tokio::test]
async fn a_placed_order_writes_what_a_placed_order_writes() {
    let catalogue = Catalogue::new(20, 2);
    let cluster = with_offers(catalogue).await;
    let script = placing("postgres", catalogue, "5a5a");
    assert_eq!(script.statements(), 8);
    let run = run(&cluster, &script).await;
    let counts = [
        "seller_orders p join orders o on o.order_id = p.order_id and o.number = p.number",
        "seller_orders p join offers o on o.seller_id = p.seller_id and o.id = (p.items -> 0 ->> 'offer')::uuid",
        "idempotency where status = 201",
    ];
    check(&cluster, &run, &counts).await;
    let taken = "select sum(1000000 - stock) from offers";
    assert_eq!(
        cluster.sql("postgres", taken).await.unwrap(),
        [run.transactions.to_string()]
    );
}
