//! An open transaction and its ends.

use std::sync::{
    Mutex,
    atomic::{AtomicBool, Ordering},
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use kernel::{CommitError, StoreError};
use usecases::{Transaction, UnitOfWork};

use super::{
    Database, Flaw, Link, TxId,
    link::Fate,
    outbox::{Outbox, tell},
};
use crate::{Met, executor::lock};

/// A transaction: every port that changes something is implemented over it.
pub(crate) struct Tx {
    link: Link,
    id: TxId,
    now: DateTime<Utc>,
    /// A statement has failed, or was begun and is not over.
    failed: AtomicBool,
    outbox: Mutex<Outbox>,
    /// Nobody has to end it any more.
    ended: bool,
}

/// Why a transaction is of no more use.
#[derive(Debug, Clone, Copy, thiserror::Error)]
enum Broken {
    #[error("a statement of this transaction has failed")]
    Failed,
    #[error("the transaction lost against another one")]
    Lost,
    #[error("the answer to COMMIT was lost")]
    Silence,
    #[error("the connection was lost")]
    Disconnected,
}

#[async_trait]
impl UnitOfWork for Link {
    async fn begin(&self) -> Result<Box<dyn Transaction>, StoreError> {
        Ok(Box::new(self.open().await?))
    }
}

impl Link {
    /// A begin of whose answer nobody hears has opened a transaction all the same. The
    /// server ends it once it notices that the connection has gone.
    async fn open(&self) -> Result<Tx, StoreError> {
        let fate = self.fate();
        let (database, simulator) = (self.database.clone(), self.simulator().clone());
        let notices_within = self.notices_within().num_milliseconds();
        let begun = async move {
            let begun = (database.begin(), database.now());
            if fate == Fate::AnswerLost {
                simulator.pause(0, notices_within).await;
                database.end(begun.0, false);
            }
            Ok(begun)
        };
        let (id, now) = self.ask_with(fate, begun).await?;
        Ok(Tx {
            link: self.clone(),
            id,
            now,
            failed: AtomicBool::new(false),
            outbox: Mutex::default(),
            ended: false,
        })
    }
}

impl Tx {
    /// Has a statement carried out. One that fails ends the transaction.
    pub(super) async fn run<T, F>(
        &self,
        statement: impl FnOnce(Database, TxId) -> F + Send,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        if self.failed.swap(true, Ordering::Relaxed) {
            return Err(StoreError::unexpected(Broken::Failed));
        }
        let outcome = if self.link.goes_wrong() && self.link.simulator().happens(200) {
            self.link.database.end(self.id, false);
            self.link.simulator().count(Met::ThrownOut);
            Err(StoreError::Retryable(Broken::Lost.into()))
        } else {
            let (database, id) = (self.link.database.clone(), self.id);
            let work = statement(database.clone(), id);
            let carried_out = async move {
                if !database.is_open(id) {
                    return Err(StoreError::unexpected(Broken::Failed));
                }
                let outcome = work.await;
                if outcome.is_err() {
                    database.end(id, false);
                }
                outcome
            };
            self.link.ask(carried_out).await
        };
        self.failed.store(outcome.is_err(), Ordering::Relaxed);
        outcome
    }

    /// Notes what is told to others at the end.
    pub(super) fn tell(&self, note: impl FnOnce(&mut Outbox)) {
        note(&mut lock(&self.outbox));
    }

    /// Tells what has happened, which is a transaction's last step but for the answer that it remembers.
    pub(super) async fn tell_now(&self) -> Result<(), StoreError> {
        if self.link.database.has(Flaw::TellsAfterCommit) {
            return Ok(());
        }
        let news = std::mem::take(&mut *lock(&self.outbox));
        if news.is_empty() {
            return Ok(());
        }
        self.run(|database, tx| async move { tell(&database, tx, news).await })
            .await
    }

    async fn committed(&mut self) -> Result<(), CommitError> {
        let (database, id) = (self.link.database.clone(), self.id);
        let simulator = self.link.simulator().clone();
        let fate = self.link.fate();
        match fate {
            Fate::Answered | Fate::Slow => {
                let commit = async move {
                    if database.end(id, true) {
                        Ok(())
                    } else {
                        Err(StoreError::unexpected(Broken::Failed))
                    }
                };
                let committed = self.link.ask_with(fate, commit).await;
                committed.map_err(CommitError::RolledBack)
            }
            Fate::Refused => {
                database.end(id, false);
                simulator.count(Met::CommitRefused);
                let cause = if simulator.happens(500) {
                    StoreError::Retryable(Broken::Lost.into())
                } else {
                    StoreError::Unavailable(Broken::Disconnected.into())
                };
                Err(CommitError::RolledBack(cause))
            }
            Fate::RequestLost | Fate::AnswerLost => {
                // The server has it, and comes to it before it notices anything else.
                self.ended = true;
                let keep = fate == Fate::AnswerLost;
                self.link.leave(chrono::TimeDelta::seconds(9), async move {
                    if database.end(id, keep) {
                        let met = if keep { Met::CommitUnheard } else { Met::CommitLost };
                        database.simulator().count(met);
                    }
                });
                simulator.pause(0, 5_500).await;
                Err(CommitError::Unknown(StoreError::Unavailable(
                    Broken::Silence.into(),
                )))
            }
        }
    }
}

#[async_trait]
impl Transaction for Tx {
    fn now(&self) -> DateTime<Utc> {
        self.now
    }

    async fn commit(mut self: Box<Self>) -> Result<(), CommitError> {
        self.tell_now().await.map_err(CommitError::RolledBack)?;
        if self.failed.load(Ordering::Relaxed) {
            return Err(CommitError::RolledBack(StoreError::unexpected(Broken::Failed)));
        }
        self.committed().await?;
        self.ended = true;
        let late = std::mem::take(&mut *lock(&self.outbox));
        if !late.is_empty() {
            let database = self.link.database.clone();
            let told = self
                .link
                .ask(async move { database.alone(|tx| tell(&database, tx, late)).await });
            drop(told.await);
        }
        Ok(())
    }
}

impl Drop for Tx {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        let (database, id) = (self.link.database.clone(), self.id);
        if database.simulator().is_killing() && database.is_open(id) {
            database.simulator().count(Met::DiedInTransaction);
        }
        self.link.leave(self.link.notices_within(), async move {
            database.end(id, false);
        });
    }
}
