//! A timer that is exact to a few microseconds; the runtime's own counts milliseconds, which is what latencies are measured in.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;

/// Waits for instants.
#[derive(Debug)]
pub(super) struct Timer(AsyncFd<OwnedFd>);

impl Timer {
    /// One of the kernel's.
    pub(super) fn new() -> anyhow::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        #[expect(
            deprecated,
            reason = "its successor is unsafe, for descriptors that may close meanwhile; this one is owned and stays open"
        )]
        let timer = AsyncFd::new(timer)?;
        Ok(Self(timer))
    }

    /// Waits until then; not at all where that has passed.
    pub(super) async fn wait_until(&self, instant: Instant) -> anyhow::Result<()> {
        let left = instant.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        let once = Itimerspec {
            it_interval: timespec(Duration::ZERO)?,
            it_value: timespec(left)?,
        };
        timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::empty(), &once)?;
        loop {
            let mut ready = self.0.readable().await?;
            let mut expirations = [0; 8];
            let read = ready.try_io(|timer| Ok(rustix::io::read(timer.get_ref(), &mut expirations)?));
            if let Ok(read) = read {
                read?;
                return Ok(());
            }
        }
    }
}

fn timespec(duration: Duration) -> anyhow::Result<Timespec> {
    Ok(Timespec {
        tv_sec: i64::try_from(duration.as_secs())?,
        tv_nsec: i64::from(duration.subsec_nanos()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_waits_no_shorter_than_it_should() {
        let timer = Timer::new().unwrap();
        for microseconds in [1, 300, 2_500] {
            let due = Instant::now() + Duration::from_micros(microseconds);
            timer.wait_until(due).await.unwrap();
            assert!(Instant::now() >= due);
            timer.wait_until(due).await.unwrap();
        }
    }
}
