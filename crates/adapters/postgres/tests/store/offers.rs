//! Offers as stored and read by id, alone and in batches.

use chrono::TimeDelta;
use futures_util::future::join_all;
use kernel::{Money, StoreError};
use offers::{Offer, OfferStatus, Price, PriceSource, Product, Stock};

use crate::support::{Fixture, changed, created, instant, is_rolled_back, is_unexpected, offer};

#[tokio::test]
async fn a_change_alone_or_with_others_writes_its_own_sellers_offer_and_products_only_where_they_were_fed() {
    let fixture = Fixture::new().await;
    let (seller, other) = (fixture.seller().await, fixture.seller().await);
    let before = [(); 3].map(|()| offer(seller));
    let others = before.clone().map(|offer| Offer {
        seller: other,
        ..offer
    });
    fixture.save_offers(before.to_vec()).await;
    fixture.save_offers(others.to_vec()).await;
    let reader = fixture.database.offer_reader();
    // Each writes what the one before has not.
    for (is_fed, n, status, source) in [
        (false, 1, OfferStatus::Draft, PriceSource::Manual),
        (true, 2, OfferStatus::Published, PriceSource::Automatic),
    ] {
        let after = before.clone().map(|offer| Offer {
            seller,
            id: offer.id,
            product: Product {
                title: format!("{} 2", offer.product.title),
                handle: format!("{}-2", offer.product.handle),
                ean: Some("4006381333931".to_owned()),
                brand: Some("Inna".to_owned()),
                signature: Some("2|Inna|4006381333931".to_owned()),
                thumbnail: Some("https://img.example/2.jpg".to_owned()),
                url: format!("{}/2", offer.product.url),
            },
            status,
            price: Some(Price {
                money: Money::pln(n).unwrap(),
                source,
            }),
            stock: Stock::new(n).ok(),
            external_id: Some(format!("CZ-{n}")),
            created_at: offer.created_at,
            updated_at: instant() + TimeDelta::hours(n),
        });
        for some in [&after[..1], &after[1..]] {
            let tx = fixture.begin().await;
            let ids: Vec<_> = some.iter().map(|offer| offer.id).collect();
            assert_eq!(tx.lock_offers(seller, &ids).await.unwrap().len(), some.len());
            let changes = some.iter().cloned().map(changed).collect();
            if is_fed {
                tx.save_fed_offers(seller, changes).await.unwrap();
            } else {
                tx.save_offers(seller, changes).await.unwrap();
            }
            tx.commit().await.unwrap();
        }
        let mut stored = after.clone();
        if !is_fed {
            for (stored, before) in stored.iter_mut().zip(&before) {
                stored.product = before.product.clone();
            }
        }
        for stored in stored.iter().chain(&others) {
            let read = reader.offer(stored.seller.into(), stored.id).await.unwrap();
            assert_eq!(read.as_ref(), Some(stored));
        }
    }
}

#[tokio::test]
async fn each_caller_of_a_batch_gets_its_own_answer() {
    let fixture = Fixture::new().await;
    let (seller, other) = (fixture.seller().await, fixture.seller().await);
    let bare = Offer {
        price: None,
        stock: None,
        external_id: None,
        status: OfferStatus::Proposed,
        product: Product {
            ean: None,
            brand: None,
            signature: None,
            thumbnail: None,
            ..offer(seller).product
        },
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
        assert_eq!(reader.offer(seller.into(), offer.id).await.unwrap(), expected);
    }))
    .await;
    for _ in 0..50 {
        let awaited = reader.offer(seller.into(), mine[0].id);
        // Polled once, so that it is queued or under way; dropping it does not affect others.
        let mut dropped = Box::pin(reader.offer(seller.into(), mine[0].id));
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
    let twice = tx.save_fed_offers(seller, vec![created(known)]).await;
    assert_eq!(twice.unwrap_err().conflict(), Some("offers_pkey"));
    // Updates of known offers are sent with the commit, which is sent only after they succeeded.
    for is_fed in [false, true] {
        let tx = fixture.begin().await;
        let missing = vec![changed(offer(seller))];
        let saved = if is_fed {
            tx.save_fed_offers(seller, missing).await
        } else {
            tx.save_offers(seller, missing).await
        };
        saved.unwrap();
        let cause = is_rolled_back(tx).await;
        assert!(matches!(cause, StoreError::Unexpected(_)), "{cause:?}");
    }
}
