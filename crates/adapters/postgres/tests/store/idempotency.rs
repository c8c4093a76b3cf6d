//! Claims on idempotency keys: the fence, the lease, waiting requests, and the outcome of a lost COMMIT, that
//! of a token pair as well.

use std::time::Duration;

use chrono::TimeDelta;
use futures_util::{future::join_all, join};
use kernel::{Claim, Claimed, LOST_CLAIM};
use testkit::lock_waits;
use tokio::{select, time::Instant};
use usecases::LockSet;

use crate::support::{Fixture, LEASE, Parties, again, answer, claim, id};

fn fresh() -> Claim {
    claim(id().into(), "k", "a")
}

/// Another request under the same key.
fn other(first: &Claim) -> Claim {
    Claim {
        space: first.space,
        ..claim(id().into(), "k", "b")
    }
}

#[tokio::test]
async fn a_claim_is_released_and_completed_by_its_own_fence_alone() {
    let fixture = Fixture::new().await;
    let claims = fixture.database.claims();
    let first = fresh();
    let second = other(&first);
    let of_another_key = Claim {
        space: first.space,
        ..claim(id().into(), "j", "a")
    };
    for claim in [&of_another_key, &first] {
        assert_eq!(fixture.claim_key(claim).await, Claimed::Run);
    }
    assert_eq!(fixture.claim_key(&again(&first)).await, Claimed::InProgress);
    claims.release(&second).await.unwrap();
    let claimed = fixture.claim_key(&second).await;
    assert_eq!(claimed, Claimed::Reused, "another fence released it");
    claims.release(&first).await.unwrap();
    assert_eq!(fixture.claim_key(&second).await, Claimed::Run);
    let lost = fixture.begin().await.complete(&first, &answer("a")).await;
    assert_eq!(lost.unwrap_err().conflict(), Some(LOST_CLAIM));
    fixture.complete(&second, "b").await;
    claims.release(&second).await.unwrap();
    // Another process gets the same result.
    let elsewhere = fixture.another(1).claims();
    let stored = elsewhere.claim(&again(&second), LEASE).await.unwrap();
    assert_eq!(stored, Claimed::Completed(answer("b")));
    let twice = fixture.begin().await.complete(&second, &answer("c")).await;
    assert_eq!(twice.unwrap_err().conflict(), Some(LOST_CLAIM));
}

/// One connection, here of four, with however many handles: each server thread has one.
#[tokio::test]
async fn a_sellers_releases_wait_for_their_share_of_the_pool_and_delay_no_other() {
    let fixture = Fixture::new().await;
    let database = fixture.another(4);
    let claims = [0; 4].map(|_| database.claims());
    let (busy, other) = (id().into(), fresh());
    let held: Vec<_> = (0..4).map(|n| claim(busy, &format!("k-{n}"), "a")).collect();
    for first in &held {
        fixture.claim_key(first).await;
    }
    let lock = "begin; select from idempotency for update";
    fixture.tamper(lock).await;
    let mut releases = Box::pin(join_all(
        held.iter()
            .zip(&claims)
            .map(|(first, claims)| claims.release(first)),
    ));
    let claimed = select! {
        biased;
        _ = &mut releases => panic!("their rows are locked"),
        claimed = claims[0].claim(&other, LEASE) => claimed,
    };
    assert_eq!(claimed.unwrap(), Claimed::Run);
    fixture.tamper("rollback").await;
    for released in releases.await {
        released.unwrap();
    }
    assert_eq!(fixture.rows_of("idempotency").await, 1);
}

#[tokio::test]
async fn after_a_day_a_key_is_free_and_nothing_of_its_former_use_is_left() {
    let (fixture, clock) = Fixture::frozen().await;
    let first = fresh();
    let second = other(&first);
    fixture.claim_key(&first).await;
    fixture.complete(&first, "a").await;
    clock.advance(TimeDelta::hours(24) - TimeDelta::seconds(1)).await;
    assert_eq!(fixture.claim_key(&second).await, Claimed::Reused);
    let replayed = fixture.claim_key(&again(&first)).await;
    assert_eq!(replayed, Claimed::Completed(answer("a")));
    clock.advance(TimeDelta::seconds(1)).await;
    // Another request is about to take it over.
    let lock = "begin; select from idempotency for update";
    fixture.tamper(lock).await;
    assert_eq!(fixture.claim_key(&again(&first)).await, Claimed::InProgress);
    fixture.tamper("rollback").await;
    assert_eq!(fixture.claim_key(&second).await, Claimed::Run);
    let new = "idempotency where created_at = api_now() and status is null and body is null and etag is null";
    assert_eq!(fixture.rows_of(new).await, 1);
    assert_eq!(fixture.claim_key(&again(&second)).await, Claimed::InProgress);
    fixture.complete(&second, "b").await;
    let stored = fixture.claim_key(&again(&second)).await;
    assert_eq!(stored, Claimed::Completed(answer("b")));
}

/// The contract's tests show how an expired claim is taken over.
#[tokio::test]
async fn an_expired_claim_that_no_other_request_took_over_can_be_completed() {
    let (fixture, clock) = Fixture::frozen().await;
    let slow = fresh();
    fixture.claim_key(&slow).await;
    clock.advance(TimeDelta::hours(1)).await;
    fixture.complete(&slow, "slow").await;
}

#[tokio::test]
async fn a_repeat_waits_briefly_for_a_completion_that_is_not_committed() {
    let fixture = Fixture::new().await;
    let first = fresh();
    fixture.claim_key(&first).await;
    let tx = fixture.begin().await;
    tx.complete(&first, &answer("a")).await.unwrap();
    let repeat = again(&first);
    let began = Instant::now();
    assert_eq!(fixture.claim_key(&repeat).await, Claimed::InProgress);
    assert_eq!(fixture.claim_key(&other(&first)).await, Claimed::Reused);
    let took = began.elapsed().as_millis();
    assert!((250..10_000).contains(&took), "{took} ms");
    let (mut claimed, committed) = join!(fixture.claim_key(&repeat), tx.commit());
    committed.unwrap();
    if claimed == Claimed::InProgress {
        // The commit took longer than the wait.
        claimed = fixture.claim_key(&repeat).await;
    }
    assert_eq!(claimed, Claimed::Completed(answer("a")));
}

#[tokio::test]
async fn a_stored_response_is_sealed_for_its_own_row() {
    let fixture = Fixture::new().await;
    let (one, other) = (fresh(), fresh());
    for claim in [&one, &other] {
        fixture.claim_key(claim).await;
        fixture.complete(claim, "secret").await;
    }
    let swap = format!(
        "update idempotency t set body = o.body from idempotency o where t.seller_id = '{}' and o.seller_id = '{}'",
        one.space.uuid(),
        other.space.uuid()
    );
    fixture.tamper(&swap).await;
    let rows = fixture
        .rows_of("idempotency where position('remembered-body|'::bytea in body) = 1")
        .await;
    assert_eq!(rows, 2);
    let claims = fixture.database.claims();
    let error = claims.claim(&again(&one), LEASE).await.unwrap_err();
    assert!(error.to_string().contains("idempotency["), "{error}");
    let claimed = fixture.claim_key(&again(&other)).await;
    assert_eq!(claimed, Claimed::Completed(answer("secret")));

    let settings = crate::support::settings(fixture.test_database.url(), 1);
    let bare = adapter_postgres::Database::new(settings).unwrap();
    let first = fresh();
    fixture.claim_key(&first).await;
    let tx = bare.units().begin(&LockSet::default()).await.unwrap();
    assert!(tx.complete(&first, &answer("a")).await.is_err());
}

#[tokio::test]
async fn the_outcome_of_a_lost_commit_waits_for_its_backend() {
    let fixture = Fixture::new().await;
    let parties = Parties::new(&fixture).await;
    let claims = fixture.database.claims();
    for commits in [true, false] {
        let (first, code) = (fresh(), parties.code(&fixture).await);
        fixture.claim_key(&first).await;
        let (tx, reader) = (fixture.begin().await, fixture.begin().await);
        let pair = parties.exchange(&*tx, code).await.unwrap().unwrap();
        tx.complete(&first, &answer("a")).await.unwrap();
        let has_pair = async {
            reader.lock_family(code.family).await.unwrap();
            reader.access_token(pair.access).await.unwrap().is_some()
        };
        let (outcome, has_pair, ()) = join!(
            claims.outcome(&first),
            has_pair,
            fixture.end_once_it_blocks_another(tx, commits)
        );
        assert_eq!(has_pair, commits);
        assert_eq!(outcome.unwrap(), commits.then(|| answer("a")));
        let of_another = claims.outcome(&again(&first)).await.unwrap();
        assert_eq!(of_another, None, "of its own fence alone");
    }
    let first = fresh();
    fixture.claim_key(&first).await;
    let tx = fixture.begin().await;
    tx.complete(&first, &answer("a")).await.unwrap();
    let killed = async {
        fixture.wait_for_blocked_session().await;
        let end = "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() \
            and application_name = 'seller-api' and state = 'idle in transaction'";
        fixture.tamper(end).await;
    };
    let (outcome, ()) = join!(claims.outcome(&first), killed);
    assert_eq!(outcome.unwrap(), None);
    assert!(tx.commit().await.is_err());
}

/// Changes of offers are saved in batches, so one lost answer leaves many outcomes unknown at once.
#[tokio::test]
async fn the_outcomes_of_a_lost_batch_are_looked_up_on_one_connection() {
    let fixture = Fixture::new().await;
    let batch: Vec<_> = (0..24)
        .map(|n| claim(id().into(), &format!("k-{n}"), "a"))
        .collect();
    for first in &batch {
        fixture.claim_key(first).await;
    }
    let mut lost = fixture.test_database.connect().await;
    let lost = lost.transaction().await.unwrap();
    lost.execute("select from idempotency for update", &[])
        .await
        .unwrap();
    let claims = fixture.database.claims();
    let outcomes = join_all(batch.iter().map(|first| claims.outcome(first)));
    let ending = async {
        fixture.wait_for_blocked_session().await;
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(700) {
            assert!(fixture.count(lock_waits()).await <= 1);
        }
        lost.rollback().await.unwrap();
    };
    let (outcomes, ()) = join!(outcomes, ending);
    assert!(
        outcomes.iter().all(|outcome| matches!(outcome, Ok(None))),
        "{outcomes:?}"
    );
}
