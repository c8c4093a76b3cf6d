//! Reads that may be slow, apart from all others: connections of their own, and a statement timeout.

use std::sync::Arc;

use diesel_async::{AsyncPgConnection, methods::LoadQuery};
use kernel::{SellerId, StoreError};
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

/// Runs slow reads.
pub(crate) struct SlowReads {
    units: PgUnitOfWork,
    by_ids: Arc<Turns>,
}

impl SlowReads {
    /// The units MUST have turns of their own, with a share of one, so that no seller takes the connections from
    /// the others.
    pub(crate) fn new(units: PgUnitOfWork) -> Self {
        let by_ids = Turns::new(1);
        Self { units, by_ids }
    }

    /// Waits until this process reads no other rows of this seller by many ids. Such reads have other connections, but
    /// their answers may be of fifty megabytes.
    pub(crate) async fn turn_by_ids(&self, seller: SellerId) -> Result<Admission, StoreError> {
        self.by_ids
            .take(&LockSet::of_seller(seller), ANSWER_TIMEOUT)
            .await
    }

    /// All rows of a statement, planned for its values. It has a transaction, so that PostgreSQL ends it at
    /// the statement timeout even if its caller has gone; until then the seller's turn lasts.
    pub(crate) async fn rows<S>(&self, seller: SellerId, statement: S) -> Result<Vec<S::Row>, StoreError>
    where
        S: Returns + Send + 'static,
        Prepared<S>: for<'t> LoadQuery<'t, &'t AsyncPgConnection, S::Row>,
    {
        with_timeout(ANSWER_TIMEOUT, async {
            let tx = self.units.open_transaction(&LockSet::of_seller(seller)).await?;
            let reading = async move {
                tx.write_later(changing_any(PLAN_BY_VALUES.bind(())));
                tx.rows(statement).await
            };
            let rows = tokio::spawn(reading.in_current_span()).await;
            rows.unwrap_or_else(|ended| Err(StoreError::Unavailable(ended.into())))
        })
        .await
    }
}
