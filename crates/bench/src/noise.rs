//! What other processes take of the machine meanwhile: a measurement that they disturb is repeated, for a while.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::Context as _;

/// The share of the machine that others may take of a measurement that counts as quiet.
const QUIET: f64 = 0.05;
/// How long the machine is watched before a measurement.
const LOOK: Duration = Duration::from_millis(500);

/// A stretch of time, on all cores.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    begun: Instant,
    busy: Duration,
}

impl Stretch {
    /// Begins now.
    pub(crate) fn begin() -> anyhow::Result<Self> {
        Ok(Self {
            begun: Instant::now(),
            busy: busy()?,
        })
    }

    /// The share of the machine (0 to 1) that was busy since, without `own`, the CPU time of those who are measured.
    pub(crate) fn others(self, own: Duration) -> anyhow::Result<f64> {
        let elapsed = self.begun.elapsed().as_secs_f64();
        let cores = f64::from(u32::try_from(std::thread::available_parallelism()?.get())?);
        let others = busy()?.saturating_sub(self.busy).saturating_sub(own);
        Ok(others.as_secs_f64() / (elapsed * cores))
    }
}

/// How long a run may wait for others, all measurements together.
#[derive(Debug)]
pub(crate) struct Patience {
    left: Duration,
}

impl Patience {
    /// So long.
    pub(crate) fn new(left: Duration) -> Self {
        Self { left }
    }

    /// Waits until nobody else does much.
    pub(crate) async fn await_quiet(&mut self) -> anyhow::Result<()> {
        while !self.left.is_zero() {
            let stretch = Stretch::begin()?;
            tokio::time::sleep(LOOK).await;
            if stretch.others(Duration::ZERO)? <= QUIET {
                break;
            }
            self.spend(LOOK);
        }
        Ok(())
    }

    /// Whether a measurement that took `took`, with that share of the machine taken by others, is to be repeated.
    pub(crate) fn repeats(&mut self, others: f64, took: Duration) -> bool {
        let repeats = others > QUIET && !self.left.is_zero();
        if repeats {
            self.spend(took);
        }
        repeats
    }

    fn spend(&mut self, time: Duration) {
        self.left = self.left.saturating_sub(time);
    }
}

/// CPU time that all processes and the kernel have used on all cores, and that the machine's host has taken away.
fn busy() -> anyhow::Result<Duration> {
    let text = fs::read_to_string("/proc/stat").context("/proc/stat cannot be read")?;
    parse(&text, rustix::param::clock_ticks_per_second()).context("/proc/stat is not as proc(5) says")
}

/// The first line has user, nice, system, idle, iowait, irq, softirq and steal, in ticks.
fn parse(text: &str, ticks_per_second: u64) -> Option<Duration> {
    let fields = text.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
    let ticks: Vec<u64> = fields.map_while(|field| field.parse().ok()).collect();
    let idle = ticks.get(3)? + ticks.get(4)?;
    let all: u64 = ticks.get(..8)?.iter().sum();
    Some(Duration::from_micros((all - idle) * 1_000_000 / ticks_per_second))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_is_not_busy() {
        let text = "cpu  100 10 40 9000 500 5 20 25 3 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
        assert_eq!(parse(text, 100), Some(Duration::from_secs(2)));
        assert_eq!(parse("cpu 1 2\n", 100), None);
        assert!(busy().unwrap() > Duration::ZERO);
    }

    #[test]
    fn patience_ends() {
        let mut patience = Patience::new(Duration::from_secs(5));
        assert!(!patience.repeats(0.01, Duration::from_secs(4)));
        assert!(patience.repeats(0.5, Duration::from_secs(4)));
        assert!(patience.repeats(0.5, Duration::from_secs(4)));
        assert!(!patience.repeats(0.5, Duration::from_secs(4)));
    }
}
