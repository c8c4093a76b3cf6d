//! The database goes away, is silent, comes back.

use std::time::Duration;

use adapter_postgres::{Database, SchemaState};
use futures_util::future::join_all;
use kernel::{PageSize, StoreError};
use oauth::{Limiter, Subject};
use offers::OfferFilter;
use tokio::{net::UnixListener, time::Instant};

use crate::support::{Fixture, id, instant, offer, settings};

fn is_unavailable<T>(answer: Result<T, StoreError>) {
    assert!(matches!(answer.err().unwrap(), StoreError::Unavailable(_)));
}

/// Asks everything that can be asked, at once; each answer has to be that the database is away.
async fn everything_is_unavailable(database: &Database) {
    let (gate, reader, subject) = (
        database.gate(),
        database.offer_reader(),
        Subject::client(id().into()),
    );
    let token = oauth::TokenKey {
        family: id().into(),
        hash: oauth::SecretHash::of("x"),
    };
    let (seller, offer) = (id().into(), id().into());
    let begun = Instant::now();
    futures_util::join!(
        async { is_unavailable(gate.admit(token).await) },
        async { is_unavailable(reader.offer(seller, offer).await) },
        async {
            is_unavailable(
                reader
                    .offers(seller, OfferFilter::default(), None, PageSize::default())
                    .await,
            );
        },
        async { is_unavailable(database.units().begin().await) },
        async { is_unavailable(database.applications().client(id().into()).await) },
        async { is_unavailable(database.sellers().seller(seller).await) },
        async {
            is_unavailable(
                database
                    .rate_counter()
                    .count(Limiter::TokenByAddress, subject)
                    .await,
            );
        },
        async { is_unavailable(database.operator_tokens().operator_tokens().await) },
        async { is_unavailable(database.schema_state().await) },
    );
    assert!(
        begun.elapsed() < Duration::from_millis(2900),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test]
async fn nobody_listens() {
    let url = "postgres://nobody@127.0.0.1:1/nothing";
    let database = Database::new(settings(url)).unwrap();
    everything_is_unavailable(&database).await;
}

#[tokio::test]
async fn somebody_listens_and_says_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let _silent = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).unwrap();
    let url = format!(
        "postgres://nobody@{}/nothing",
        folder.path().to_str().unwrap().replace('/', "%2F")
    );
    let database = Database::new(settings(&url)).unwrap();
    everything_is_unavailable(&database).await;
}

#[tokio::test]
async fn a_statement_that_hangs_is_given_up_and_the_next_one_gets_another_connection() {
    let fixture = Fixture::new().await;
    let (seller, _, token) = fixture.caller().await;
    let offer = offer(seller.id, instant());
    fixture.save(vec![offer.clone()]).await;
    let database = fixture.another();
    let (gate, reader) = (database.gate(), database.offer_reader());
    assert!(gate.admit(token).await.unwrap().is_some());
    assert!(reader.offer(seller.id, offer.id).await.unwrap().is_some());
    let client = fixture.place.connect().await;
    client
        .batch_execute("begin; lock table offers, families in access exclusive mode")
        .await
        .unwrap();
    let began = Instant::now();
    let (admission, read) = futures_util::join!(gate.admit(token), reader.offer(seller.id, offer.id));
    is_unavailable(admission);
    is_unavailable(read);
    assert!(
        began.elapsed() < Duration::from_millis(2900),
        "{:?}",
        began.elapsed()
    );
    client.batch_execute("rollback").await.unwrap();
    assert!(gate.admit(token).await.unwrap().is_some());
    assert!(reader.offer(seller.id, offer.id).await.unwrap().is_some());
}

#[tokio::test]
async fn it_goes_away_and_comes_back() {
    let fixture = Fixture::new().await;
    let (seller, _, token) = fixture.caller().await;
    let offer = offer(seller.id, instant());
    fixture.save(vec![offer.clone()]).await;
    let database = fixture.another();
    let (gate, reader) = (database.gate(), database.offer_reader());
    let works = async || {
        assert!(gate.admit(token).await.unwrap().is_some());
        assert!(reader.offer(seller.id, offer.id).await.unwrap().is_some());
        let page = reader
            .offers(seller.id, OfferFilter::default(), None, PageSize::default())
            .await;
        assert_eq!(page.unwrap().items, std::slice::from_ref(&offer));
        database.units().begin().await.unwrap().commit().await.unwrap();
        assert_eq!(database.schema_state().await.unwrap(), SchemaState::Ready);
    };
    works().await;
    fixture.place.go_away().await;
    is_unavailable(gate.admit(token).await);
    is_unavailable(reader.offer(seller.id, offer.id).await);
    is_unavailable(database.schema_state().await);
    is_unavailable(database.units().begin().await);
    fixture.place.come_back().await;
    works().await;
}

#[tokio::test]
async fn an_open_transaction_whose_connection_ends_is_unavailable() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let tx = fixture.begin().await;
    fixture.place.go_away().await;
    is_unavailable(tx.lock_seller(seller.id).await);
    drop(tx);
    fixture.place.come_back().await;
    fixture.begin().await.lock_seller(seller.id).await.unwrap();
}

#[tokio::test]
async fn a_group_that_fails_tells_each_of_its_waiters() {
    let fixture = Fixture::new().await;
    let (_, _, token) = fixture.caller().await;
    fixture
        .tamper("alter table rate_windows rename to elsewhere")
        .await;
    let gate = fixture.database.gate();
    let answers = join_all((0..50).map(|_| gate.admit(token))).await;
    assert!(
        answers
            .iter()
            .all(|answer| matches!(answer, Err(StoreError::Unavailable(_)))),
        "{answers:?}"
    );
    fixture
        .tamper("alter table elsewhere rename to rate_windows")
        .await;
    assert_eq!(gate.admit(token).await.unwrap().unwrap().quota.place, 1);
}

#[test]
fn a_gate_outlives_the_runtime_that_it_began_on() {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    let first = runtime();
    let (fixture, gate, reader, token, seller) = first.block_on(async {
        let fixture = Fixture::new().await;
        let (seller, _, token) = fixture.caller().await;
        let (gate, reader) = (fixture.database.gate(), fixture.database.offer_reader());
        assert!(gate.admit(token).await.unwrap().is_some());
        assert!(reader.offer(seller.id, id().into()).await.unwrap().is_none());
        (fixture, gate, reader, token, seller)
    });
    drop(first);
    runtime().block_on(async {
        assert!(gate.admit(token).await.unwrap().is_some());
        let page = reader
            .offers(seller.id, OfferFilter::default(), None, PageSize::default())
            .await;
        assert!(page.unwrap().items.is_empty());
        fixture.seller().await;
    });
}
