//! What is locked along with the begin: it is locked within the transaction, and told once it is asked for.

use std::time::Duration;

use adapter_postgres::{ANSWER_WITHIN, Database, DatabaseSettings};
use kernel::{Change, CommitError, StoreError};
use offers::Offer;
use private_postgres::{Cluster, Options};
use testkit::{OwnPostgres, TestDatabase};
use tokio::time::{Instant, sleep, timeout};
use usecases::{FirstLock, Transaction};

use crate::support::{Fixture, id, instant, offer, settings};

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
        self.begin_locking_over(&self.fixture.database).await.unwrap()
    }

    async fn begin_locking_over(&self, database: &Database) -> Result<Box<dyn Transaction>, StoreError> {
        let first = FirstLock::Offer(self.offer.seller, self.offer.id);
        database.units().begin_locking(first).await
    }

    /// Replaces the clock, which a transaction reads as it is opened, by one that does this first.
    async fn break_clock(&self, first: &str) {
        let broken = format!(
            "alter function api_now() rename to api_then; create function api_now() returns timestamptz \
             language plpgsql as 'begin perform {first}; return api_then(); end'"
        );
        self.fixture.tamper(&broken).await;
    }

    async fn mend_clock(&self) {
        let mend = "drop function api_now(); alter function api_then() rename to api_now";
        self.fixture.tamper(mend).await;
    }

    /// Fails where anybody has it locked.
    async fn is_free(&self) {
        let id = self.offer.id.uuid();
        self.fixture
            .tamper(&format!("select from offers where id = '{id}' for update nowait"))
            .await;
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

#[tokio::test]
async fn where_the_connection_is_cut_within_the_begin_nothing_is_locked_and_the_next_one_is_another() {
    let shelf = Shelf::new().await;
    let database = narrow(shelf.fixture.place.url());
    // All is prepared, so that the lock is on its way before the begin has failed.
    drop(shelf.begin_locking_over(&database).await.unwrap());
    let [before] = connections(&shelf.fixture.place).await[..] else {
        panic!("the pool has one connection");
    };
    shelf.break_clock("pg_terminate_backend(pg_backend_pid())").await;
    is_unavailable(shelf.begin_locking_over(&database).await);
    shelf.mend_clock().await;
    shelf.is_free().await;
    let tx = shelf.begin_locking_over(&database).await.unwrap();
    assert_eq!(shelf.lock(&*tx).await.unwrap().len(), 1);
    assert!(!connections(&shelf.fixture.place).await.contains(&before));
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn a_begin_that_is_given_up_locks_nothing_for_longer_than_its_server_takes() {
    let shelf = Shelf::new().await;
    let database = narrow(shelf.fixture.place.url());
    drop(shelf.begin_locking_over(&database).await.unwrap());
    // The server begins after all, locks, and has nobody left to answer. It takes so much longer that a busy machine gives up
    // before it, too.
    let longer = ANSWER_WITHIN + Duration::from_secs(2);
    shelf
        .break_clock(&format!("pg_sleep({})", longer.as_secs_f64()))
        .await;
    let began = Instant::now();
    is_unavailable(shelf.begin_locking_over(&database).await);
    let given_up = began.elapsed();
    assert!((ANSWER_WITHIN..longer).contains(&given_up), "{given_up:?}");
    no_connection_is_left(&shelf.fixture.place).await;
    shelf.is_free().await;
    shelf.mend_clock().await;
    let tx = shelf.begin_locking_over(&database).await.unwrap();
    assert_eq!(shelf.lock(&*tx).await.unwrap().len(), 1);
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn where_a_server_that_only_reads_refuses_the_begin_its_connection_is_not_used_again() {
    let primary = OwnPostgres::start(|options| options).await;
    let folder = tempfile::tempdir().unwrap();
    let following = Options::new(folder.path())
        .throw_away(true)
        .standby_of(primary.cluster().connection());
    let standby = tokio::task::spawn_blocking(|| Cluster::start(following).unwrap())
        .await
        .unwrap();
    let place = TestDatabase::elsewhere(&standby.url("postgres"));
    let database = narrow(place.url());
    let units = database.units();
    let nobodys = FirstLock::Offer(id().into(), id().into());
    // BEGIN itself fails here, and what reads the clock behind it does not.
    is_unavailable(units.begin_locking(nobodys.clone()).await);
    no_connection_is_left(&place).await;
    drop(primary);
    standby.promote().unwrap();
    let tx = units.begin_locking(nobodys).await.unwrap();
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn on_a_new_connection_it_waits_no_longer_than_a_lock_may() {
    let shelf = Shelf::new().await;
    let _holder = shelf.begin_locking().await;
    let new = shelf.fixture.another();
    let began = Instant::now();
    let late = shelf.begin_locking_over(&new).await.unwrap();
    let error = shelf.lock(&*late).await.unwrap_err();
    let waited = began.elapsed();
    // Which of the limits it was is told by its words; either makes the same of the error.
    let StoreError::Unavailable(why) = &error else {
        panic!("{error:?}")
    };
    assert!(format!("{why:?}").contains("due to lock timeout"), "{why:?}");
    // As long as a lock may wait, and less than a statement may take.
    let allowed = Duration::from_secs(2)..settings("").statement_timeout;
    assert!(allowed.contains(&waited), "{waited:?}");
}

/// A handle with one connection, by whose name it is known to the server.
fn narrow(url: &str) -> Database {
    Database::new(DatabaseSettings {
        pool_size: 1,
        ..settings(&format!("{url}?application_name=narrow"))
    })
    .unwrap()
}

fn is_unavailable(begun: Result<Box<dyn Transaction>, StoreError>) {
    let error = begun.err().unwrap();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
}

/// The server's processes for the connections of [`narrow`] handles.
async fn connections(place: &TestDatabase) -> Vec<i32> {
    let its =
        "select pid from pg_stat_activity where datname = current_database() and application_name = 'narrow'";
    let rows = place.connect().await.query(its, &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// Waits until the server has ended them all.
async fn no_connection_is_left(place: &TestDatabase) {
    let ended = async {
        while !connections(place).await.is_empty() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    let in_time = timeout(Duration::from_secs(10), ended).await;
    assert!(in_time.is_ok(), "a connection is left");
}
