//! The scripts on the product's own tables: a row that is not found would go unnoticed, and cost nothing.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::*;
use crate::catalogue;
use crate::pgbench::{self, Run};
use crate::progress::Progress;
use crate::write::seed;

const IDS: [&str; 2] = [
    "01970000-0000-7000-8000-000000000001",
    "01970000-0000-7000-8000-000000000002",
];
const TRADE: Trade = Trade {
    orders: 200,
    sellers: 2,
};

async fn migrated() -> Cluster {
    let cluster = Cluster::start("16MB", None).await.unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations");
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut steps: Vec<_> = entries.filter(|path| path.is_dir()).collect();
    steps.sort();
    for step in steps {
        let sql = fs::read_to_string(step.join("up.sql")).unwrap();
        cluster.sql("postgres", &sql).await.unwrap();
    }
    for (n, seller) in IDS.iter().enumerate() {
        let sql = format!(
            "insert into sellers (id, name, email, created_at) values ('{seller}', 'S{n}', 's{n}@x.example', now())"
        );
        cluster.sql("postgres", &sql).await.unwrap();
    }
    prepare(&cluster, "postgres", &IDS).await.unwrap();
    cluster
}

async fn run(cluster: &Cluster, script: &Script) -> Run {
    let run = pgbench::run(cluster, script, 2, Duration::from_secs(1))
        .await
        .unwrap();
    assert!(run.transactions > 10, "{run:?}");
    run
}

async fn check(cluster: &Cluster, run: &Run, counts: &[&str]) {
    for count in counts {
        let found = cluster
            .sql("postgres", &format!("select count(*) from {count}"))
            .await;
        assert_eq!(found.unwrap(), [run.transactions.to_string()], "{count}");
    }
}

#[tokio::test]
async fn a_change_writes_what_a_change_writes() {
    let cluster = migrated().await;
    let catalogue = Catalogue::new(20, 2);
    for offer in 0..catalogue.offers {
        let (id, seller) = (catalogue::offer_id(offer), catalogue.seller_of(offer));
        let seller = IDS[usize::try_from(seller).unwrap()];
        let sql = format!(
            "insert into offers (seller_id, id, created_at, updated_at, price_amount, stock, status, price_source, title, \
             handle, url) values ('{seller}', '{id}', now(), now(), 1, 1, 'published', 'automatic', 'T', 'h', 'https://x')"
        );
        cluster.sql("postgres", &sql).await.unwrap();
    }
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
    let seeded = seed::orders(&cluster, "postgres", TRADE, &IDS, Progress::new());
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
