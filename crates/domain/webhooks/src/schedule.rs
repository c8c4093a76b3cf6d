//! When a failed delivery is tried again (contract: Retries).

use chrono::TimeDelta;

/// The delay after each attempt but the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetrySchedule(pub [TimeDelta; 5]);

impl Default for RetrySchedule {
    /// 1 minute, 5 minutes, 30 minutes, 2 hours, 12 hours.
    fn default() -> Self {
        Self([
            TimeDelta::minutes(1),
            TimeDelta::minutes(5),
            TimeDelta::minutes(30),
            TimeDelta::hours(2),
            TimeDelta::hours(12),
        ])
    }
}

impl RetrySchedule {
    /// How long after the end of the attempt of this number (from 1) the next one is due: the scheduled delay, and up to a
    /// tenth more (D60) so that what failed together does not come again together. Nothing after the sixth.
    ///
    /// `jitter` is a random number from 0 to 1; what lies outside counts as the nearer end.
    pub fn delay(&self, after_attempt: u8, jitter: f64) -> Option<TimeDelta> {
        let place = usize::from(after_attempt.checked_sub(1)?);
        let delay = self.0.get(place)?.to_std().unwrap_or_default();
        let jitter = if jitter.is_nan() {
            0.0
        } else {
            jitter.clamp(0.0, 1.0)
        };
        Some(TimeDelta::from_std(delay.mul_f64(1.0 + jitter / 10.0)).unwrap_or(TimeDelta::MAX))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_contracts_delays() {
        let schedule = RetrySchedule::default();
        let delays = (0..=8).map(|attempt| schedule.delay(attempt, 0.0).map(|delay| delay.num_minutes()));
        let expected = [
            None,
            Some(1),
            Some(5),
            Some(30),
            Some(120),
            Some(720),
            None,
            None,
            None,
        ];
        assert!(delays.eq(expected));
    }

    proptest! {
        #[test]
        fn never_earlier_and_at_most_a_tenth_later(attempt in 1_u8..=5, jitter: f64) {
            let schedule = RetrySchedule::default();
            let (least, delay) = (schedule.delay(attempt, 0.0).unwrap(), schedule.delay(attempt, jitter).unwrap());
            prop_assert!(delay >= least && delay <= least + least / 10, "{delay}");
        }
    }
}
