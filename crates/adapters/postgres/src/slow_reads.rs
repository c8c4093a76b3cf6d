//! Reads that may be slow, apart from all others: connections of their own, and a statement timeout.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use diesel_async::{AsyncPgConnection, methods::LoadQuery};
use kernel::{SellerId, StoreError};
use tokio::sync::oneshot;

use crate::{ANSWER_TIMEOUT, connection::error::with_timeout, sql::Returns, unit_of_work::PgUnitOfWork};

/// Connections of a process for slow reads.
pub(crate) const CONNECTIONS: usize = 4;

/// Runs slow reads: of a seller one at a time, so that no seller takes the connections from the others.
pub(crate) struct SlowReads {
    units: PgUnitOfWork,
    /// The sellers with a read under way or waiting.
    turns: Mutex<HashMap<SellerId, Weak<tokio::sync::Mutex<()>>>>,
}

impl SlowReads {
    pub(crate) fn new(units: PgUnitOfWork) -> Self {
        Self {
            units,
            turns: Mutex::default(),
        }
    }

    /// All rows of a statement. It has a transaction, so that PostgreSQL ends it at the statement timeout even if its caller has gone;
    /// until then the seller's turn lasts.
    pub(crate) async fn rows<S>(
        self: &Arc<Self>,
        seller: SellerId,
        statement: S,
    ) -> Result<Vec<S::Row>, StoreError>
    where
        S: Returns + Send + for<'t> LoadQuery<'t, &'t AsyncPgConnection, S::Row> + 'static,
    {
        let (reads, turn) = (Arc::clone(self), self.turn(seller));
        let (reply, rows) = oneshot::channel();
        drop(tokio::spawn(async move {
            let _turn = turn.lock().await;
            if reply.is_closed() {
                return;
            }
            let read = async {
                let tx = reads.units.open_transaction().await?;
                tx.rows(statement).await
            };
            drop(reply.send(read.await));
        }));
        let ended = || StoreError::Unavailable("the task of a slow read has ended".into());
        with_timeout(ANSWER_TIMEOUT, async {
            rows.await.unwrap_or_else(|_| Err(ended()))
        })
        .await
    }

    fn turn(&self, seller: SellerId) -> Arc<tokio::sync::Mutex<()>> {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turn) = turns.get(&seller).and_then(Weak::upgrade) {
            return turn;
        }
        turns.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::default();
        turns.insert(seller, Arc::downgrade(&turn));
        turn
    }
}
