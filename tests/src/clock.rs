//! The time of a world, in the hand of its test.

use testkit::TestClock;

use crate::World;

impl World {
    /// Stops the clock of the database at an instant, as RFC 3339 writes it.
    pub async fn stop_clock(&self, at: &str) -> TestClock {
        let clock = self.database.control_clock().await;
        clock.freeze(at.parse().expect("an instant")).await;
        clock
    }
}
