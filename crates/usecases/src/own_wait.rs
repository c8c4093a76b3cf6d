//! How long a request has waited for its caller: for the body, or a read for the caller's other requests. That is no slowness
//! of the service.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::time::{Duration, Instant};

thread_local! {
    /// Of the work that this thread polls.
    static WAITED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// The output of the work, and how long it has waited so, except in tasks that it has spawned.
pub async fn measured<F: Future>(work: F) -> (F::Output, Duration) {
    let (mut work, mut waited) = (pin!(work), Duration::ZERO);
    poll_fn(|cx| {
        let outer = WAITED.replace(waited);
        let polled = work.as_mut().poll(cx);
        waited = WAITED.replace(outer);
        polled.map(|output| (output, waited))
    })
    .await
}

/// Begins a wait, which ends when it is dropped. An adapter MUST hold one while it waits for a body, and whenever a read waits
/// for a share that only requests of one seller, or of one application, take.
pub fn begin() -> OwnWait {
    OwnWait(Instant::now())
}

pub struct OwnWait(Instant);

impl Drop for OwnWait {
    fn drop(&mut self) {
        WAITED.set(WAITED.get().saturating_add(self.0.elapsed()));
    }
}
