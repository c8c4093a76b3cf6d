//! When a transaction is repeated, and when it must not be.

use std::sync::{Arc, Mutex};

use super::*;
use crate::{Failure, MockTransaction, test_support::now};

/// Transactions whose commits end as listed, last first; counts the begun ones.
struct Units {
    commits: Mutex<Vec<Result<(), CommitError>>>,
    begun: Arc<Mutex<usize>>,
}

#[async_trait]
impl UnitOfWork for Units {
    async fn begin(&self) -> Result<Box<dyn Transaction>, StoreError> {
        *self.begun.lock().unwrap() += 1;
        let end = self.commits.lock().unwrap().pop();
        let mut tx = MockTransaction::new();
        tx.expect_now().returning(now);
        if let Some(end) = end {
            let end = Mutex::new(Some(end));
            tx.expect_commit()
                .return_once(move || end.lock().unwrap().take().unwrap());
        }
        Ok(Box::new(tx))
    }
}

fn lost() -> StoreError {
    StoreError::Retryable("deadlock".into())
}

/// Work that ends with this result each time.
struct Ends<F>(F);

#[async_trait]
impl<F: Fn() -> Result<u8, Failure<&'static str>> + Send + Sync> Work for Ends<F> {
    type Done = u8;
    type Error = Failure<&'static str>;

    async fn run(&self, _: &dyn Transaction) -> Result<u8, Self::Error> {
        self.0()
    }
}

async fn run(
    commits: Vec<Result<(), CommitError>>,
    end: impl Fn() -> Result<u8, Failure<&'static str>> + Send + Sync,
) -> (Result<u8, Failure<&'static str>>, usize) {
    let begun = Arc::new(Mutex::new(0));
    let units = Units {
        commits: Mutex::new(commits),
        begun: Arc::clone(&begun),
    };
    let result = transact(&units, &Ends(end)).await;
    let begun = *begun.lock().unwrap();
    (result, begun)
}

#[tokio::test]
async fn a_transaction_that_lost_is_done_again() {
    let commits = vec![Ok(()), Err(CommitError::RolledBack(lost()))];
    let (result, begun) = run(commits, || Ok(1)).await;
    assert!(matches!((result, begun), (Ok(1), 2)));
}

#[tokio::test]
async fn it_gives_up_after_three_repeats() {
    let (result, begun) = run(Vec::new(), || Err(lost().into())).await;
    assert!(matches!(
        result,
        Err(Failure::Store(UnitOfWorkError::Store(StoreError::Retryable(_))))
    ));
    assert_eq!(begun, 4);
}

#[tokio::test]
async fn a_commit_of_unknown_fate_is_never_repeated() {
    let (result, begun) = run(vec![Err(CommitError::Unknown(lost()))], || Ok(1)).await;
    assert!(matches!(result, Err(Failure::Store(UnitOfWorkError::Unknown(_)))));
    assert_eq!(begun, 1);
}

#[tokio::test]
async fn a_refusal_commits_nothing() {
    let (result, begun) = run(Vec::new(), || Err(Failure::Refused("no"))).await;
    assert!(matches!((result, begun), (Err(Failure::Refused("no")), 1)));
}
