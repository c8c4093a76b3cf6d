//! The machine's clock.

use chrono::{DateTime, Utc};
use kernel::Clock;

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the clock that everybody else is given"
    )]
    fn now(&self) -> DateTime<Utc> {
        Utc::now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_tells_the_machines_time() {
        let before = std::time::UNIX_EPOCH.elapsed().unwrap().as_millis();
        let told = u128::try_from(SystemClock.now().timestamp_millis()).unwrap();
        let after = std::time::UNIX_EPOCH.elapsed().unwrap().as_millis();
        assert!((before..=after).contains(&told), "{before} {told} {after}");
    }
}
