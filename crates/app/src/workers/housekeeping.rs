//! Database maintenance: deletes expired rows, refreshes statistics, and stores the counts of calls.

use std::{sync::Arc, time::Duration};

use accounts::UsageLog;
use adapter_http::UsageMeter;
use async_trait::async_trait;
use kernel::{StoreError, TransactionError};

use super::routine::Routine;
use crate::wiring::Shared;

/// The pause when nothing is left to delete.
const PAUSE: Duration = Duration::from_mins(1);
/// The pause between two batches, to give way to other work.
const BATCH_PAUSE: Duration = Duration::from_millis(50);

/// Deletes expired rows in small batches, and erases the buyers of old orders.
pub(super) struct Cleaning(pub(super) Shared);

#[async_trait]
impl Routine for Cleaning {
    const NAME: &'static str = "cleaning";

    async fn batch(&self) -> Result<Duration, TransactionError> {
        let database = &self.0.database;
        let mut more = database.clear_expired().await?.more;
        more |= database.clear_records().await?.more;
        if let Some(age) = self.0.config.retention.buyer_data {
            let erased = database.erase_buyers(age.time_delta()).await?;
            if erased.rows > 0 {
                tracing::info!(orders = erased.rows, "buyers of old orders were erased");
            }
            more |= erased.more;
        }
        Ok(if more { BATCH_PAUSE } else { PAUSE })
    }
}

/// How often tables may be analyzed: each step of a new marketplace's growth takes longer.
const GROWTH_INTERVAL: Duration = Duration::from_secs(1);

/// Refreshes the planner's statistics of tables that have grown.
pub(super) struct Statistics(pub(super) Shared);

#[async_trait]
impl Routine for Statistics {
    const NAME: &'static str = "statistics";

    async fn batch(&self) -> Result<Duration, TransactionError> {
        self.0.database.analyze_grown_tables().await?;
        Ok(GROWTH_INTERVAL)
    }
}

/// How often counts are stored, on average. A killed process loses the counts since the last time.
const STORE_INTERVAL: Duration = Duration::from_secs(10);

/// Stores the counts of calls from the server threads of this process.
pub(super) struct Usage {
    pub(super) meter: UsageMeter,
    pub(super) log: Arc<dyn UsageLog>,
}

impl Usage {
    /// Stores the current counts. If the database is unavailable, they are put back; after any other failure they are dropped, so that one
    /// bad count does not block all later ones.
    pub(super) async fn store(&self) -> Result<(), StoreError> {
        let counts = self.meter.take();
        if counts.is_empty() {
            return Ok(());
        }
        let stored = self.log.add_usage(counts.clone()).await;
        if let Err(StoreError::Retryable(_) | StoreError::Unavailable(_)) = stored {
            self.meter.put_back(counts);
        }
        stored
    }
}

#[async_trait]
impl Routine for Usage {
    const NAME: &'static str = "usage";

    async fn batch(&self) -> Result<Duration, TransactionError> {
        self.store().await?;
        Ok(STORE_INTERVAL)
    }
}

#[cfg(test)]
mod tests {
    use accounts::{MockUsageLog, UsageCount, UsageKey};
    use uuid::Uuid;

    use super::*;

    #[tokio::test]
    async fn counts_are_stored_once_unless_the_database_is_unavailable() {
        let key = UsageKey {
            seller: Uuid::from_u128(1).into(),
            client_id: Uuid::from_u128(2).into(),
            status: 200,
        };
        for (outcome, calls) in [
            (Ok(()), 1),
            (Err(StoreError::Unavailable("away".into())), 2),
            (Err(StoreError::Retryable("beaten".into())), 2),
            (Err(StoreError::unexpected("unexpected")), 1),
        ] {
            let (is_stored, mut log) = (outcome.is_ok(), MockUsageLog::new());
            log.expect_add_usage()
                .withf(|counts| counts.len() == 1 && counts[0].calls == 1)
                .return_once(|_| outcome);
            let usage = Usage {
                meter: UsageMeter::default(),
                log: Arc::new(log),
            };
            usage.store().await.unwrap();
            usage.meter.count(key);
            assert_eq!(usage.store().await.is_ok(), is_stored);
            // Counts that could not be stored are added to later ones.
            usage.meter.count(key);
            assert_eq!(usage.meter.take(), [UsageCount { key, calls }]);
        }
    }
}
