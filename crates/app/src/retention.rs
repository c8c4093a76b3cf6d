//! Clears what has expired, in small batches.

use std::{error::Error, time::Duration};

use adapter_postgres::Database;
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

/// Pause once nothing is left to clear.
const PAUSE: Duration = Duration::from_mins(1);
/// Pause between two batches, so that other work goes first.
const BREATH: Duration = Duration::from_millis(50);

/// Clears for ever. Several processes may do so at once.
pub(crate) async fn clear(database: Database) {
    loop {
        // A task of its own: a batch that panics is logged as every panic is, and the next one comes all the same.
        let batch = AbortOnDropHandle::new(tokio::spawn(clear_batch(database.clone())));
        let more = batch.await.unwrap_or(false);
        sleep(if more { BREATH } else { PAUSE }).await;
    }
}

/// Tells whether more is left.
async fn clear_batch(database: Database) -> bool {
    match database.clear_expired().await {
        Ok(cleared) => cleared.more,
        Err(error) => {
            // An outage is told by whoever watches the database.
            let error: &dyn Error = &error;
            tracing::debug!(error, "nothing could be cleared");
            false
        }
    }
}
