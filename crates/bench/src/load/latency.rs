//! Latencies, collected at a resolution of 0.1 %.

use std::time::Duration;

use hdrhistogram::Histogram;

/// Longer latencies count as this, in nanoseconds.
const LONGEST: u64 = 60_000_000_000;

/// How long requests took.
#[derive(Clone, Debug)]
pub(crate) struct Latency {
    nanoseconds: Histogram<u64>,
    whole: bool,
}

impl Latency {
    /// None so far.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let nanoseconds = Histogram::new_with_bounds(1_000, LONGEST, 3)?;
        Ok(Self {
            nanoseconds,
            whole: true,
        })
    }

    /// Counts one.
    pub(crate) fn record(&mut self, latency: Duration) {
        let nanoseconds = u64::try_from(latency.as_nanos()).unwrap_or(LONGEST);
        self.nanoseconds.saturating_record(nanoseconds);
    }

    /// Counts another collection's, too.
    pub(crate) fn add(&mut self, other: &Self) -> anyhow::Result<()> {
        self.nanoseconds.add(&other.nanoseconds)?;
        self.whole &= other.whole;
        Ok(())
    }

    /// Marks this as a sample, whose maximum says nothing.
    pub(crate) fn sampled(mut self) -> Self {
        self.whole = false;
        self
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.nanoseconds.len()
    }

    /// What `share` of them (0 to 1) do not exceed.
    pub(crate) fn quantile(&self, share: f64) -> Duration {
        Duration::from_nanos(self.nanoseconds.value_at_quantile(share))
    }

    /// How long one took on average.
    pub(crate) fn mean(&self) -> Duration {
        Duration::from_secs_f64(self.nanoseconds.mean() / 1e9)
    }

    /// The longest, where all were counted.
    pub(crate) fn longest(&self) -> Option<Duration> {
        self.whole.then(|| Duration::from_nanos(self.nanoseconds.max()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_a_thousandth() {
        let mut latency = Latency::new().unwrap();
        for microseconds in 1..=1_000 {
            latency.record(Duration::from_micros(microseconds));
        }
        let mut twice = latency.clone();
        twice.add(&latency).unwrap();
        for collection in [&latency, &twice] {
            let median = collection.quantile(0.5).as_secs_f64();
            assert!((median / 500e-6 - 1.0).abs() < 2e-3, "{median}");
        }
        assert_eq!((latency.count(), twice.count()), (1_000, 2_000));
        assert!(latency.longest().is_some());
        assert_eq!(latency.sampled().longest(), None);
    }
}
