//! Offers as they are kept and read by id.

use chrono::TimeDelta;
use futures_util::future::join_all;
use kernel::{Change, CommitError, OfferId, StoreError};
use offers::{Offer, OfferStatus, Stock};

use crate::support::{Fixture, id, instant, offer};

#[tokio::test]
async fn an_offer_reads_back_as_it_was_saved() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let full = offer(seller.id, instant());
    let bare = Offer {
        price: None,
        stock: None,
        ean: None,
        brand: None,
        signature: None,
        thumbnail: None,
        status: OfferStatus::Proposed,
        ..offer(seller.id, instant())
    };
    fixture.save(vec![full.clone(), bare.clone()]).await;
    let reader = fixture.another().offer_reader();
    assert_eq!(
        reader.offer(seller.id, full.id).await.unwrap(),
        Some(full.clone())
    );
    assert_eq!(
        reader.offer(seller.id, bare.id).await.unwrap(),
        Some(bare.clone())
    );
    assert_eq!(reader.offer(seller.id, OfferId::from(id())).await.unwrap(), None);
}

#[tokio::test]
async fn another_sellers_offer_is_not_there() {
    let fixture = Fixture::new().await;
    let (seller, other) = (fixture.seller().await, fixture.seller().await);
    let theirs = offer(other.id, instant());
    fixture.save(vec![theirs.clone()]).await;
    let reader = fixture.another().offer_reader();
    let (mine, really) = futures_util::join!(
        reader.offer(seller.id, theirs.id),
        reader.offer(other.id, theirs.id)
    );
    assert_eq!(mine.unwrap(), None);
    assert_eq!(really.unwrap(), Some(theirs.clone()));
    let tx = fixture.begin().await;
    assert_eq!(tx.lock_offers(seller.id, &[theirs.id]).await.unwrap(), []);
    let foreign = tx
        .save_offers(seller.id, vec![Change::of_existing(theirs, Vec::new())])
        .await;
    assert!(matches!(foreign, Err(StoreError::Unexpected(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_in_a_group_gets_an_answer_of_their_own() {
    let fixture = Fixture::new().await;
    let (seller, other) = (fixture.seller().await, fixture.seller().await);
    let mine = (0..300)
        .map(|n| offer(seller.id, instant() + TimeDelta::seconds(n)))
        .collect::<Vec<_>>();
    let theirs = offer(other.id, instant());
    fixture.save(mine.clone()).await;
    fixture.save(vec![theirs.clone()]).await;
    let reader = fixture.database.offer_reader();
    let asked = mine
        .iter()
        .chain([&theirs])
        .flat_map(|offer| [(seller.id, offer), (other.id, offer)]);
    join_all(asked.map(async |(seller, offer)| {
        let expected = (offer.seller == seller).then(|| offer.clone());
        assert_eq!(reader.offer(seller, offer.id).await.unwrap(), expected);
    }))
    .await;
}

#[tokio::test]
async fn who_goes_away_harms_nobody() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let offer = offer(seller.id, instant());
    fixture.save(vec![offer.clone()]).await;
    let reader = fixture.database.offer_reader();
    for _ in 0..50 {
        let stays = reader.offer(seller.id, offer.id);
        let goes = reader.offer(seller.id, offer.id);
        // Polled once, so that it is in the queue or under way.
        let mut goes = Box::pin(goes);
        assert!(futures_util::poll!(&mut goes).is_pending());
        drop(goes);
        assert_eq!(stays.await.unwrap(), Some(offer.clone()));
    }
}

#[tokio::test]
async fn a_new_offer_that_exists_is_a_conflict() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let offer = offer(seller.id, instant());
    fixture.save(vec![offer.clone()]).await;
    let error = fixture
        .begin()
        .await
        .save_offers(seller.id, vec![Change::made(offer, Vec::new())])
        .await
        .unwrap_err();
    assert_eq!(error.conflict(), Some("offers_pkey"));
}

#[tokio::test]
async fn new_and_known_offers_are_saved_together() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let known = offer(seller.id, instant());
    fixture.save(vec![known.clone()]).await;
    let edited = Offer {
        title: "Inny".to_owned(),
        price: None,
        stock: Some(Stock::new(0).unwrap()),
        updated_at: instant() + TimeDelta::hours(1),
        ..known
    };
    let new = offer(seller.id, instant());
    let tx = fixture.begin().await;
    let changes = vec![
        Change::made(new.clone(), Vec::new()),
        Change::of_existing(edited.clone(), Vec::new()),
    ];
    tx.save_offers(seller.id, changes).await.unwrap();
    let locked = tx.lock_offers(seller.id, &[new.id, edited.id]).await.unwrap();
    assert_eq!(locked, [edited, new]);
}

#[tokio::test]
async fn a_change_of_an_offer_that_is_not_there_is_noticed() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let missing = Change::of_existing(offer(seller.id, instant()), Vec::new());
    let transaction = fixture.begin().await;
    // Changes of known offers travel with the commit, which is sent only once they were seen to hold.
    transaction.save_offers(seller.id, vec![missing]).await.unwrap();
    let error = transaction.commit().await.unwrap_err();
    let CommitError::RolledBack(StoreError::Unexpected(_)) = error else {
        panic!("{error:?}")
    };
}

#[tokio::test]
async fn an_offer_that_cannot_be_is_named() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let offer = offer(seller.id, instant());
    fixture.save(vec![offer.clone()]).await;
    fixture
        .tamper("alter table offers drop constraint offers_status_check; update offers set status = 'sold'")
        .await;
    let reader = fixture.another().offer_reader();
    let error = reader.offer(seller.id, offer.id).await.unwrap_err();
    let StoreError::Corrupt { row, reason } = error else {
        panic!("{error}")
    };
    assert_eq!(
        (row.table, row.id),
        ("offers", format!("{}, {}", seller.id, offer.id))
    );
    assert!(reason.contains("sold"), "{reason}");
}
