//! Claims on idempotency keys.

use std::time::Duration;

use chrono::TimeDelta;
use futures_util::future::join_all;
use kernel::{Change, Claim, Claimed, CommitError, KeySpace, LOST_CLAIM, Remembered};

use super::fixture::{Fixture, begin, claim, id, offer, seller};

const LEASE: Duration = Duration::from_mins(1);

fn answer(body: &str) -> Remembered {
    Remembered {
        status: 201,
        body: body.as_bytes().to_vec(),
    }
}

fn space() -> KeySpace {
    KeySpace::Seller(id().into())
}

/// The same request again.
fn again(claim: &Claim) -> Claim {
    Claim {
        fence: id(),
        ..claim.clone()
    }
}

async fn taken(fixture: &Fixture, claim: &Claim) -> Claimed {
    fixture.claims().claim(claim, LEASE).await.unwrap()
}

async fn complete(fixture: &Fixture, claim: &Claim, answer: &Remembered) {
    let tx = begin(fixture).await;
    tx.complete(claim, answer).await.unwrap();
    tx.commit().await.unwrap();
}

/// A key is run once; meanwhile a repeat hears so, afterwards it gets the answer, and another request never does.
#[tokio::test]
async fn a_key_runs_once_and_is_then_answered_from_memory() {
    let fixture = &Fixture::new().await;
    let first = claim(space(), "k", "a");
    assert_eq!(taken(fixture, &first).await, Claimed::Run);
    assert_eq!(taken(fixture, &again(&first)).await, Claimed::InProgress);
    let other = claim(first.space, "k", "b");
    assert_eq!(taken(fixture, &other).await, Claimed::Reused);
    complete(fixture, &first, &answer("{}")).await;
    assert_eq!(
        taken(fixture, &again(&first)).await,
        Claimed::Completed(answer("{}"))
    );
    assert_eq!(taken(fixture, &again(&other)).await, Claimed::Reused);
}

/// The same key in other hands is another key.
#[tokio::test]
async fn keys_of_different_spaces_never_meet() {
    let fixture = &Fixture::new().await;
    for space in [space(), space(), KeySpace::Operator] {
        assert_eq!(taken(fixture, &claim(space, "k", "a")).await, Claimed::Run);
    }
}

/// A release is for one's own claim that is not completed.
#[tokio::test]
async fn who_released_leaves_nothing_and_who_completed_releases_nothing() {
    let fixture = &Fixture::new().await;
    let first = claim(space(), "k", "a");
    taken(fixture, &first).await;
    let second = claim(first.space, "k", "b");
    fixture.claims().release(&second).await.unwrap();
    assert_eq!(taken(fixture, &second).await, Claimed::Reused);
    fixture.claims().release(&first).await.unwrap();
    assert_eq!(taken(fixture, &second).await, Claimed::Run);
    complete(fixture, &second, &answer("b")).await;
    fixture.claims().release(&second).await.unwrap();
    assert_eq!(
        taken(fixture, &again(&second)).await,
        Claimed::Completed(answer("b"))
    );
}

/// Whoever comes after the end of a lease takes the key over; whoever had it completes nothing any more.
#[tokio::test]
async fn a_lease_that_has_run_out_counts_as_absent_and_completes_nothing() {
    let fixture = &Fixture::new().await;
    let first = claim(space(), "k", "a");
    let second = claim(first.space, "k", "b");
    taken(fixture, &first).await;
    fixture.advance(TimeDelta::milliseconds(59_999)).await;
    assert_eq!(taken(fixture, &second).await, Claimed::Reused);
    fixture.advance(TimeDelta::milliseconds(1)).await;
    assert_eq!(taken(fixture, &second).await, Claimed::Run);
    let late = begin(fixture)
        .await
        .complete(&first, &answer("a"))
        .await
        .unwrap_err();
    assert_eq!(late.conflict(), Some(LOST_CLAIM));
    // Nobody has taken this one over: its holder may be late.
    let slow = claim(space(), "slow", "a");
    taken(fixture, &slow).await;
    fixture.advance(TimeDelta::hours(1)).await;
    complete(fixture, &slow, &answer("slow")).await;
}

/// An answer is remembered for 24 hours, to the millisecond.
#[tokio::test]
async fn answers_are_remembered_for_a_day_from_completion() {
    let fixture = &Fixture::new().await;
    let first = claim(space(), "k", "a");
    taken(fixture, &first).await;
    fixture.advance(TimeDelta::seconds(50)).await;
    complete(fixture, &first, &answer("a")).await;
    fixture
        .advance(TimeDelta::hours(24) - TimeDelta::milliseconds(1))
        .await;
    assert_eq!(
        taken(fixture, &again(&first)).await,
        Claimed::Completed(answer("a"))
    );
    fixture.advance(TimeDelta::milliseconds(1)).await;
    assert_eq!(taken(fixture, &again(&first)).await, Claimed::Run);
}

/// The effect of a claim that was lost is undone; an answer whose transaction was undone is not remembered.
#[tokio::test]
async fn a_completion_stands_or_falls_with_its_effect() {
    let fixture = &Fixture::new().await;
    let seller = seller(fixture).await;
    let first = claim(space(), "k", "a");
    taken(fixture, &first).await;
    let tx = begin(fixture).await;
    tx.complete(&first, &answer("a")).await.unwrap();
    drop(tx);
    assert_eq!(fixture.claims().outcome(&first).await.unwrap(), None);
    fixture.claims().release(&first).await.unwrap();
    let tx = begin(fixture).await;
    let offer = offer(seller, 1, tx.now());
    tx.save_offers(seller, vec![Change::made(offer.clone(), Vec::new())])
        .await
        .unwrap();
    assert!(tx.complete(&first, &answer("a")).await.is_err());
    assert!(matches!(tx.commit().await, Err(CommitError::RolledBack(_))));
    let found = begin(fixture)
        .await
        .lock_offers(seller, &[offer.id])
        .await
        .unwrap();
    assert!(found.is_empty(), "the effect of a lost claim stands");
}

/// However many come at once, one runs.
#[tokio::test]
async fn of_many_at_once_exactly_one_runs() {
    let fixture = &Fixture::new().await;
    let first = claim(space(), "k", "a");
    let repeats: Vec<_> = (0..12).map(|_| again(&first)).collect();
    let all = join_all(repeats.iter().map(|repeat| taken(fixture, repeat))).await;
    let run = all.iter().filter(|claimed| **claimed == Claimed::Run).count();
    let waiting = all
        .iter()
        .filter(|claimed| **claimed == Claimed::InProgress)
        .count();
    assert_eq!((run, waiting), (1, 11), "{all:?}");
}

/// Whoever lost the answer to a COMMIT reads it in the row, and reads nobody else's.
#[tokio::test]
async fn the_row_tells_what_became_of_a_commit() {
    let fixture = &Fixture::new().await;
    let first = claim(space(), "k", "a");
    taken(fixture, &first).await;
    assert_eq!(fixture.claims().outcome(&first).await.unwrap(), None);
    complete(fixture, &first, &answer("a")).await;
    assert_eq!(fixture.claims().outcome(&first).await.unwrap(), Some(answer("a")));
    assert_eq!(fixture.claims().outcome(&again(&first)).await.unwrap(), None);
}
