//! The unit of work: everything that a request or a worker changes, in one transaction.

use accounts::AccountStore;
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use kernel::{Claim, CommitError, Remembered, StoreError};
use oauth::{ApplicationStore, GrantStore};
use offers::OfferStore;
use orders::OrderStore;
use webhooks::SubscriptionStore;

/// How often a transaction that lost against another one is done again.
const REPEATS: usize = 3;

/// Opens transactions.
///
/// An adapter MUST open them READ COMMITTED on the primary and bound their length (10 s at most).
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait UnitOfWork: Send + Sync {
    /// Begins a transaction.
    async fn begin(&self) -> Result<Box<dyn Transaction>, StoreError>;
}

/// An open transaction: one store for each thing that is changed. A use case takes those that it needs, and never this trait.
/// Dropped without commit, it changes nothing.
#[async_trait]
pub trait Transaction:
    OfferStore + OrderStore + ApplicationStore + GrantStore + AccountStore + SubscriptionStore
{
    /// The database's clock when the transaction began: the `now` of everything done in it.
    fn now(&self) -> DateTime<Utc>;

    /// Remembers the answer under the claim of its key; the last thing before the commit. An adapter MUST fail with a conflict
    /// on [`kernel::LOST_CLAIM`], so that the transaction is rolled back, when the claim is not ours any more.
    async fn complete(&self, claim: &Claim, answer: &Remembered) -> Result<(), StoreError>;

    /// Makes the changes durable. An adapter MUST tell a transaction that surely changed nothing from one whose fate is
    /// unknown, and MUST treat a COMMIT that the server answered with ROLLBACK as a failure.
    async fn commit(self: Box<Self>) -> Result<(), CommitError>;
}

/// How a unit of work fails, apart from what the work itself refuses.
#[derive(Debug, thiserror::Error)]
pub enum UnitOfWorkError {
    /// Nothing was changed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It is unknown whether the change stands.
    #[error("the outcome of the transaction is unknown")]
    Unknown(#[source] StoreError),
}

/// An error of some work that may hide a lost transaction.
pub trait Repeatable: From<UnitOfWorkError> {
    /// True when the same work, done again from its start, may succeed.
    fn is_repeatable(&self) -> bool;

    /// True when nobody knows whether the change stands.
    fn is_unknown(&self) -> bool;
}

/// What is done in one transaction.
///
/// A trait and not a closure: the future of an async closure over a `&dyn Transaction` cannot be shown to be `Send`, which
/// a task of its own has to be.
#[async_trait]
pub trait Work: Send + Sync {
    /// What comes of it.
    type Done: Send;
    /// How it fails; may hide a lost transaction.
    type Error: Repeatable + Send;

    /// Does it. It may be done again from its start, so it must change nothing outside of the transaction.
    async fn run(&self, transaction: &dyn Transaction) -> Result<Self::Done, Self::Error>;
}

/// Runs `work` in a transaction and commits it. Work that lost against another transaction before the commit is done
/// again, up to three times.
pub async fn transact<W: Work>(units: &dyn UnitOfWork, work: &W) -> Result<W::Done, W::Error> {
    let mut repeats = 0;
    loop {
        let transaction = units.begin().await.map_err(UnitOfWorkError::from)?;
        match work.run(transaction.as_ref()).await {
            Ok(value) => match transaction.commit().await {
                Ok(()) => return Ok(value),
                Err(CommitError::RolledBack(StoreError::Retryable(_))) if repeats < REPEATS => repeats += 1,
                Err(CommitError::RolledBack(cause)) => return Err(UnitOfWorkError::Store(cause).into()),
                Err(CommitError::Unknown(cause)) => return Err(UnitOfWorkError::Unknown(cause).into()),
            },
            Err(error) if error.is_repeatable() && repeats < REPEATS => repeats += 1,
            Err(error) => return Err(error),
        }
    }
}

impl Repeatable for UnitOfWorkError {
    fn is_repeatable(&self) -> bool {
        matches!(self, Self::Store(StoreError::Retryable(_)))
    }

    fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown(_))
    }
}

#[cfg(test)]
mod tests;
