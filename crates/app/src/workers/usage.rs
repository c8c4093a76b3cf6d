//! Keeps the counts of calls that the server threads gather.

use std::{sync::Arc, time::Duration};

use adapter_http::UsageMeter;
use async_trait::async_trait;
use kernel::StoreError;
use oauth::UsageLog;
use usecases::UnitOfWorkError;

use super::routine::Routine;

/// How old counts become, on average; those of this long are lost with a process that is killed.
const KEEP_EVERY: Duration = Duration::from_secs(10);

/// The worker. It belongs to the process that counts.
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
    use oauth::{MockUsageLog, UsageKey};
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
