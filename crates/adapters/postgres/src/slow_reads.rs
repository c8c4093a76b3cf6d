//! Reads that may be slow, apart from all others: connections of their own, and a statement timeout.

use std::sync::Arc;
use std::time::Duration;

use diesel_async::{AsyncPgConnection, methods::LoadQuery};
use kernel::{SellerId, ShareTaken, StoreError};
use tracing::Instrument as _;
use usecases::LockSet;

use crate::{
    ANSWER_TIMEOUT,
    connection::error::with_timeout,
    statement::{Prepared, Returns},
    turns::{Admission, Turns},
    unit_of_work::{PLAN_BY_VALUES, PgUnitOfWork, changing_any},
};

/// Connections of a process for slow reads.
pub(crate) const CONNECTIONS: usize = 4;

/// How long a read waits for those of its seller before it. The rest of its time is for itself.
const TURN_TIMEOUT: Duration = Duration::from_millis(1_250);

/// Runs slow reads.
pub(crate) struct SlowReads {
    /// They MUST have turns of their own, with a share of one, so that no seller takes the connections from the
    /// others.
    pub(crate) units: PgUnitOfWork,
    /// Turns of long reads, one at a time. These have other connections; their turns are here because all threads
    /// share them.
    pub(crate) long: Arc<Turns>,
}

impl SlowReads {
    /// Waits for the process's one turn at answers of up to fifty megabytes. Only one caller of each seller
    /// waits for it, so that the callers of one seller do not queue before another's.
    pub(crate) async fn turn_of_long(&self, seller: SellerId) -> Result<[Admission; 2], StoreError> {
        let take = |of| async move { self.long.take(&of, ANSWER_TIMEOUT).await };
        Ok([
            // Only the seller's own reads were before it.
            take(LockSet::of_seller(seller))
                .await
                .map_err(|_| StoreError::Unavailable(ShareTaken.into()))?,
            // The one place, by a share that is the same for all sellers.
            take(LockSet::of_strangers()).await?,
        ])
    }

    /// All rows of a statement, planned for its values. It has a transaction, so that PostgreSQL ends it at
    /// the statement timeout even if its caller has gone; until then the seller's turn lasts.
    pub(crate) async fn rows<S>(&self, seller: SellerId, statement: S) -> Result<Vec<S::Row>, StoreError>
    where
        S: Returns + Send + 'static,
        Prepared<S>: for<'t> LoadQuery<'t, &'t AsyncPgConnection, S::Row>,
    {
        with_timeout(ANSWER_TIMEOUT, async {
            let own = LockSet::of_seller(seller);
            let turn = self.units.connections.turns.take(&own, TURN_TIMEOUT).await;
            // Only the seller's own reads were before it.
            let turn = turn.map_err(|_| StoreError::Unavailable(ShareTaken.into()))?;
            let tx = self.units.open_transaction(&LockSet::default()).await?;
            let reading = async move {
                tx.write_later(changing_any(PLAN_BY_VALUES.bare()));
                let rows = tx.rows(statement).await;
                drop((tx, turn));
                rows
            };
            let rows = tokio::spawn(reading.in_current_span()).await;
            rows.unwrap_or_else(|ended| Err(StoreError::Unavailable(ended.into())))
        })
        .await
    }
}
