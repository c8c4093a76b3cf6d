//! Writes and the feed stay cheap however large the tables are: none of their statements reads one from end to end.

use std::time::Duration;

use kernel::SellerId;
use tokio_postgres::Client;
use usecases::{settle_order::Settlement, transact};

use crate::support::{Fixture, Place, Report, Restock, Settle, answer, claim, database, request};

/// 20 000 rows of each table, of the seller that is there.
const FILL: &str = "
    insert into offers (seller_id, id, created_at, updated_at, status, title, handle, url)
      select s.id, gen_random_uuid(), api_now(), api_now(), 'draft', 't', 'h', 'https://shop.example/' || n
      from sellers s, generate_series(1, 20000) n;
    insert into orders (order_id, number, is_test, created_at)
      select gen_random_uuid(), 'F-' || n, false, api_now() from generate_series(1, 20000) n;
    insert into seller_orders (seller_id, order_id, placed_at, updated_at, is_test, several_sellers, status, number, items)
      select s.id, order_id, o.created_at, o.created_at, false, false, 'pending', number, '[{}]' from orders o, sellers s;
    insert into mails (id, order_id, order_number, recipient, carrier, tracking_number)
      select gen_random_uuid(), order_id, number, 'x@example.com', 'other', 'TN-1234' from orders;
    insert into idempotency (seller_id, fence, created_at, expires_at, key, fingerprint)
      select s.id, gen_random_uuid(), api_now(), api_now(), 'f-' || n, sha256('x') from sellers s, generate_series(1, 20000) n;
    insert into changes (seller_id, at, kind, order_id)
      select s.id, api_now(), 'order.shipped', order_id from orders, sellers s;
    analyze";

/// How often each of the tables was read from end to end. A server process hands its figures in when it ends.
async fn whole_reads(client: &Client) -> Vec<(String, i64)> {
    let others = "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() \
                  and backend_type = 'client backend'";
    while client.query_one(others, &[]).await.unwrap().get::<_, i64>(0) > 0 {
        tokio::task::yield_now().await;
    }
    let sql = "select relname::text, seq_scan from pg_stat_user_tables \
               where relname in ('offers', 'orders', 'seller_orders', 'mails', 'idempotency', 'changes') order by 1";
    let rows = client.query(sql, &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

#[tokio::test]
async fn writes_and_the_feed_read_no_table_from_end_to_end() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let offer = fixture.offer(seller, 500).await;
    fixture.tamper(FILL).await;
    let Fixture {
        place,
        database: filled,
    } = fixture;
    drop(filled);
    let client = place.connect().await;
    let before = whole_reads(&client).await;
    assert_eq!(before.len(), 6);

    let database = database(place.url(), 2);
    let units = database.units();
    // More often than the server plans a statement for its values.
    for round in 0..8 {
        let placed = transact(&*units, &Place(request(&[(seller, offer)])))
            .await
            .unwrap();
        let order = orders::OrderRef::Id(placed.id);
        transact(&*units, &Settle(order.clone(), Settlement::Pay))
            .await
            .unwrap();
        transact(&*units, &Report::of(seller, order)).await.unwrap();
        transact(&*units, &Restock(seller, offer, 400)).await.unwrap();
        keyed(&database, seller, &format!("k-{round}")).await;
        let first = database.change_reader().changes(None, 50).await.unwrap();
        let next = database
            .change_reader()
            .changes(Some(first.next), 50)
            .await
            .unwrap();
        assert!(next.items.len() <= 50);
    }
    drop((units, database));
    assert_eq!(whole_reads(&client).await, before);
}

/// A key that is claimed, refused to somebody else, and completed.
async fn keyed(database: &adapter_postgres::Database, seller: SellerId, key: &str) {
    let (own, other) = (claim(seller, key, "a"), claim(seller, key, "b"));
    let claims = database.claims();
    for claim in [&own, &other] {
        claims.claim(claim, Duration::from_mins(1)).await.unwrap();
    }
    claims.release(&other).await.unwrap();
    let tx = database.units().begin().await.unwrap();
    tx.complete(&own, &answer("x")).await.unwrap();
    tx.commit().await.unwrap();
}
