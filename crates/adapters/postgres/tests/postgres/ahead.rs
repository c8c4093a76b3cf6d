//! What is locked along with the begin: it is locked within the transaction, and told once it is asked for.

use std::time::Duration;

use kernel::{Change, CommitError, StoreError};
use offers::Offer;
use tokio::time::timeout;
use usecases::{FirstLock, Transaction};

use crate::support::{Fixture, instant, offer};

struct Shelf {
    fixture: Fixture,
    offer: Offer,
}

impl Shelf {
    async fn new() -> Self {
        let fixture = Fixture::new().await;
        let offer = offer(fixture.seller().await.id, instant());
        fixture.save(vec![offer.clone()]).await;
        Self { fixture, offer }
    }

    async fn begin_locking(&self) -> Box<dyn Transaction> {
        let first = FirstLock::Offer(self.offer.seller, self.offer.id);
        self.fixture.database.units().begin_locking(first).await.unwrap()
    }

    async fn lock(&self, tx: &dyn Transaction) -> Result<Vec<Offer>, StoreError> {
        tx.lock_offers(self.offer.seller, &[self.offer.id]).await
    }

    async fn save(&self, tx: &dyn Transaction, title: &str) {
        let after = Offer {
            title: title.to_owned(),
            ..self.offer.clone()
        };
        tx.save_offers(self.offer.seller, vec![Change::of_existing(after, Vec::new())])
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn it_stays_locked_until_the_transaction_ends() {
    let shelf = Shelf::new().await;
    let first = shelf.begin_locking().await;
    let second = shelf.fixture.begin().await;
    let waits = timeout(Duration::from_millis(100), shelf.lock(&*second)).await;
    assert!(waits.is_err(), "nobody else may have it");
    drop(second);
    assert_eq!(
        shelf.lock(&*first).await.unwrap(),
        std::slice::from_ref(&shelf.offer)
    );
    shelf.save(&*first, "Changed").await;
    first.commit().await.unwrap();
    let third = shelf.begin_locking().await;
    assert_eq!(shelf.lock(&*third).await.unwrap()[0].title, "Changed");
}

#[tokio::test]
async fn the_clock_is_read_with_it() {
    let shelf = Shelf::new().await;
    let clock = shelf.fixture.place.control_clock().await;
    clock.freeze(instant()).await;
    assert_eq!(shelf.begin_locking().await.now(), instant());
}

#[tokio::test]
async fn whoever_locks_it_again_sees_what_was_written_meanwhile() {
    let shelf = Shelf::new().await;
    let tx = shelf.begin_locking().await;
    shelf.lock(&*tx).await.unwrap();
    shelf.save(&*tx, "Changed").await;
    assert_eq!(shelf.lock(&*tx).await.unwrap()[0].title, "Changed");
}

#[tokio::test]
async fn whoever_locks_something_else_gets_that() {
    let shelf = Shelf::new().await;
    let other = offer(shelf.offer.seller, instant());
    shelf.fixture.save(vec![other.clone()]).await;
    let tx = shelf.begin_locking().await;
    let locked = tx.lock_offers(other.seller, &[other.id]).await.unwrap();
    assert_eq!(locked, std::slice::from_ref(&other));
    let mut both = [other.id, shelf.offer.id];
    both.sort_unstable();
    let locked = tx.lock_offers(other.seller, &both).await.unwrap();
    assert_eq!(locked.iter().map(|offer| offer.id).collect::<Vec<_>>(), both);
    assert_eq!(
        shelf.lock(&*tx).await.unwrap(),
        std::slice::from_ref(&shelf.offer)
    );
}

#[tokio::test]
async fn a_lock_that_fails_is_told_when_it_is_asked_for() {
    let shelf = Shelf::new().await;
    let _holder = shelf.begin_locking().await;
    let late = shelf.begin_locking().await;
    let error = shelf.lock(&*late).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    assert!(matches!(late.commit().await, Err(CommitError::RolledBack(_))));
}

#[tokio::test]
async fn where_the_begin_fails_nothing_is_locked_and_the_connection_is_not_used_again() {
    let shelf = Shelf::new().await;
    // What opens a transaction reads the clock; the lock does not.
    shelf
        .fixture
        .tamper("alter function api_now() rename to api_then")
        .await;
    let first = FirstLock::Offer(shelf.offer.seller, shelf.offer.id);
    let refused = shelf.fixture.database.units().begin_locking(first).await;
    assert!(matches!(refused.err().unwrap(), StoreError::Unavailable(_)));
    shelf
        .fixture
        .tamper("alter function api_then() rename to api_now")
        .await;
    let tx = shelf.begin_locking().await;
    assert_eq!(shelf.lock(&*tx).await.unwrap().len(), 1);
    tx.commit().await.unwrap();
}
