//! When a transaction is repeated, and when it must not be.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::test_support::deadlock;
use crate::{Failure, MockTransaction};

/// Transactions whose commits end as listed, last first; counts the begun ones.
#[derive(Default)]
struct Units {
    commits: Mutex<Vec<Result<(), TransactionError>>>,
    begun: AtomicUsize,
}

#[async_trait]
impl UnitOfWork for Units {
    async fn begin_within(&self, _: &LockSet, _: Duration) -> Result<Box<dyn Transaction>, StoreError> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        let mut tx = MockTransaction::new();
        if let Some(end) = self.commits.lock().unwrap().pop() {
            tx.expect_commit().return_once(move || end);
        }
        Ok(Box::new(tx))
    }

    async fn turn(&self, _: &LockSet, _: Duration) -> Result<Turn, StoreError> {
        Ok(Turn::new(()))
    }
}

type Outcome = Result<u8, Failure<&'static str>>;

#[tokio::test]
async fn lost_transactions_are_repeated_three_times_and_unknown_outcomes_never() {
    let done: fn() -> Outcome = || Ok(1);
    let rolled_back = || Err(TransactionError::Store(deadlock()));
    let unavailable = || Err(TransactionError::Store(StoreError::Unavailable("away".into())));
    let unknown = || Err(TransactionError::Unknown(deadlock()));
    let lost = r#"Store(Store(Retryable(SharedError("deadlock"))))"#;
    for (commits, work, begun, expected) in [
        (vec![Ok(()), rolled_back()], done, 2, ""),
        ((0..4).map(|_| rolled_back()).collect(), done, 4, lost),
        (Vec::new(), || Err(deadlock().into()), 4, lost),
        (
            vec![unavailable()],
            done,
            1,
            r#"Store(Store(Unavailable(SharedError("away"))))"#,
        ),
        (
            vec![unknown()],
            done,
            1,
            r#"Store(Unknown(Retryable(SharedError("deadlock"))))"#,
        ),
        (Vec::new(), || Err(Failure::Refused("no")), 1, r#"Refused("no")"#),
    ] {
        let units = Units {
            commits: Mutex::new(commits),
            ..Units::default()
        };
        let outcome = transact(&units, &LockSet::default(), &work, |_, work| {
            Box::pin(async move { work() })
        })
        .await;
        let error = outcome.err().map(|error| format!("{error:?}"));
        assert_eq!(error.unwrap_or_default(), expected);
        assert_eq!(units.begun.into_inner(), begun, "{expected}");
    }
}

#[test]
fn what_the_marketplace_writes_has_a_share_also_without_a_seller() {
    let seller = Uuid::from_u128(1).into();
    let at_seller = LockSet::of_seller(seller).by_marketplace();
    assert_eq!(at_seller, LockSet::of_marketplace(seller));
    let elsewhere = LockSet::default().by_marketplace();
    assert!(elsewhere.sellers.len() == 1 && elsewhere.sellers != LockSet::of_readers().sellers);
}
