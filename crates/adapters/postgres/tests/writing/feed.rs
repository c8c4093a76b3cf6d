//! The change feed: what is told, in which order, and that a reader misses nothing.

use std::{collections::BTreeSet, time::Duration};

use changes::{ChangeCursor, ChangeItem, ChangeKind, ChangeReader, ChangesError, Detail, Topic};
use futures_util::future::join_all;
use kernel::Change;
use oauth::{Application, ApplicationEvent, ApplicationStatus, ClientId, ClientType, Purpose, Scope};
use offers::{OfferPatch, SellerStatus, Stock};
use tokio::time::{Instant, sleep};
use usecases::{settle_order::Settlement, transact};

use crate::support::{Fixture, Report, Restock, Settle, answer, claim, database, id, instant};

/// Reads on until so many items have come. Transactions of other tests on the same server hold the feed back for as long as
/// they last.
async fn follow(
    reader: &dyn ChangeReader,
    mut after: Option<ChangeCursor>,
    items: usize,
) -> (Vec<ChangeItem>, ChangeCursor) {
    let (mut found, end) = (Vec::new(), Instant::now() + Duration::from_mins(1));
    loop {
        let page = reader.changes(after, 7).await.unwrap();
        assert!(page.items.len() <= 7);
        found.extend(page.items);
        if found.len() >= items {
            return (found, page.next);
        }
        assert!(Instant::now() < end, "only {} of {items} items came", found.len());
        after = Some(page.next);
        sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn what_sellers_and_carriers_do_is_told_and_what_the_marketplace_does_is_not() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let offer = fixture.offer(seller, 5).await;
    let order = fixture.place(&[(seller, offer)]).await;
    transact(
        &*fixture.database.units(),
        &Settle(order.clone(), Settlement::Pay),
    )
    .await
    .unwrap();
    transact(&*fixture.database.units(), &Report::of(seller, order.clone()))
        .await
        .unwrap();
    let tx = fixture.begin().await;
    let patch = OfferPatch {
        price: kernel::Money::pln(7).ok(),
        stock: Stock::new(9).ok(),
        status: Some(SellerStatus::Draft),
    };
    usecases::patch_offer::patch_offer(&*tx, seller, offer, patch, tx.now())
        .await
        .unwrap();
    let part = tx.lock_part(seller, &order).await.unwrap().unwrap();
    let sighting = orders::Sighting {
        status: orders::TrackingStatus::Delivered,
        at: None,
        raw_code: String::new(),
    };
    let at = tx.now();
    tx.save_parts(vec![part.clone().sighted(&sighting, at)])
        .await
        .unwrap();
    let client = ClientId::from(id());
    tx.save_application(Change::made(
        application(seller, client),
        vec![ApplicationEvent::Registered { client_id: client }],
    ))
    .await
    .unwrap();
    tx.commit().await.unwrap();

    let (items, next) = follow(&*fixture.database.change_reader(), None, 6).await;
    let told = items
        .iter()
        .map(|item| (item.kind, item.topic, item.detail))
        .collect::<Vec<_>>();
    let (offer, order) = (Topic::Offer(offer), Topic::Order(part.id));
    assert_eq!(
        told,
        [
            (ChangeKind::OrderShipped, order, Detail::Nothing),
            (
                ChangeKind::OfferPriceChanged,
                offer,
                Detail::Price(kernel::Money::pln(7).unwrap())
            ),
            (
                ChangeKind::OfferStockChanged,
                offer,
                Detail::Stock(Stock::new(9).unwrap())
            ),
            (
                ChangeKind::OfferStatusChanged,
                offer,
                Detail::Status(offers::OfferStatus::Draft)
            ),
            (ChangeKind::OrderDelivered, order, Detail::Nothing),
            (
                ChangeKind::ApplicationRegistered,
                Topic::Application(client),
                Detail::Nothing
            ),
        ]
    );
    assert!(items.iter().all(|item| item.seller == seller));
    assert_eq!(items[1].at, at);
    let empty = fixture
        .database
        .change_reader()
        .changes(Some(next.clone()), 100)
        .await
        .unwrap();
    assert_eq!((empty.items, empty.next), (Vec::new(), next));
}

fn application(owner: kernel::SellerId, client_id: ClientId) -> Application {
    Application {
        client_id,
        owner,
        name: format!("App {}", crate::support::number()),
        description: None,
        documentation_url: Some("https://docs.example/app".to_owned()),
        purpose: Purpose::Other,
        client_type: ClientType::Public,
        redirect_uris: Vec::new(),
        scopes: Scope::IN_USE.into_iter().collect(),
        status: ApplicationStatus::Pending,
        rate_limit: None,
        built_in: false,
        secret: None,
        created_at: instant(),
    }
}

#[tokio::test]
async fn what_is_undone_is_not_told() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let offer = fixture.offer(seller, 5).await;
    let tx = fixture.begin().await;
    let patch = OfferPatch {
        stock: Stock::new(1).ok(),
        ..OfferPatch::default()
    };
    usecases::patch_offer::patch_offer(&*tx, seller, offer, patch, tx.now())
        .await
        .unwrap();
    let first = claim(seller, "never claimed", "a");
    tx.complete(&first, &answer("a")).await.unwrap_err();
    drop(tx);
    transact(&*fixture.database.units(), &Restock(seller, offer, 2))
        .await
        .unwrap();
    let (items, _) = follow(&*fixture.database.change_reader(), None, 1).await;
    assert_eq!(items[0].detail, Detail::Stock(Stock::new(2).unwrap()));
    assert_eq!(fixture.count("select count(*) from changes").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_follows_thirty_two_writers_and_misses_nothing() {
    const WRITERS: i64 = 32;
    const EACH: i64 = 12;
    let fixture = Fixture::new().await;
    let mut writers = Vec::new();
    for n in 0..WRITERS {
        let seller = fixture.seller().await;
        writers.push((n, seller, fixture.offer(seller, 0).await));
    }
    let (writing, reading) = (
        database(fixture.place.url(), 32),
        fixture.database.change_reader(),
    );
    let write = async |(n, seller, offer)| {
        for step in 1..=EACH {
            let key = claim(seller, &format!("{step}"), "a");
            writing
                .claims()
                .claim(&key, Duration::from_mins(1))
                .await
                .unwrap();
            let tx = writing.units().begin().await.unwrap();
            let patch = OfferPatch {
                stock: Stock::new(step).ok(),
                ..OfferPatch::default()
            };
            usecases::patch_offer::patch_offer(&*tx, seller, offer, patch, tx.now())
                .await
                .unwrap();
            tx.complete(&key, &answer("a")).await.unwrap();
            // The row is written and has its place. Some transactions are slow to end, the later writers' most of all.
            sleep(Duration::from_millis(
                u64::try_from((n * 7 + step * 5) % 11 * (n % 4) * 3).unwrap(),
            ))
            .await;
            tx.commit().await.unwrap();
        }
    };
    let all = usize::try_from(WRITERS * EACH).unwrap();
    let ((followed, _), _) = futures_util::join!(
        follow(&*reading, None, all),
        join_all(writers.iter().copied().map(write))
    );
    let told = followed.iter().map(|item| match (item.topic, item.detail) {
        (Topic::Offer(offer), Detail::Stock(stock)) => (offer, stock),
        other => panic!("{other:?}"),
    });
    let told = told.collect::<Vec<_>>();
    let expected = writers
        .iter()
        .flat_map(|(_, _, offer)| (1..=EACH).map(move |step| (*offer, Stock::new(step).unwrap())))
        .collect::<BTreeSet<_>>();
    assert_eq!(
        (told.len(), told.iter().copied().collect::<BTreeSet<_>>()),
        (all, expected)
    );
    // Whoever reads later reads the same in the same order.
    assert_eq!(follow(&*reading, None, all).await.0, followed);
}

#[tokio::test]
async fn what_is_under_way_holds_later_changes_back() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let (early, late) = (fixture.offer(seller, 0).await, fixture.offer(seller, 0).await);
    let tx = fixture.begin().await;
    usecases::patch_offer::patch_offer(
        &*tx,
        seller,
        early,
        OfferPatch {
            stock: Stock::new(1).ok(),
            ..OfferPatch::default()
        },
        tx.now(),
    )
    .await
    .unwrap();
    transact(&*fixture.database.units(), &Restock(seller, late, 2))
        .await
        .unwrap();
    let reader = fixture.database.change_reader();
    let page = reader.changes(None, 100).await.unwrap();
    assert_eq!(
        page.items,
        [],
        "a change was told that an earlier one could still precede"
    );
    tx.commit().await.unwrap();
    let (items, _) = follow(&*reader, Some(page.next), 2).await;
    assert_eq!(items[0].topic, Topic::Offer(early));
}

#[tokio::test]
async fn cursors_that_were_not_made_here_are_refused() {
    let fixture = Fixture::new().await;
    let reader = fixture.database.change_reader();
    let own = reader.changes(None, 1).await.unwrap().next;
    for cursor in [
        "",
        "x",
        "1.2.3",
        "1.2.3.4.5",
        "0000001.0.0.0",
        "1.2.3.7fffffffffffffff",
    ] {
        let refused = reader.changes(Some(ChangeCursor(cursor.to_owned())), 1).await;
        assert!(
            matches!(refused, Err(ChangesError::Malformed)),
            "{cursor}: {refused:?}"
        );
    }
    let (_, place) = own.0.split_once('.').unwrap();
    let elsewhere = reader.changes(Some(ChangeCursor(format!("1.{place}"))), 1).await;
    assert!(
        matches!(elsewhere, Err(ChangesError::OtherHistory)),
        "{elsewhere:?}"
    );
    assert_eq!(reader.changes(Some(own.clone()), 0).await.unwrap().next, own);
}

/// What a restore or a failover takes back is played by taking the rows away.
#[tokio::test]
async fn a_cursor_of_what_is_gone_is_refused() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let offer = fixture.offer(seller, 0).await;
    let reader = fixture.database.change_reader();
    let is_known = async |cursor: &ChangeCursor| match reader.changes(Some(cursor.clone()), 1).await {
        Ok(page) => {
            assert_eq!(page.next, *cursor, "a place is kept while nothing follows it");
            true
        }
        Err(ChangesError::OtherHistory) => false,
        Err(other) => panic!("{other:?}"),
    };
    let start = reader.changes(None, 1).await.unwrap().next;
    assert!(is_known(&start).await);
    transact(&*fixture.database.units(), &Restock(seller, offer, 1))
        .await
        .unwrap();
    let (_, last) = follow(&*reader, None, 1).await;
    assert!(is_known(&last).await);

    // A transaction that the cluster has not come to.
    let mut parts = last.0.split('.').map(str::to_owned).collect::<Vec<_>>();
    parts[1] = "7fffffffffff".to_owned();
    assert!(!is_known(&ChangeCursor(parts.join("."))).await);

    // The same numbers were given out again, for something else.
    fixture
        .tamper("update changes set at = at + interval '1 microsecond'")
        .await;
    assert!(!is_known(&last).await);
    fixture
        .tamper("update changes set at = at - interval '31 days'")
        .await;
    let (_, aged) = follow(&*reader, None, 1).await;
    fixture.tamper("delete from changes").await;
    assert!(!is_known(&last).await, "it is younger than what is cleared away");
    assert!(is_known(&aged).await, "it was cleared away");
    assert!(is_known(&start).await);
}

#[tokio::test]
async fn an_item_that_cannot_be_is_named() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let offer = fixture.offer(seller, 0).await;
    transact(&*fixture.database.units(), &Restock(seller, offer, 1))
        .await
        .unwrap();
    let reader = fixture.database.change_reader();
    follow(&*reader, None, 1).await;
    fixture.tamper("alter table changes drop constraint changes_kind_check; alter table changes drop constraint changes_status_check")
        .await;
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
            matches!(error, ChangesError::Store(kernel::StoreError::Corrupt { .. })),
            "{set}: {error}"
        );
    }
}
