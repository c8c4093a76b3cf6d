//! Database maintenance: deletes expired rows, refreshes statistics, and stores the counts of calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use accounts::UsageLog;
use adapter_http::UsageMeter;
use adapter_postgres::Expired;
use kernel::{StoreError, TransactionError};
use tokio::{select, sync::Mutex};

use crate::wiring::Shared;

/// The pause when nothing is left to delete.
const PAUSE: Duration = Duration::from_mins(1);
/// The pause between two batches, to give way to other work.
const BATCH_PAUSE: Duration = Duration::from_millis(50);

/// Cleans in small batches. Each kind of data has a routine of its own, so that one that fails delays no
/// other; `turn` has them take turns.
pub(super) async fn clean(
    (shared, expired, turn): (Shared, Expired, Arc<Mutex<()>>),
) -> Result<Duration, TransactionError> {
    let _turn = select! {
        biased;
        () = shared.tasks.stopping() => return Ok(PAUSE),
        turn = turn.lock() => turn,
    };
    let cleared = shared.database.clear(expired).await?;
    match (expired, cleared.rows) {
        (Expired::Buyers(_), orders @ 1..) => tracing::info!(orders, "buyers of old orders were erased"),
        (Expired::ClosedSellers(_), rows @ 1..) => {
            tracing::info!(rows, "closed sellers' accounts and subscriptions were erased");
        }
        _ => {}
    }
    let pause = match expired {
        Expired::Events(age) => PAUSE.min(age.to_std().unwrap_or(PAUSE)),
        _ => PAUSE,
    };
    Ok(if cleared.more { BATCH_PAUSE } else { pause })
}

/// How soon a decision is followed up.
const FOLLOW_UP_INTERVAL: Duration = Duration::from_secs(1);

/// Does what is left to do after the end of an application, an account or a connection, a revocation or a
/// reinstatement.
pub(super) async fn follow_up(shared: Shared) -> Result<Duration, TransactionError> {
    let began = Instant::now();
    let was_due = shared.database.follow_up().await?;
    // After thousands of small ones, the next one would wait for all their pauses.
    let pause = began.elapsed().min(BATCH_PAUSE);
    Ok(if was_due { pause } else { FOLLOW_UP_INTERVAL })
}

/// How often tables may be analyzed: each step of a new marketplace's growth takes longer.
const GROWTH_INTERVAL: Duration = Duration::from_secs(1);

/// Refreshes the planner's statistics of tables that have grown. Logs once that the role may not.
pub(super) async fn refresh_statistics(
    (shared, lacks_right): (Shared, Arc<AtomicBool>),
) -> Result<Duration, TransactionError> {
    let Some(grant) = shared.database.analyze_grown_tables().await? else {
        lacks_right.store(false, Ordering::Relaxed);
        return Ok(GROWTH_INTERVAL);
    };
    if !lacks_right.swap(true, Ordering::Relaxed) {
        tracing::warn!(
            grant,
            "the role may not refresh statistics, so a new marketplace's queries become slow: run this as the tables' owner"
        );
    }
    Ok(PAUSE)
}

/// How often counts are stored, on average. A killed process loses the counts since the last time.
const STORE_INTERVAL: Duration = Duration::from_secs(10);

/// Stores the counts of calls from the server threads of this process. If the database is unavailable, they are
/// put back; after any other failure they are dropped, so that one bad count does not block all later ones.
pub(super) async fn store_counts(meter: &UsageMeter, log: &dyn UsageLog) -> Result<(), StoreError> {
    let counts = meter.take();
    if counts.is_empty() {
        return Ok(());
    }
    let stored = log.add_usage(counts.clone()).await;
    if let Err(StoreError::Retryable(_) | StoreError::Unavailable(_)) = stored {
        meter.add(counts);
    }
    stored
}

pub(super) async fn store_usage(shared: Shared) -> Result<Duration, TransactionError> {
    store_counts(&shared.usage, &*shared.database.usage()).await?;
    Ok(STORE_INTERVAL)
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
            let meter = UsageMeter::default();
            store_counts(&meter, &log).await.unwrap();
            meter.add([UsageCount { key, calls: 1 }]);
            assert_eq!(store_counts(&meter, &log).await.is_ok(), is_stored);
            // Counts that could not be stored are added to later ones.
            meter.add([UsageCount { key, calls: 1 }]);
            assert_eq!(meter.take(), [UsageCount { key, calls }]);
        }
    }
}
