//! How long a request has waited for its caller's other requests: that is no slowness of the service.

use std::cell::Cell;
use std::time::Duration;

use tokio::task_local;

task_local! {
    static WAITED: Cell<Duration>;
}

/// The output of the work, and how long it has waited so, in its own task.
pub async fn measured<F: Future>(work: F) -> (F::Output, Duration) {
    let measured = async {
        let output = work.await;
        (output, WAITED.with(Cell::get))
    };
    WAITED.scope(Cell::default(), measured).await
}

/// Adds to what [`measured`] returns. An adapter MUST call it after each wait for a share that only requests of one
/// seller, or of one application, take.
pub fn add(waited: Duration) {
    // Outside of a request nobody asks.
    let _ = WAITED.try_with(|all| all.set(all.get() + waited));
}
