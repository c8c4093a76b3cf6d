//! The unit of work: what is saved together, what is undone, and how a lost transaction tells.

use std::time::Duration;

use adapter_postgres::{Database, DatabaseSettings};
use kernel::{Change, CommitError, SellerId, StoreError};
use oauth::{Limiter, Subject};
use tokio::time::{Instant, timeout};

use crate::support::{Fixture, id, instant, new_seller, offer, settings};

async fn backends(fixture: &Fixture, condition: &str) -> i64 {
    let sql =
        format!("select count(*) from pg_stat_activity where datname = current_database() and {condition}");
    fixture
        .place
        .connect()
        .await
        .query_one(&sql, &[])
        .await
        .unwrap()
        .get(0)
}

#[tokio::test]
async fn what_is_dropped_is_undone_and_its_connection_serves_the_next() {
    let fixture = Fixture::new().await;
    let database = Database::new(DatabaseSettings {
        pool_size: 1,
        ..settings(fixture.place.url())
    })
    .unwrap();
    let mut process = None;
    for n in 0..5 {
        let tx = database.units().begin().await.unwrap();
        let seller = tx.add_seller(new_seller(&format!("a{n}@b"))).await.unwrap();
        drop(tx);
        assert_eq!(database.sellers().seller(seller.id).await.unwrap(), None);
        let client = fixture.place.connect().await;
        let own = "select pid from pg_stat_activity where datname = current_database() and application_name = 'seller-api'";
        let now: i32 = client.query_one(own, &[]).await.unwrap().get(0);
        assert_eq!(
            *process.get_or_insert(now),
            now,
            "the connection was not given back"
        );
    }
    assert_eq!(backends(&fixture, "state like 'idle in transaction%'").await, 0);
}

#[tokio::test]
async fn what_is_dropped_in_the_middle_of_a_statement_is_undone() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let holder = fixture.begin().await;
    holder.lock_seller(seller.id).await.unwrap();
    let waiting = fixture.begin().await;
    let gave_up = timeout(Duration::from_millis(100), waiting.lock_seller(seller.id)).await;
    assert!(gave_up.is_err());
    assert!(matches!(waiting.commit().await, Err(CommitError::RolledBack(_))));
    holder.commit().await.unwrap();
    assert!(
        fixture
            .begin()
            .await
            .lock_seller(seller.id)
            .await
            .unwrap()
            .is_some()
    );
}

#[tokio::test]
async fn a_transaction_in_which_something_failed_is_never_taken_for_committed() {
    let fixture = Fixture::new().await;
    let tx = fixture.begin().await;
    let seller = tx.add_seller(new_seller("a@b")).await.unwrap();
    tx.add_seller(new_seller("A@B")).await.unwrap_err();
    assert!(matches!(tx.commit().await, Err(CommitError::RolledBack(_))));
    assert_eq!(fixture.database.sellers().seller(seller.id).await.unwrap(), None);
}

#[tokio::test]
async fn now_is_the_databases_clock() {
    let fixture = Fixture::new().await;
    let clock = fixture.place.control_clock().await;
    clock.freeze(instant()).await;
    assert_eq!(fixture.begin().await.now(), instant());
}

#[tokio::test]
async fn who_waits_for_a_row_too_long_is_told_so() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let holder = fixture.begin().await;
    holder.lock_seller(seller.id).await.unwrap();
    let began = Instant::now();
    let error = fixture.begin().await.lock_seller(seller.id).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_transaction_is_read_committed_and_bounded_and_leaves_nothing_on_its_connection() {
    const LOOK: &str = "
        create table seen (n serial, bounds text);
        create function look() returns trigger language plpgsql as $$ begin
            insert into seen (bounds) select string_agg(setting, ' ' order by name) from pg_settings
                where name in ('transaction_isolation', 'statement_timeout', 'lock_timeout',
                    'idle_in_transaction_session_timeout');
            return null;
        end $$;
        create trigger look after insert on sellers for each statement execute function look();
        create trigger look after insert on rate_windows for each statement execute function look()";
    let fixture = Fixture::new().await;
    fixture.tamper(LOOK).await;
    let database = Database::new(DatabaseSettings {
        pool_size: 1,
        ..settings(fixture.place.url())
    })
    .unwrap();
    let tx = database.units().begin().await.unwrap();
    tx.add_seller(new_seller("a@b")).await.unwrap();
    tx.commit().await.unwrap();
    let (counter, everybody) = (database.rate_counter(), Subject::client(id().into()));
    counter.count(Limiter::TokenByClient, everybody).await.unwrap();
    let client = fixture.place.connect().await;
    let rows = client
        .query("select bounds from seen order by n", &[])
        .await
        .unwrap();
    let bounds = rows.iter().map(|row| row.get(0)).collect::<Vec<String>>();
    assert_eq!(bounds, ["10000 2000 5000 read committed", "0 0 0 read committed"]);
}

#[tokio::test]
async fn a_deadlock_can_be_repeated() {
    let fixture = Fixture::new().await;
    let (one, other) = (fixture.seller().await, fixture.seller().await);
    // The server looks for circles after a second; here at once.
    fixture.tamper("do $$ begin execute format('alter database %I set deadlock_timeout = ''50ms''', current_database()); end $$").await;
    let database = Database::new(settings(fixture.place.url())).unwrap();
    let (first, second) = (
        database.units().begin().await.unwrap(),
        database.units().begin().await.unwrap(),
    );
    first.lock_seller(one.id).await.unwrap();
    second.lock_seller(other.id).await.unwrap();
    let (a, b) = futures_util::join!(
        async {
            let outcome = first.lock_seller(other.id).await;
            drop(first);
            outcome
        },
        async {
            let outcome = second.lock_seller(one.id).await;
            drop(second);
            outcome
        }
    );
    let (lost, won): (Vec<_>, Vec<_>) = [a, b].into_iter().partition(Result::is_err);
    assert_eq!((lost.len(), won.len()), (1, 1));
    assert!(matches!(lost[0], Err(StoreError::Retryable(_))), "{lost:?}");
}

#[tokio::test]
async fn a_serialization_failure_can_be_repeated() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    fixture
        .tamper(
            "create function lose() returns trigger language plpgsql as \
             'begin raise exception ''lost'' using errcode = ''40001''; end'; \
             create trigger lose before update on sellers for each row execute function lose()",
        )
        .await;
    let error = fixture
        .begin()
        .await
        .close_seller(seller.id, instant())
        .await
        .unwrap_err();
    assert!(matches!(error, StoreError::Retryable(_)), "{error:?}");
}

#[tokio::test]
async fn a_commit_that_the_server_refuses_is_rolled_back() {
    let fixture = Fixture::new().await;
    // A check that is made at the commit.
    fixture
        .tamper(
            "alter table applications alter constraint applications_owner_id_fkey deferrable initially deferred; \
             alter table families alter constraint families_seller_id_fkey deferrable initially deferred",
        )
        .await;
    let tx = fixture.begin().await;
    let orphan = crate::support::application(SellerId::from(id()));
    tx.save_application(Change::made(orphan.clone(), Vec::new()))
        .await
        .unwrap();
    let refused = tx.commit().await.unwrap_err();
    assert!(matches!(refused, CommitError::RolledBack(_)), "{refused:?}");
    assert_eq!(
        fixture
            .database
            .applications()
            .client(orphan.client_id)
            .await
            .unwrap(),
        None
    );
}

#[tokio::test]
async fn a_commit_whose_answer_is_lost_is_of_unknown_fate() {
    let fixture = Fixture::new().await;
    fixture
        .tamper(
            "create function die() returns trigger language plpgsql as \
             'begin perform pg_terminate_backend(pg_backend_pid()); return null; end'; \
             create constraint trigger die after insert on sellers deferrable initially deferred \
             for each row execute function die()",
        )
        .await;
    let tx = fixture.begin().await;
    tx.add_seller(new_seller("a@b")).await.unwrap();
    let lost = tx.commit().await.unwrap_err();
    assert!(matches!(lost, CommitError::Unknown(_)), "{lost:?}");
}

#[tokio::test]
async fn what_waits_for_a_connection_in_vain_is_told_so() {
    let fixture = Fixture::new().await;
    let narrow = DatabaseSettings {
        pool_size: 1,
        acquire_timeout: Duration::from_millis(100),
        ..settings(fixture.place.url())
    };
    let database = Database::new(narrow).unwrap();
    let _holder = database.units().begin().await.unwrap();
    let error = database.units().begin().await.err().unwrap();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_who_save_the_same_offers_never_wait_in_a_circle() {
    let fixture = Fixture::new().await;
    let seller = fixture.seller().await;
    let offers = (0..200).map(|_| offer(seller.id, instant())).collect::<Vec<_>>();
    fixture.save(offers.clone()).await;
    let run = async |reversed: bool| {
        for _ in 0..20 {
            let mut ids = offers.iter().map(|offer| offer.id).collect::<Vec<_>>();
            if reversed {
                ids.reverse();
            }
            let tx = fixture.begin().await;
            let locked = tx.lock_offers(seller.id, &ids).await.unwrap();
            let mut changes = locked
                .into_iter()
                .map(|o| Change::of_existing(o, Vec::new()))
                .collect::<Vec<_>>();
            if reversed {
                changes.reverse();
            }
            tx.save_offers(seller.id, changes).await.unwrap();
            tx.commit().await.unwrap();
        }
    };
    futures_util::join!(run(false), run(true), run(false), run(true));
}
