//! Writes that nobody reads back before the transaction ends: they wait, and then go together.
//!
//! A round trip costs more than a small statement, so what a transaction writes is not sent at once but with its next read,
//! or at its end, pipelined. What is told to others is kept apart and goes last: lanes of deliveries are locked after
//! everything else, in one order by all transactions, and for the shortest time.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use async_trait::async_trait;
use diesel_async::AsyncPgConnection;
use futures_util::future::join_all;
use kernel::StoreError;

use crate::outbox::Outbox;

/// A statement of which only its success matters.
#[async_trait]
pub(crate) trait Write: Send + Sync {
    /// Sends the statement and checks what it did.
    async fn send(&self, connection: &AsyncPgConnection) -> Result<(), StoreError>;
}

/// What a transaction has still to send.
#[derive(Default)]
pub(crate) struct Pending {
    writes: Mutex<Vec<Box<dyn Write>>>,
    outbox: Mutex<Outbox>,
    woken: Arc<AtomicBool>,
}

impl Pending {
    pub(crate) fn add(&self, write: Box<dyn Write>) {
        lock(&self.writes).push(write);
    }

    /// What has happened, and is told at the end.
    pub(crate) fn outbox(&self) -> MutexGuard<'_, Outbox> {
        lock(&self.outbox)
    }

    /// What goes before the next read.
    pub(crate) fn writes(&self) -> Vec<Box<dyn Write>> {
        std::mem::take(&mut *lock(&self.writes))
    }

    /// All that is left at the end.
    pub(crate) fn everything(&self) -> Vec<Box<dyn Write>> {
        let mut writes = self.writes();
        writes.extend(std::mem::take(&mut *self.outbox()).into_writes(&self.woken));
        writes
    }

    /// Notes that something was sent that has woken a lane of deliveries.
    pub(crate) fn wakes_lane(&self) {
        self.woken.store(true, Ordering::Relaxed);
    }

    /// Whether anything that was sent has woken a lane of deliveries.
    pub(crate) fn has_woken(&self) -> bool {
        self.woken.load(Ordering::Relaxed)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends writes one after another without waiting in between. The first failure is the cause of those after it.
pub(crate) async fn send_all(
    writes: &[Box<dyn Write>],
    connection: &AsyncPgConnection,
) -> Result<(), StoreError> {
    let answers = join_all(writes.iter().map(|write| write.send(connection))).await;
    answers.into_iter().collect()
}

/// Holds a statement to the number of rows that it had to change.
pub(crate) fn expect_rows(table: &str, changed: usize, expected: usize) -> Result<(), StoreError> {
    if changed == expected {
        return Ok(());
    }
    Err(StoreError::unexpected(format!(
        "{changed} rows of {table} were saved instead of {expected}"
    )))
}
