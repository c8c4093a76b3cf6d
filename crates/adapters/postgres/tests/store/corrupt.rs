//! Invalid rows: the error names table and row and no buyer data, and the other rows are read.

use accounts::{AuditFilter, LinkKind};
use changes::ChangesError;
use futures_util::join;
use kernel::{RowKey, StoreError};
use orders::{Carrier, OrderRef};

use crate::feed::follow;
use crate::support::{
    Fixture, Parties, SetStock, Work as _, id, instant, key_of, link, offer, part, session, shipped,
};

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

/// The reported row and reason.
fn corrupt<T: std::fmt::Debug>(answer: Result<T, StoreError>) -> (RowKey, String) {
    match answer {
        Err(StoreError::Corrupt { row, reason }) => (row, reason),
        other => panic!("{other:?}"),
    }
}

fn table<T: std::fmt::Debug>(answer: Result<T, StoreError>) -> &'static str {
    corrupt(answer).0.table
}

/// The reported table and row id.
fn row<T: std::fmt::Debug>(answer: Result<T, StoreError>) -> (&'static str, String) {
    let (row, _) = corrupt(answer);
    (row.table, row.id)
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
        let (row, reason) = corrupt(reader.order(seller, &OrderRef::Id(part.id)).await);
        assert_eq!(
            (row.table, row.id),
            ("seller_orders", format!("{seller}, {}", part.id))
        );
        assert!(
            reason.contains(expected.trim()) && !reason.contains("Secret"),
            "{set}: {reason}"
        );
    }
}

#[tokio::test]
async fn corrupt_offers_and_changes_are_named() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let offer = offer(seller);
    let offer_id = offer.id;
    fixture.save_offers(vec![offer]).await;
    fixture
        .tx(async |tx| SetStock(seller, offer_id, 1).run(tx).await.unwrap())
        .await;
    drop_checks(&fixture, &["offers", "changes"]).await;
    fixture.tamper("update offers set status = 'sold'").await;
    let (row, reason) = corrupt(fixture.database.offer_reader().offer(seller, offer_id).await);
    assert_eq!((row.table, row.id), ("offers", format!("{seller}, {offer_id}")));
    assert!(reason.contains("sold"), "{reason}");

    let reader = fixture.database.change_reader();
    follow(&*reader, None, 1).await;
    for set in [
        "kind = 'offer.eaten'",
        "kind = 'offer.stock_changed', order_id = offer_id",
        "order_id = null, price_amount = 1",
        "price_amount = null, stock = null, status = 'sold'",
    ] {
        fixture.tamper(&format!("update changes set {set}")).await;
        // The row's transaction is older than any that could hold it back.
        let error = reader.changes(None, 10).await.unwrap_err();
        assert!(
            matches!(error, ChangesError::Store(StoreError::Corrupt { .. })),
            "{set}: {error}"
        );
    }
}

#[tokio::test]
async fn corrupt_grants_and_applications_are_named() {
    let fixture = Fixture::new().await;
    let parties = Parties::new(&fixture).await;
    let (code, pair) = (parties.code(&fixture).await, parties.pair(&fixture).await);
    drop_checks(&fixture, &["authorization_codes"]).await;
    let family = |of: oauth::TokenKey| of.family.to_string();
    fixture
        .tamper("update refresh_tokens set scopes = 1 << 20; update authorization_codes set code_challenge = 'short'")
        .await;
    let tx = fixture.begin().await;
    let refresh = tx.lock_credential(pair.refresh).await;
    assert_eq!(row(refresh), ("refresh_tokens", family(pair.refresh)));
    assert_eq!(
        row(tx.lock_credential(code).await),
        ("authorization_codes", family(code))
    );
    drop(tx);
    fixture.tamper("update applications set scopes = 1 << 20").await;
    let client_id = parties.client_id().to_string();
    let application = fixture.begin().await.lock_family(code.family).await;
    assert_eq!(row(application), ("applications", client_id.clone()));
    fixture.tamper("update families set scopes = 1 << 20").await;
    let locked = fixture.begin().await.lock_family(code.family).await;
    assert_eq!(row(locked), ("families", family(code)));
    let connections = fixture
        .database
        .grants()
        .connections(parties.seller, None, 50)
        .await;
    assert_eq!(row(connections), ("connections", client_id));
}

#[tokio::test]
async fn a_corrupt_row_fails_its_own_caller_of_a_batch_alone() {
    let fixture = Fixture::new().await;
    let (seller, other) = (fixture.seller().await, fixture.seller().await);
    let (application, broken) = (
        fixture.application(seller).await,
        fixture.application(other).await,
    );
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

#[tokio::test]
async fn corrupt_rows_of_the_panel_are_named() {
    let (fixture, _clock) = Fixture::frozen().await;
    let account = fixture.account().await;
    let seller = account.id;
    let [token] = fixture.personal_tokens(seller, [None]).await;
    let (session, link) = (
        session(seller, instant()),
        link(seller, LinkKind::Invitation, instant()),
    );
    fixture
        .tx(async |tx| {
            tx.open_session(session).await.unwrap();
            tx.add_link(link).await.unwrap();
        })
        .await;
    assert!(fixture.admits(key_of(&token)).await);
    drop_checks(&fixture, &["links"]).await;
    fixture
        .tamper(
            "update links set kind = 'other'; update families set scopes = 1 << 20; \
             insert into audit_log (id, at, actor, action, address, subject) values \
               ('00000000-0000-0000-0000-000000000001', api_now(), 'command_line', 'seller.praised', null, 'x'), \
               ('00000000-0000-0000-0000-000000000002', api_now(), 'command_line', 'seller.closed', 'nowhere', 'y')",
        )
        .await;
    let panel = fixture.database.panel();
    assert_eq!(table(panel.link(link.hash).await), "links");
    assert_eq!(table(panel.personal_tokens(seller).await), "families");
    let sellers = "alter table sellers alter seller_no drop identity; update sellers set seller_no = -1";
    fixture.tamper(sellers).await;
    assert_eq!(table(panel.signed_in(session.hash).await), "sellers");
    assert_eq!(table(panel.account(&account.email).await), "sellers");
    let audit = fixture.database.audit();
    for (subject, last) in [("x", '1'), ("y", '2')] {
        let (table, id) = row(audit.entries(AuditFilter::about(subject), 10).await);
        assert!(table == "audit_log" && id.ends_with(last), "{table} {id}");
    }
}
