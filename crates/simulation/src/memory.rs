//! A database in memory that keeps what PostgreSQL promises the ports: READ COMMITTED, locks on rows, transactions of which
//! all stands or nothing, and a server that finishes what it was asked for though nobody waits for the answer.

mod accounts;
mod applications;
mod claims;
mod due;
mod families;
mod fan_out;
mod feed;
mod flaw;
mod gate;
mod grants;
mod lanes;
mod link;
mod locks;
mod look;
mod offers;
mod orders;
mod outbox;
mod panel;
mod seeds;
mod settling;
mod standing;
mod subscriptions;
mod table;
mod tables;
mod tokens;
mod transaction;

use std::{
    collections::BTreeMap,
    future::poll_fn,
    sync::{Arc, Mutex},
    task::Poll,
};

use chrono::{DateTime, TimeDelta, Utc};
use kernel::StoreError;

pub use flaw::Flaw;
pub use gate::Admittance;
pub use link::{Link, Weather};
pub(crate) use tables::{DeliveryRow, SubscriptionRow};

use crate::{
    Met,
    executor::{Simulator, lock},
};
use locks::{Locks, Row, Strength};
use tables::Tables;

/// A transaction.
pub(crate) type TxId = u64;

/// No transaction: it sees what is committed.
pub(crate) const NOBODY: TxId = 0;

/// How long a transaction waits for a row.
const LOCK_TIMEOUT: TimeDelta = TimeDelta::seconds(2);

/// What is stored, and who is at it.
#[derive(Default)]
pub(crate) struct Stored {
    pub(crate) tables: Tables,
    locks: Locks,
    /// Open transactions, with the number under which they write, once they do.
    open: BTreeMap<TxId, Option<u64>>,
    written: u64,
}

impl Stored {
    /// The number under which a transaction writes. Numbers rise in the order in which transactions begin to write.
    fn writes_as(&mut self, tx: TxId) -> u64 {
        if let Some(Some(number)) = self.open.get(&tx) {
            return *number;
        }
        self.written += 1;
        self.open.insert(tx, Some(self.written));
        self.written
    }

    /// The lowest number that is still under way: everything below it is decided.
    fn horizon(&self) -> u64 {
        let under_way = self.open.values().flatten().min();
        under_way.copied().unwrap_or(self.written.saturating_add(1))
    }
}

/// The server of the database. Clones are the same one.
#[derive(Clone)]
pub struct Database {
    stored: Arc<Mutex<Stored>>,
    simulator: Simulator,
    flaw: Option<Flaw>,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database")
            .field("flaw", &self.flaw)
            .finish_non_exhaustive()
    }
}

/// What a transaction waited for in vain.
#[derive(Debug, Clone, Copy, thiserror::Error)]
enum Lost {
    #[error("the transaction would have waited for itself")]
    Deadlock,
    #[error("a lock was waited for too long")]
    LockTimeout,
    #[error("the transaction is over")]
    Over,
}

impl Database {
    /// An empty one.
    pub fn new(simulator: &Simulator) -> Self {
        Self {
            stored: Arc::default(),
            simulator: simulator.clone(),
            flaw: None,
        }
    }

    /// The same with a flaw that a simulation has to notice.
    #[must_use]
    pub fn flawed(self, flaw: Option<Flaw>) -> Self {
        Self { flaw, ..self }
    }

    pub(crate) fn has(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }

    pub(crate) const fn simulator(&self) -> &Simulator {
        &self.simulator
    }

    /// The database's clock.
    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.simulator.now()
    }

    /// Looks into what is stored, or changes it, in one instant.
    pub(crate) fn at_once<T>(&self, work: impl FnOnce(&mut Stored) -> T) -> T {
        work(&mut lock(&self.stored))
    }

    pub(crate) fn begin(&self) -> TxId {
        let tx = self.simulator.number();
        self.at_once(|stored| stored.open.insert(tx, None));
        tx
    }

    pub(crate) fn is_open(&self, tx: TxId) -> bool {
        self.at_once(|stored| stored.open.contains_key(&tx))
    }

    /// The transaction ends; false where it had ended.
    pub(crate) fn end(&self, tx: TxId, keep: bool) -> bool {
        let waiting = self.at_once(|stored| {
            stored.open.remove(&tx)?;
            stored.tables.end(tx, keep);
            Some(stored.locks.end(tx))
        });
        let Some(waiting) = waiting else { return false };
        for waker in waiting {
            waker.wake();
        }
        true
    }

    /// A statement that is its own transaction.
    pub(crate) async fn alone<T, F>(&self, statement: impl FnOnce(TxId) -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let tx = self.begin();
        let outcome = statement(tx).await;
        self.end(tx, outcome.is_ok());
        outcome
    }

    /// Locks a row, and waits for whoever holds it.
    pub(crate) async fn lock(&self, tx: TxId, row: Row, strength: Strength) -> Result<(), StoreError> {
        if self.lock_within(tx, row, strength, LOCK_TIMEOUT).await? {
            Ok(())
        } else {
            self.simulator.count(Met::WaitedTooLong);
            Err(StoreError::Unavailable(Lost::LockTimeout.into()))
        }
    }

    /// Locks a row, and waits for whoever holds it no longer than so; false where that was not enough.
    pub(crate) async fn lock_within(
        &self,
        tx: TxId,
        row: Row,
        strength: Strength,
        patience: TimeDelta,
    ) -> Result<bool, StoreError> {
        if self.try_lock(tx, &row, strength) {
            return Ok(true);
        }
        self.simulator.count(Met::WaitedForRow);
        let taken = poll_fn(|context| {
            self.at_once(|stored| {
                if !stored.open.contains_key(&tx) {
                    return Poll::Ready(Err(StoreError::unexpected(Lost::Over)));
                }
                if stored.locks.try_take(tx, &row, strength) {
                    stored.writes_as(tx);
                    return Poll::Ready(Ok(()));
                }
                if stored.locks.wait(tx, &row, strength, context.waker().clone()) {
                    Poll::Pending
                } else {
                    Poll::Ready(Err(StoreError::Retryable(Lost::Deadlock.into())))
                }
            })
        });
        let Some(taken) = self.simulator.within(patience, taken).await else {
            self.at_once(|stored| stored.locks.give_up(tx));
            return Ok(false);
        };
        taken.map(|()| true)
    }

    /// Locks a row where nobody is in the way.
    pub(crate) fn try_lock(&self, tx: TxId, row: &Row, strength: Strength) -> bool {
        self.at_once(|stored| {
            let taken = stored.open.contains_key(&tx) && stored.locks.try_take(tx, row, strength);
            if taken {
                stored.writes_as(tx);
            }
            taken
        })
    }
}
