//! What became of a transaction whose COMMIT was not answered.

use std::time::Duration;

use kernel::{Claim, Claimed, CommitError};
use testkit::Link;
use tokio_postgres::Client;

use crate::support::{Fixture, Glass, answer, claim, database, id};

const LEASE: Duration = Duration::from_mins(1);
/// More connections than the pool of a fixture has.
const POOL: usize = 20;

async fn claimed(fixture: &Fixture) -> Claim {
    let claim = claim(id().into(), "k", "a");
    assert_eq!(
        fixture.database.claims().claim(&claim, LEASE).await.unwrap(),
        Claimed::Run
    );
    claim
}

/// Ends every connection of the adapter's.
async fn terminate(client: &Client) {
    let end = "select pg_terminate_backend(pid) from pg_stat_activity \
        where datname = current_database() and application_name = 'seller-api'";
    client.execute(end, &[]).await.unwrap();
}

/// Waits until a connection of the adapter's waits for a lock.
async fn somebody_waits(client: &Client) {
    let waiting = "select exists (select from pg_stat_activity where datname = current_database() \
        and application_name = 'seller-api' and wait_event_type = 'Lock')";
    while !client.query_one(waiting, &[]).await.unwrap().get::<_, bool>(0) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_backend_killed_before_the_commit_has_done_nothing() {
    let fixture = Fixture::new().await;
    let client = fixture.place.connect().await;
    let claim = claimed(&fixture).await;
    let tx = fixture.begin().await;
    tx.complete(&claim, &answer("a")).await.unwrap();
    terminate(&client).await;
    let error = tx.commit().await.unwrap_err();
    assert!(matches!(error, CommitError::Unknown(_)), "{error:?}");
    let claims = fixture.database.claims();
    assert_eq!(claims.outcome(&claim).await.unwrap(), None);
    claims.release(&claim).await.unwrap();
    let repeat = Claim { fence: id(), ..claim };
    assert_eq!(claims.claim(&repeat, LEASE).await.unwrap(), Claimed::Run);
}

#[tokio::test]
async fn a_backend_killed_after_the_commit_has_done_everything() {
    let fixture = Fixture::new().await;
    let client = fixture.place.connect().await;
    let claim = claimed(&fixture).await;
    let tx = fixture.begin().await;
    tx.complete(&claim, &answer("a")).await.unwrap();
    tx.commit().await.unwrap();
    terminate(&client).await;
    let claims = fixture.database.claims();
    // A connection may learn of its end only as it is used.
    let mut outcome = claims.outcome(&claim).await;
    for _ in 0..POOL {
        if outcome.is_err() {
            outcome = claims.outcome(&claim).await;
        }
    }
    assert_eq!(outcome.unwrap(), Some(answer("a")));
    claims.release(&claim).await.unwrap();
    assert_eq!(claims.outcome(&claim).await.unwrap(), Some(answer("a")));
}

#[tokio::test]
async fn while_the_old_backend_lives_the_outcome_waits_for_it() {
    let fixture = Fixture::new().await;
    let client = fixture.place.connect().await;
    let claims = fixture.database.claims();
    for commits in [true, false] {
        let claim = claimed(&fixture).await;
        let tx = fixture.begin().await;
        tx.complete(&claim, &answer("a")).await.unwrap();
        let end = async {
            somebody_waits(&client).await;
            if commits {
                tx.commit().await.unwrap();
            } else {
                drop(tx);
            }
        };
        let (outcome, ()) = futures_util::join!(claims.outcome(&claim), end);
        assert_eq!(outcome.unwrap(), commits.then(|| answer("a")));
    }
    let claim = claimed(&fixture).await;
    let tx = fixture.begin().await;
    tx.complete(&claim, &answer("a")).await.unwrap();
    let killed = async {
        somebody_waits(&client).await;
        let end = "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() \
            and application_name = 'seller-api' and state = 'idle in transaction'";
        client.execute(end, &[]).await.unwrap();
    };
    let (outcome, ()) = futures_util::join!(claims.outcome(&claim), killed);
    assert_eq!(outcome.unwrap(), None);
    assert!(tx.commit().await.is_err());
}

#[tokio::test]
async fn a_commit_that_was_carried_out_without_an_answer_is_known_by_its_row() {
    // The end of the transaction waits for a lock that the test holds.
    const SLOW: &str = "create function wait() returns trigger language plpgsql as
          $$ begin perform pg_advisory_xact_lock(1); return null; end $$;
        create constraint trigger wait after update on idempotency deferrable initially deferred
          for each row execute function wait();";
    let fixture = Fixture::new().await;
    let client = fixture.place.connect().await;
    client.batch_execute(SLOW).await.unwrap();
    let link = Link::to(&fixture.place);
    let settings = adapter_postgres::DatabaseSettings {
        statement_timeout: Duration::from_millis(1_500),
        ..crate::support::settings(link.url(), 2)
    };
    let far = adapter_postgres::Database::new(settings)
        .unwrap()
        .with_sealer(std::sync::Arc::new(Glass));
    let claim = claimed(&fixture).await;
    let tx = far.units().begin().await.unwrap();
    tx.complete(&claim, &answer("a")).await.unwrap();
    client.execute("select pg_advisory_lock(1)", &[]).await.unwrap();
    let cut = async {
        somebody_waits(&client).await;
        link.block();
        client.execute("select pg_advisory_unlock(1)", &[]).await.unwrap();
    };
    let (committed, ()) = futures_util::join!(tx.commit(), cut);
    assert!(matches!(committed, Err(CommitError::Unknown(_))), "{committed:?}");
    link.unblock();
    assert_eq!(far.claims().outcome(&claim).await.unwrap(), Some(answer("a")));
}

#[tokio::test]
async fn an_outcome_is_looked_for_until_the_database_is_back() {
    let fixture = Fixture::new().await;
    let claim = claimed(&fixture).await;
    let tx = fixture.begin().await;
    tx.complete(&claim, &answer("a")).await.unwrap();
    tx.commit().await.unwrap();
    fixture.place.go_away().await;
    let fresh = database(fixture.place.url(), 1).claims();
    let back = async {
        // Long enough for a first try to fail; a later return would do as well.
        tokio::time::sleep(Duration::from_millis(50)).await;
        fixture.place.come_back().await;
    };
    let (outcome, ()) = futures_util::join!(fresh.outcome(&claim), back);
    assert_eq!(outcome.unwrap(), Some(answer("a")));
}
