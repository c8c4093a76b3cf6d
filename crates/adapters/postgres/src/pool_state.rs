//! How busy the pool is.

use deadpool::Status;

/// Connections of the pool, and who waits for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolState {
    /// The most that there may be.
    pub most: usize,
    /// Those that somebody uses, or that are being opened for somebody.
    pub in_use: usize,
    /// Those that are open and wait for use.
    pub idle: usize,
    /// Callers that wait for one.
    pub waiting: usize,
}

impl From<Status> for PoolState {
    fn from(status: Status) -> Self {
        Self {
            most: status.max_size,
            in_use: status.size.saturating_sub(status.available),
            idle: status.available,
            waiting: status.waiting,
        }
    }
}
