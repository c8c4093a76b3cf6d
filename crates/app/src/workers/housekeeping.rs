//! Work on the database alone: clearing what has expired, and keeping the counts of calls.

use std::{sync::Arc, time::Duration};

use accounts::UsageLog;
use adapter_http::UsageMeter;
use adapter_postgres::Database;
use async_trait::async_trait;
use chrono::TimeDelta;
use kernel::StoreError;
use usecases::UnitOfWorkError;

use super::routine::Routine;

/// Pause once nothing is left to clear.
const PAUSE: Duration = Duration::from_mins(1);
/// Pause between two batches, so that other work goes first.
const BREATH: Duration = Duration::from_millis(50);

/// Clears what has expired, in small batches, and erases buyers of old orders.
pub(super) struct Cleaning {
    pub(super) database: Database,
    /// How old an order is when its buyer is erased; none for never.
    pub(super) buyers_after: Option<TimeDelta>,
}

#[async_trait]
impl Routine for Cleaning {
    const NAME: &'static str = "cleaning";

    async fn batch(&self) -> Result<Duration, UnitOfWorkError> {
        let mut more = self.database.clear_expired().await?.more;
        more |= self.database.clear_records().await?.more;
        if let Some(age) = self.buyers_after {
            let erased = self.database.erase_buyers(age).await?;
            if erased.orders > 0 {
                tracing::info!(orders = erased.orders, "buyers of old orders were erased");
            }
            more |= erased.more;
        }
        Ok(if more { BREATH } else { PAUSE })
    }
}

/// How old counts become, on average; those of this long are lost with a process that is killed.
const KEEP_EVERY: Duration = Duration::from_secs(10);

/// Keeps the counts of calls that the server threads of this process gather.
pub(super) struct Usage {
    pub(super) meter: UsageMeter,
    pub(super) log: Arc<dyn UsageLog>,
}

impl Usage {
    /// Keeps what has been gathered. While the database is away it is gathered on; where the database fails otherwise it is
    /// dropped, so that one bad count does not hold up all that come after it.
    pub(super) async fn keep(&self) -> Result<(), StoreError> {
        let counts = self.meter.take();
        if counts.is_empty() {
            return Ok(());
        }
        let kept = self.log.add_usage(counts.clone()).await;
        if let Err(StoreError::Retryable(_) | StoreError::Unavailable(_)) = kept {
            self.meter.put_back(counts);
        }
        kept
    }
}

#[async_trait]
impl Routine for Usage {
    const NAME: &'static str = "usage";

    async fn batch(&self) -> Result<Duration, UnitOfWorkError> {
        self.keep().await?;
        Ok(KEEP_EVERY)
    }
}

#[cfg(test)]
mod tests {
    use accounts::{MockUsageLog, UsageKey};
    use uuid::Uuid;

    use super::*;

    fn usage(log: MockUsageLog) -> Usage {
        let usage = Usage {
            meter: UsageMeter::default(),
            log: Arc::new(log),
        };
        usage.meter.note(UsageKey {
            seller: Uuid::from_u128(1).into(),
            client_id: Uuid::from_u128(2).into(),
            status: 200,
        });
        usage
    }

    #[tokio::test]
    async fn counts_are_kept_once_and_nothing_is_not_kept() {
        let mut log = MockUsageLog::new();
        log.expect_add_usage()
            .once()
            .withf(|counts| counts.len() == 1 && counts[0].calls == 1)
            .returning(|_| Ok(()));
        let usage = usage(log);
        usage.keep().await.unwrap();
        usage.keep().await.unwrap();
    }

    #[tokio::test]
    async fn counts_wait_while_the_database_is_away_and_are_dropped_where_it_fails_oddly() {
        for (error, left) in [
            (StoreError::Unavailable("away".into()), 1),
            (StoreError::Retryable("beaten".into()), 1),
            (StoreError::unexpected("odd"), 0),
        ] {
            let mut log = MockUsageLog::new();
            log.expect_add_usage().return_once(|_| Err(error));
            let usage = usage(log);
            assert!(usage.keep().await.is_err());
            assert_eq!(usage.meter.take().len(), left);
        }
    }
}
