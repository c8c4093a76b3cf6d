//! Invalid rows: the error names table and row and no buyer data, and the other rows are read.

use futures_util::join;
use kernel::StoreError;
use orders::{Carrier, OrderRef};
use webhooks::{DeliveryFilter, Undelivered, UndeliveredFilter};

use crate::support::{Fixture, id, instant, part, shipped};

/// Drops the checks of the tables.
async fn drop_checks(fixture: &Fixture, tables: &[&str]) {
    for table in tables {
        let drop = format!(
            "do $$ declare c record; begin
               for c in select conname from pg_constraint where conrelid = '{table}'::regclass and contype = 'c' loop
                 execute 'alter table {table} drop constraint ' || quote_ident(c.conname); end loop; end $$"
        );
        fixture.tamper(&drop).await;
    }
}

/// The reported table, row id and reason.
fn corrupt<T: std::fmt::Debug>(answer: Result<T, StoreError>) -> (&'static str, String, String) {
    match answer {
        Err(StoreError::Corrupt { table, id, reason }) => (table, id, reason),
        other => panic!("{other:?}"),
    }
}

/// The reported table and row id.
fn row<T: std::fmt::Debug>(answer: Result<T, StoreError>) -> (&'static str, String) {
    let (table, id, _) = corrupt(answer);
    (table, id)
}

#[tokio::test]
async fn a_corrupt_part_is_named_without_its_buyer() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    drop_checks(&fixture, &["seller_orders"]).await;
    let reader = fixture.database.order_reader();
    let offer = "\"offer\":\"00000000-0000-0000-0000-000000000001\"";
    let cases = "
        status = 'lost'               => lost
        status = 'pending'            => pending
        status = 'delivered'          => delivered
        shipped_at = null             => shipped
        cancelled_at = paid_at        => shipped
        shipment_id = null            => half a shipment
        carrier = 'pigeon'            => pigeon
        carrier = null, tracking_number = null, shipment_id = null, shipment_at = null, delivered_already = null, buyer_notified = null => shipped
        tracking_number = 'x'         => tracking_number
        tracking_status = 'eaten'     => eaten
        number = 'no number'          => number
        items = '[]'                  => no items
        items = '{}'                  => items
        items = '[{OFFER,\"quantity\":0}]'                     => quantity 0
        items = '[{OFFER,\"quantity\":1,\"unit_price\":-1}]'   => unit_price
        buyer = '{\"name\":\"Secret\",\"age\":4}'              => buyer
        buyer = '[\"Secret\"]'        => buyer
        shipping_address = '{\"city\":\"Secret\"}'             => shipping_address
        delivery_point = '{\"name\":\"Secret\"}'               => delivery_point
        invoice = '{\"company\":\"Secret\",\"age\":4}'         => invoice";
    for case in cases.trim().lines() {
        let (set, expected) = case.trim().split_once(" => ").unwrap();
        let part = shipped(part(seller, instant()), Carrier::Ups);
        fixture.save(std::slice::from_ref(&part)).await;
        let update = format!("update seller_orders set {set} where order_id = '{}'", part.id);
        fixture.tamper(&update.replace("OFFER", offer)).await;
        let (table, row, reason) = corrupt(reader.order(seller.into(), &OrderRef::Id(part.id)).await);
        assert_eq!((table, row), ("seller_orders", format!("{seller}, {}", part.id)));
        assert!(
            reason.contains(expected.trim()) && !reason.contains("Secret"),
            "{set}: {reason}"
        );
    }
}

#[tokio::test]
async fn a_corrupt_row_fails_its_own_caller_of_a_batch_alone() {
    let fixture = Fixture::new().await;
    let (seller, other) = (fixture.seller().await, fixture.seller().await);
    let application = fixture.application(seller).await;
    let broken = fixture.application(other).await;
    let (fine, bad) = (fixture.token(&application).await, fixture.token(&broken).await);
    let all = "update families set scopes = x'7fffffff'::int where id = '{family}'; \
        update applications set scopes = x'7fffffff'::int";
    fixture
        .tamper(&all.replace("{family}", &bad.family.to_string()))
        .await;
    let gate = fixture.database.gate();
    let (fine, bad_one) = join!(gate.admit(fine), gate.admit(bad));
    assert!(fine.unwrap().is_ok());
    assert_eq!(row(bad_one), ("families", bad.family.to_string()));
    let one = "update applications set scopes = 1 where client_id = '{client}'";
    fixture
        .tamper(&one.replace("{client}", &application.client_id.uuid().to_string()))
        .await;
    let applications = fixture.database.applications();
    let (found, corrupt, unknown) = join!(
        applications.client(application.client_id),
        applications.client(broken.client_id),
        applications.client(id().into())
    );
    assert!(found.unwrap().is_some() && unknown.unwrap().is_none());
    assert_eq!(row(corrupt), ("applications", broken.client_id.to_string()));
}

/// Any part of the URL of another's application may hold a secret.
#[tokio::test]
async fn an_invalid_url_is_shown_only_where_it_is_shown_whole() {
    let fixture = Fixture::new().await;
    let (client_id, own) = fixture.subscribed().await;
    let seller = fixture.seller().await;
    fixture.connect(seller, client_id).await;
    let foreign = fixture.subscribe(seller, client_id).await;
    for queue in [own, foreign] {
        fixture.enqueue(queue, 1).await;
        fixture.set_queue(queue, "url = 'no url'").await;
    }
    let database = &fixture.database;
    let filter = UndeliveredFilter {
        why: Undelivered::Pending,
        seller: None,
        subscription: None,
    };
    let lists = database.webhook_lists().await.unwrap();
    let listed = lists.undelivered(filter, None, 50).await.unwrap();
    let urls: Vec<_> = listed.iter().map(|row| &row.receiver).collect();
    assert_eq!(urls, ["no url"; 2]);
    let (reader, all) = (database.subscriptions(), DeliveryFilter::default());
    let shown = reader.deliveries_of_seller(own.seller, all, None, 50).await;
    assert_eq!(shown.unwrap()[0].receiver, "no url");
    let hidden = reader.deliveries_of_seller(foreign.seller, all, None, 50).await;
    assert_eq!(row(hidden), ("subscriptions", foreign.subscription.to_string()));
}
