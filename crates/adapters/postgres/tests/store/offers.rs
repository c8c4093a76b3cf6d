//! Offers as stored and read by id, alone and in batches.

use chrono::TimeDelta;
use futures_util::future::join_all;
use kernel::{Change, StoreError};
use offers::{Offer, OfferStatus, Stock};

use crate::support::{Fixture, id, instant, is_rolled_back, is_unexpected, offer};

#[tokio::test]
async fn everybody_in_a_group_gets_an_answer_of_their_own() {
    let fixture = Fixture::new().await;
    let (seller, other) = (fixture.seller().await, fixture.seller().await);
    let bare = Offer {
        price: None,
        stock: None,
        ean: None,
        brand: None,
        signature: None,
        thumbnail: None,
        status: OfferStatus::Proposed,
        ..offer(seller)
    };
    let mine: Vec<_> = (0..300).map(|_| offer(seller)).chain([bare]).collect();
    let theirs = offer(other);
    fixture.save_offers(mine.clone()).await;
    fixture.save_offers(vec![theirs.clone()]).await;
    let reader = fixture.database.offer_reader();
    let asked = mine
        .iter()
        .chain([&theirs])
        .flat_map(|offer| [(seller, offer), (other, offer)]);
    join_all(asked.map(async |(seller, offer)| {
        let expected = (offer.seller == seller).then(|| offer.clone());
        assert_eq!(reader.offer(seller, offer.id).await.unwrap(), expected);
    }))
    .await;
    for _ in 0..50 {
        let stays = reader.offer(seller, mine[0].id);
        // Polled once, so that it is queued or under way; dropping it does not affect others.
        let mut goes = Box::pin(reader.offer(seller, mine[0].id));
        assert!(futures_util::poll!(&mut goes).is_pending());
        drop(goes);
        assert_eq!(stays.await.unwrap().as_ref(), Some(&mine[0]));
    }
    let tx = fixture.begin().await;
    assert_eq!(tx.lock_offers(seller, &[theirs.id]).await.unwrap(), []);
    is_unexpected(
        tx.save_offers(seller, vec![Change::of_existing(theirs, Vec::new())])
            .await,
    );
}

#[tokio::test]
async fn new_and_known_offers_are_saved_together() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let known = offer(seller);
    fixture.save_offers(vec![known.clone()]).await;
    let edited = Offer {
        title: "Inny".to_owned(),
        price: None,
        stock: Some(Stock::new(0).unwrap()),
        updated_at: instant() + TimeDelta::hours(1),
        ..known
    };
    let new = offer(seller);
    let tx = fixture.begin().await;
    let changes = vec![
        Change::made(new.clone(), Vec::new()),
        Change::of_existing(edited.clone(), Vec::new()),
    ];
    tx.save_offers(seller, changes).await.unwrap();
    let asked = [new.id, edited.id, edited.id, id().into()];
    assert_eq!(tx.lock_offers(seller, &asked).await.unwrap(), [edited, new]);
}

#[tokio::test]
async fn what_is_new_must_not_be_there_and_what_changes_must() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let known = offer(seller);
    fixture.save_offers(vec![known.clone()]).await;
    let tx = fixture.begin().await;
    let twice = tx
        .save_offers(seller, vec![Change::made(known, Vec::new())])
        .await;
    assert_eq!(twice.unwrap_err().conflict(), Some("offers_pkey"));
    // Updates of known offers are sent with the commit, which is sent only after they succeeded.
    let tx = fixture.begin().await;
    let missing = Change::of_existing(offer(seller), Vec::new());
    tx.save_offers(seller, vec![missing]).await.unwrap();
    let cause = is_rolled_back(tx).await;
    assert!(matches!(cause, StoreError::Unexpected(_)), "{cause:?}");
}
