//! Offers within transactions.

use futures_util::future::join_all;
use kernel::{Change, OfferId, SellerId, StoreError};
use offers::{Offer, Stock};
use usecases::{Transaction, UnitOfWorkError, Work, transact};

use super::fixture::{Fixture, begin, offer, saved_offer, seller};

async fn stock(fixture: &Fixture, seller: SellerId, id: OfferId) -> Option<i32> {
    let found = begin(fixture).await.lock_offers(seller, &[id]).await.unwrap();
    found.first().map(|offer| offer.stock.unwrap().get())
}

fn with_stock(offer: &Offer, pieces: i64) -> Change<Offer, offers::OfferEvent> {
    let after = Offer {
        stock: Some(Stock::new(pieces).unwrap()),
        ..offer.clone()
    };
    Change::of_existing(after, Vec::new())
}

/// Offers are found by their sellers alone, each once, however often it is asked for.
#[tokio::test]
async fn what_is_saved_is_there_and_another_sellers_is_not() {
    let fixture = &Fixture::new().await;
    let (one, other) = (seller(fixture).await, seller(fixture).await);
    let kettle = saved_offer(fixture, one, 5).await;
    let pot = saved_offer(fixture, one, 6).await;
    let tx = begin(fixture).await;
    let found = tx
        .lock_offers(one, &[pot.id, kettle.id, kettle.id, super::fixture::id().into()])
        .await;
    assert_eq!(found.unwrap(), [kettle.clone(), pot]);
    assert!(tx.lock_offers(other, &[kettle.id]).await.unwrap().is_empty());
    let foreign = tx.save_offers(other, vec![with_stock(&kettle, 1)]).await;
    assert!(foreign.is_err());
}

/// What a transaction has written is its own until it commits, and gone where it does not.
#[tokio::test]
async fn what_is_not_committed_is_nobodys() {
    let fixture = &Fixture::new().await;
    let seller = seller(fixture).await;
    let kettle = saved_offer(fixture, seller, 5).await;
    let tx = begin(fixture).await;
    tx.lock_offers(seller, &[kettle.id]).await.unwrap();
    tx.save_offers(seller, vec![with_stock(&kettle, 7)])
        .await
        .unwrap();
    let own = tx.lock_offers(seller, &[kettle.id]).await.unwrap();
    assert_eq!(own[0].stock, Stock::new(7).ok());
    drop(tx);
    assert_eq!(stock(fixture, seller, kettle.id).await, Some(5));
    let tx = begin(fixture).await;
    tx.save_offers(seller, vec![with_stock(&kettle, 8)])
        .await
        .unwrap();
    tx.commit().await.unwrap();
    assert_eq!(stock(fixture, seller, kettle.id).await, Some(8));
}

/// Takes a piece of each offer, in the order in which they are named.
struct TakeOne(SellerId, Vec<OfferId>);

#[async_trait::async_trait]
impl Work for TakeOne {
    type Done = ();
    type Error = UnitOfWorkError;

    async fn run(&self, tx: &dyn Transaction) -> Result<(), UnitOfWorkError> {
        let found = tx.lock_offers(self.0, &self.1).await?;
        let less = |offer: &Offer| with_stock(offer, i64::from(offer.stock.unwrap().get()) - 1);
        tx.save_offers(self.0, found.iter().map(less).collect()).await?;
        Ok(())
    }
}

/// Nobody's change is lost to another one's.
#[tokio::test]
async fn a_locked_offer_is_waited_for_and_read_as_it_is_then() {
    let fixture = &Fixture::new().await;
    let seller = seller(fixture).await;
    let kettle = saved_offer(fixture, seller, 20).await;
    let units = fixture.units();
    let take = TakeOne(seller, vec![kettle.id]);
    for done in join_all((0..8).map(|_| transact(units.as_ref(), &take))).await {
        done.unwrap();
    }
    assert_eq!(stock(fixture, seller, kettle.id).await, Some(12));
}

/// A new offer that exists is a conflict; a changed one that does not exist is a failure, at the commit at the latest.
#[tokio::test]
async fn what_is_new_must_not_be_there_and_what_changes_must() {
    let fixture = &Fixture::new().await;
    let seller = seller(fixture).await;
    let kettle = saved_offer(fixture, seller, 5).await;
    let tx = begin(fixture).await;
    let twice = tx
        .save_offers(seller, vec![Change::made(kettle, Vec::new())])
        .await;
    assert!(matches!(twice, Err(StoreError::Conflict { .. })), "{twice:?}");
    let tx = begin(fixture).await;
    let unknown = offer(seller, 1, tx.now());
    let saved = tx.save_offers(seller, vec![with_stock(&unknown, 2)]).await;
    assert!(saved.is_err() || tx.commit().await.is_err());
}

/// Offers are locked in one order, whatever the order in which they are asked for.
#[tokio::test]
async fn those_who_lock_the_same_offers_never_wait_in_a_circle() {
    let fixture = &Fixture::new().await;
    let seller = seller(fixture).await;
    let (one, other) = (
        saved_offer(fixture, seller, 50).await,
        saved_offer(fixture, seller, 50).await,
    );
    let units = fixture.units();
    let orders = [
        TakeOne(seller, vec![one.id, other.id]),
        TakeOne(seller, vec![other.id, one.id]),
    ];
    for done in join_all((0..8).map(|n| transact(units.as_ref(), &orders[n % 2]))).await {
        done.unwrap();
    }
    for id in [one.id, other.id] {
        assert_eq!(stock(fixture, seller, id).await, Some(42));
    }
}
