//! The unit of work: everything that a request or a worker changes in one transaction.

use accounts::AccountStore;
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;
use kernel::{Claim, StoreError, StoredResponse, TransactionError};
use oauth::{ApplicationStore, GrantStore};
use offers::OfferStore;
use orders::OrderStore;
use webhooks::SubscriptionStore;

/// Attempts in addition to the first one for a transaction that lost against another one.
pub const MAX_RETRIES: usize = 3;

/// Opens transactions.
///
/// An adapter MUST open them READ COMMITTED on the primary and bound their length (10 s at most).
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait UnitOfWork: Send + Sync {
    /// Begins a transaction.
    async fn begin(&self) -> Result<Box<dyn Transaction>, StoreError>;
}

/// An open transaction: one store port per kind of state. A use case takes the stores that it needs, never this trait.
/// Dropping it without a commit changes nothing.
#[async_trait]
pub trait Transaction:
    OfferStore + OrderStore + ApplicationStore + GrantStore + AccountStore + SubscriptionStore
{
    /// The database's clock at the start of the transaction: the `now` of everything in it.
    fn now(&self) -> DateTime<Utc>;

    /// Stores the response under the claimed idempotency key, as the last statement before the commit. If the claim has been lost, an
    /// adapter MUST fail with a conflict on [`kernel::LOST_CLAIM`], so that the transaction is rolled back.
    async fn complete(&self, claim: &Claim, answer: &StoredResponse) -> Result<(), StoreError>;

    /// Makes the changes durable. An adapter MUST distinguish a transaction that certainly changed nothing from one
    /// whose outcome is unknown, and MUST treat a COMMIT answered with ROLLBACK as a failure.
    async fn commit(self: Box<Self>) -> Result<(), TransactionError>;
}

/// An error of work in a transaction. It may mean that the transaction was rolled back in favour of another one.
pub trait Repeatable: From<TransactionError> {
    /// True if repeating the same work from its start may succeed.
    fn is_repeatable(&self) -> bool;
}

/// Runs `work` in a transaction and commits it. Work that lost against another transaction before the commit is
/// repeated from its start, at most three times, so it must not have effects outside of the transaction.
///
/// The future is boxed, and borrows its input through an argument: the compiler cannot prove that the future of an async
/// closure over `&dyn Transaction` is `Send`, and a spawned task requires `Send`.
pub async fn transact<I: ?Sized, T, E: Repeatable>(
    units: &dyn UnitOfWork,
    input: &I,
    work: impl for<'t> Fn(&'t dyn Transaction, &'t I) -> BoxFuture<'t, Result<T, E>> + Sync,
) -> Result<T, E> {
    repeat(|| async {
        let transaction = units.begin().await.map_err(TransactionError::from)?;
        let value = work(transaction.as_ref(), input).await?;
        transaction.commit().await?;
        Ok(value)
    })
    .await
}

/// Repeats work from its start, at most three times, if it lost against other work.
pub async fn repeat<T, E: Repeatable, F: Future<Output = Result<T, E>>>(
    attempt: impl Fn() -> F,
) -> Result<T, E> {
    let mut repeats = 0;
    loop {
        match attempt().await {
            Err(error) if error.is_repeatable() && repeats < MAX_RETRIES => repeats += 1,
            outcome => return outcome,
        }
    }
}

impl Repeatable for TransactionError {
    fn is_repeatable(&self) -> bool {
        matches!(self, Self::Store(StoreError::Retryable(_)))
    }
}

#[cfg(test)]
mod tests;
