//! Clears what has had its time, in small batches, and erases buyers of old orders.

use std::time::Duration;

use adapter_postgres::Database;
use async_trait::async_trait;
use chrono::TimeDelta;
use usecases::UnitOfWorkError;

use super::routine::Routine;

/// Pause once nothing is left to clear.
const PAUSE: Duration = Duration::from_mins(1);
/// Pause between two batches, so that other work goes first.
const BREATH: Duration = Duration::from_millis(50);

/// The worker.
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
