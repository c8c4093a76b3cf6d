//! Reads that may be slow, apart from all others: connections of their own, and a statement timeout.

use std::sync::Arc;

use diesel_async::{AsyncPgConnection, methods::LoadQuery};
use kernel::{SellerId, StoreError};
use tokio::{select, sync::oneshot};
use usecases::LockSet;

use crate::{
    ANSWER_TIMEOUT,
    connection::error::with_timeout,
    statement::{Prepared, Returns},
    unit_of_work::{PLAN_BY_VALUES, PgUnitOfWork, changing_any},
};

/// Connections of a process for slow reads.
pub(crate) const CONNECTIONS: usize = 4;

/// Runs slow reads. The units MUST have turns of their own, with a share of one, so that no seller takes the
/// connections from the others.
pub(crate) struct SlowReads(pub(crate) PgUnitOfWork);

impl SlowReads {
    /// All rows of a statement, planned for its values. It has a transaction, so that PostgreSQL ends it at
    /// the statement timeout even if its caller has gone; until then the seller's turn lasts.
    pub(crate) async fn rows<S>(
        self: &Arc<Self>,
        seller: SellerId,
        statement: S,
    ) -> Result<Vec<S::Row>, StoreError>
    where
        S: Returns + Send + 'static,
        Prepared<S>: for<'t> LoadQuery<'t, &'t AsyncPgConnection, S::Row>,
    {
        let (reads, locks) = (Arc::clone(self), LockSet::of_seller(seller));
        let (mut reply, rows) = oneshot::channel();
        drop(tokio::spawn(async move {
            let tx = select! {
                () = reply.closed() => return,
                tx = reads.0.open_transaction(&locks) => tx,
            };
            let read = async {
                let tx = tx?;
                tx.write_later(changing_any(PLAN_BY_VALUES.bind(())));
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
}
