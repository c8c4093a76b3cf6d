//! The end of the program as its connections see it, in two steps.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Shared by all connections of both listeners.
#[derive(Debug, Default)]
pub(crate) struct Stopping {
    draining: AtomicBool,
    ending: AtomicBool,
    wakes: CancellationToken,
}

impl Stopping {
    /// From now on every answer is its connection's last.
    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::Release);
    }

    /// From now on connections without a request end too.
    pub(crate) fn end(&self) {
        self.drain();
        self.ending.store(true, Ordering::Release);
        self.wakes.cancel();
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Acquire)
    }

    /// Waits for [`Self::end`].
    pub(crate) fn ended(&self) -> WaitForCancellationFutureOwned {
        self.wakes.clone().cancelled_owned()
    }
}
