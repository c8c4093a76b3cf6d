//! The unit of work: everything that a request or a worker changes in one transaction.

use std::any::Any;
use std::collections::HashSet;
use std::time::Duration;

use accounts::AccountStore;
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;
use kernel::{Claim, OfferId, Reader, SellerId, StoreError, StoredResponse, TransactionError};
use oauth::{ApplicationStore, ClientId, FamilyId, GrantStore};
use offers::OfferStore;
use orders::{OrderRef, OrderStore};
use uuid::Uuid;
use webhooks::SubscriptionStore;

use crate::Announcement;

/// Retries of a transaction after a conflict.
pub const MAX_RETRIES: usize = 3;

/// A row that much work may want to lock at the same time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Row {
    Offer(SellerId, OfferId),
    /// By id or by number, whichever the work has. So an order has two queues, and at most one transaction
    /// waits for another in the database.
    Order(OrderRef),
    /// One seller's part of an order, whether or not it exists: a seller never waits for rows that another
    /// one names.
    Part(SellerId, OrderRef),
    /// The same, while a carrier is asked about its parcel: no transaction locks it.
    Report(SellerId, OrderRef),
    Family(FamilyId),
    /// Its subscriptions are added one after another.
    Application(ClientId),
}

/// What work waits for before its transaction begins, without a connection: the rows that it will lock, and a share of
/// the connections.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LockSet {
    pub rows: HashSet<Row>,
    /// The sellers whose share of the connections the transaction uses.
    pub sellers: HashSet<SellerId>,
    /// The application that asks for the work: it has a share at all its sellers together, and half of each seller's.
    pub application: Option<ClientId>,
    /// Whether the marketplace does the work: it has shares of its own, so that its orders do not wait behind
    /// what their sellers send.
    pub for_marketplace: bool,
}

impl LockSet {
    /// A transaction of one seller.
    pub fn of_seller(seller: SellerId) -> Self {
        Self {
            sellers: HashSet::from([seller]),
            ..Self::default()
        }
    }

    /// A read of a seller's data, by an application or without one.
    pub fn of_reader(reader: Reader) -> Self {
        Self {
            application: reader.application.map(ClientId::from),
            ..Self::of_seller(reader.seller)
        }
    }

    /// A transaction or look-up for somebody who is not signed in. All of them together have the share of a
    /// seller, under an id that none has.
    pub fn of_strangers() -> Self {
        Self::of_seller(Uuid::nil().into())
    }

    /// The marketplace's work at one seller.
    pub fn of_marketplace(seller: SellerId) -> Self {
        Self {
            for_marketplace: true,
            ..Self::of_seller(seller)
        }
    }

    /// Reads by the back office: of sellers, applications, whole orders. All together have one share: the marketplace's,
    /// under the strangers' id.
    pub fn of_readers() -> Self {
        Self::of_marketplace(Uuid::nil().into())
    }

    /// Reads of the change feed, which may be many that wait. Their share is under another id that no seller has.
    pub fn of_feed() -> Self {
        Self::of_marketplace(Uuid::from_u128(1).into())
    }

    /// The same as the marketplace's work. What names no seller has one share in common, so that it does not take the
    /// connections of the sellers.
    #[must_use]
    pub fn by_marketplace(mut self) -> Self {
        self.for_marketplace = true;
        if self.sellers.is_empty() {
            self.sellers.insert(Uuid::max().into());
        }
        self
    }

    /// Adds the shares of an application at a seller.
    #[must_use]
    pub fn by_application(mut self, seller: SellerId, client_id: ClientId) -> Self {
        self.sellers.insert(seller);
        self.application = Some(client_id);
        self
    }

    pub fn of_row(row: Row) -> Self {
        Self::default().and(row)
    }

    /// Offers, and their sellers.
    pub fn of_offers(offers: impl IntoIterator<Item = (SellerId, OfferId)>) -> Self {
        let mut locks = Self::default();
        for (seller, offer) in offers {
            locks.sellers.insert(seller);
            locks.rows.insert(Row::Offer(seller, offer));
        }
        locks
    }

    /// Whether it waits only for requests of the same seller or application.
    pub fn is_own(&self) -> bool {
        self.rows.is_empty() && !self.for_marketplace && *self != Self::of_strangers()
    }

    #[must_use]
    pub fn and(mut self, row: Row) -> Self {
        self.rows.insert(row);
        self
    }
}

/// The right to lock rows before others of this process; ends when it is dropped.
pub struct Turn(#[expect(dead_code, reason = "it is held until the drop")] Box<dyn Any + Send + Sync>);

impl Turn {
    pub fn new(held: impl Any + Send + Sync) -> Self {
        Self(Box::new(held))
    }
}

/// Opens transactions.
///
/// An adapter MUST open them READ COMMITTED on the primary and bound their length (10 s at most). Work that
/// waits for its turn MUST NOT hold a connection. The transactions of one seller, or of one application, MUST NOT use up the
/// connections of the others. From a pool of 8 on, one application MUST NOT use up a seller's.
#[cfg_attr(any(test, feature = "mocks"), mockall::automock)]
#[async_trait]
pub trait UnitOfWork: Send + Sync {
    /// Waits for a turn at everything that the work will lock, then begins a transaction. The turn ends with
    /// the transaction. Fails at once if too many wait for one of the rows.
    async fn begin(&self, locks: &LockSet) -> Result<Box<dyn Transaction>, StoreError> {
        self.begin_within(locks, Duration::MAX).await
    }

    /// The same for a caller who has only this long to wait for the turn. An adapter MUST name the share or row that was not
    /// free until then ([`kernel::ShareTaken`], [`kernel::RowTaken`]): given up, the wait would look like a failure of the store.
    async fn begin_within(
        &self,
        locks: &LockSet,
        limit: Duration,
    ) -> Result<Box<dyn Transaction>, StoreError>;

    /// Waits, at most this long, for a turn at rows that change without a transaction.
    async fn turn(&self, locks: &LockSet, limit: Duration) -> Result<Turn, StoreError>;
}

/// An open transaction: one store port per kind of state. A use case takes the stores that it needs, never
/// this trait. Dropping it without a commit changes nothing.
#[async_trait]
pub trait Transaction:
    OfferStore<Announcement>
    + OrderStore<Announcement>
    + ApplicationStore<Announcement>
    + GrantStore
    + AccountStore
    + SubscriptionStore
{
    /// The database's clock at the start of the transaction: the `now` of everything in it.
    fn now(&self) -> DateTime<Utc>;

    /// Stores the response under the claimed idempotency key, as the last statement before the commit. If the
    /// claim has been lost, an adapter MUST fail with a conflict on [`kernel::LOST_CLAIM`], so that the
    /// transaction is rolled back.
    async fn complete(&self, claim: &Claim, answer: &StoredResponse) -> Result<(), StoreError>;

    /// Makes the changes durable. An adapter MUST distinguish a transaction that certainly changed nothing
    /// from one whose outcome is unknown, and MUST treat a COMMIT answered with ROLLBACK as a failure.
    async fn commit(self: Box<Self>) -> Result<(), TransactionError>;
}

/// An error of work in a transaction, which may be a transaction conflict.
pub trait Retryable: From<TransactionError> {
    /// True if retrying the same work from its start may succeed.
    fn is_retryable(&self) -> bool;
}

/// Runs `work` in a transaction that takes these locks, and commits it. After a conflict, also at the commit,
/// it is retried from its start, at most three times, so it must not have effects outside of the transaction.
///
/// The future is boxed, and borrows its input through an argument: the compiler cannot prove that the future
/// of an async closure over `&dyn Transaction` is `Send`, and a spawned task requires `Send`.
pub async fn transact<I: ?Sized, T, E: Retryable>(
    units: &dyn UnitOfWork,
    locks: &LockSet,
    input: &I,
    work: impl for<'t> Fn(&'t dyn Transaction, &'t I) -> BoxFuture<'t, Result<T, E>> + Sync,
) -> Result<T, E> {
    retry(|| async {
        let transaction = units.begin(locks).await.map_err(TransactionError::from)?;
        let value = work(transaction.as_ref(), input).await?;
        transaction.commit().await?;
        Ok(value)
    })
    .await
}

/// Retries work from its start after a transaction conflict, at most three times.
pub async fn retry<T, E: Retryable, F: Future<Output = Result<T, E>>>(
    attempt: impl Fn() -> F,
) -> Result<T, E> {
    let mut retries = 0;
    loop {
        match attempt().await {
            Err(error) if error.is_retryable() && retries < MAX_RETRIES => retries += 1,
            outcome => return outcome,
        }
    }
}

impl Retryable for TransactionError {
    fn is_retryable(&self) -> bool {
        matches!(self, Self::Store(StoreError::Retryable(_)))
    }
}

#[cfg(test)]
mod tests;
