//! Offers as stored and read by id, alone and in batches.

use futures_util::future::join_all;
use kernel::StoreError;
use offers::{Offer, OfferStatus};

use crate::support::{Fixture, changed, created, is_rolled_back, is_unexpected, offer};

#[tokio::test]
async fn each_caller_of_a_batch_gets_its_own_answer() {
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
    let reads = mine
        .iter()
        .chain([&theirs])
        .flat_map(|offer| [(seller, offer), (other, offer)]);
    join_all(reads.map(async |(seller, offer)| {
        let expected = (offer.seller == seller).then(|| offer.clone());
        assert_eq!(reader.offer(seller, offer.id).await.unwrap(), expected);
    }))
    .await;
    for _ in 0..50 {
        let awaited = reader.offer(seller, mine[0].id);
        // Polled once, so that it is queued or under way; dropping it does not affect others.
        let mut dropped = Box::pin(reader.offer(seller, mine[0].id));
        assert!(futures_util::poll!(&mut dropped).is_pending());
        drop(dropped);
        assert_eq!(awaited.await.unwrap().as_ref(), Some(&mine[0]));
    }
    let tx = fixture.begin().await;
    assert_eq!(tx.lock_offers(seller, &[theirs.id]).await.unwrap(), []);
    is_unexpected(tx.save_offers(seller, vec![changed(theirs)]).await);
}

#[tokio::test]
async fn inserting_a_known_offer_or_updating_a_missing_one_fails() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let known = offer(seller);
    fixture.save_offers(vec![known.clone()]).await;
    let tx = fixture.begin().await;
    let twice = tx.save_offers(seller, vec![created(known)]).await;
    assert_eq!(twice.unwrap_err().conflict(), Some("offers_pkey"));
    // Updates of known offers are sent with the commit, which is sent only after they succeeded.
    let tx = fixture.begin().await;
    let missing = changed(offer(seller));
    tx.save_offers(seller, vec![missing]).await.unwrap();
    let cause = is_rolled_back(tx).await;
    assert!(matches!(cause, StoreError::Unexpected(_)), "{cause:?}");
}
