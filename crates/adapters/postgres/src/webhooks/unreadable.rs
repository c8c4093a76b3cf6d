//! Lanes that cannot be worked on because their address, or what they sign with, cannot be read: counted each time, and told of now and
//! then. Such a lane comes up again with every lease, and with a wrong sealing key all of them do.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use kernel::StoreError;
use tokio::time::Instant;

/// How often they are told of at most.
const EVERY: Duration = Duration::from_mins(1);

/// What one process has told of them.
#[derive(Default)]
pub(super) struct Unreadable(Mutex<Told>);

#[derive(Default)]
struct Told {
    last: Option<Instant>,
    since: u64,
}

impl Unreadable {
    /// Notes that a lane was left out.
    pub(super) fn note(&self, error: &StoreError) {
        metrics::counter!("webhook_lanes_unreadable_total").increment(1);
        if let Some(left_out) = self.due(Instant::now()) {
            tracing::error!(
                error = %error,
                left_out,
                "webhooks wait: their address or their secret cannot be read. Is `keys.sealing` what it is elsewhere?"
            );
        }
    }

    /// How many were left out since they were last told of, this one included, where it is time to tell of them again.
    fn due(&self, now: Instant) -> Option<u64> {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.since = told.since.saturating_add(1);
        if told.last.is_some_and(|last| now.duration_since(last) < EVERY) {
            return None;
        }
        told.last = Some(now);
        Some(std::mem::take(&mut told.since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_told_of_once_a_minute_with_their_number() {
        let (unreadable, begin) = (Unreadable::default(), Instant::now());
        let due = |after: u64| unreadable.due(begin + Duration::from_secs(after));
        assert_eq!(due(0), Some(1));
        for after in 0..50 {
            assert_eq!(due(after), None, "{after} s");
        }
        assert_eq!(due(60), Some(51));
        assert_eq!(due(61), None);
    }
}
