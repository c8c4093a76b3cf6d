//! The process and its operating system: signals, systemd, the limit of open files.

use std::{io, process, time::Duration};

use rlimit::Resource;
use sd_notify::NotifyState;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use crate::logging;

/// SIGTERM and SIGINT, received from the creation of this value on.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Must be called within a runtime.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next signal and returns its name.
    pub(crate) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }

    /// Makes the next signal end the process at once, as an unhandled one would.
    pub(crate) fn exit_on_next(mut self) {
        tokio::spawn(async move {
            let name = self.next().await;
            tracing::warn!(
                signal = name,
                "exiting at once, without waiting for requests in flight"
            );
            logging::finish();
            process::exit(if name == "SIGINT" { 130 } else { 143 });
        });
    }
}

/// Extra time for a stop beyond the configured one, before systemd kills the process.
const STOP_SLACK: Duration = Duration::from_secs(5);

/// Tells systemd that the process is stopping, and how long that may take.
pub(crate) fn notify_stopping(at_most: Duration) {
    let microseconds = at_most.saturating_add(STOP_SLACK).as_micros();
    notify(&[
        NotifyState::Stopping,
        NotifyState::ExtendTimeoutUsec(u32::try_from(microseconds).unwrap_or(u32::MAX)),
        NotifyState::Status("stopping"),
    ]);
}

/// Feeds systemd's watchdog (`WatchdogSec=`), if enabled, until the handle is dropped.
pub(crate) fn feed_watchdog() -> Option<AbortOnDropHandle<()>> {
    let timeout = sd_notify::watchdog_enabled()?;
    Some(AbortOnDropHandle::new(tokio::spawn(async move {
        loop {
            notify(&[NotifyState::Watchdog]);
            sleep(timeout / 2).await;
        }
    })))
}

/// Reports a state to systemd, if it runs the process.
pub(crate) fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "the service manager cannot be notified");
    }
}

/// Open files besides connections of the public listener and to webhook receivers: database, back office,
/// runtimes.
const OTHER_FILES: u64 = 2_048;

/// Raises the soft limit of open files, which many systems set to 1024, to the hard limit. Warns if that is
/// too low for `connections`.
pub(crate) fn raise_open_files_limit(connections: u32) {
    let allowed = rlimit::increase_nofile_limit(u64::MAX).or_else(|_| Resource::NOFILE.get_soft());
    let needed = u64::from(connections) + OTHER_FILES;
    if let Some(allowed) = allowed.ok().filter(|allowed| *allowed < needed) {
        tracing::warn!(
            allowed,
            needed,
            "too few open files are allowed for `server.max_connections` and `webhooks.concurrency`"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_rises_to_the_hard_one() {
        let hard = Resource::NOFILE.get_hard().unwrap();
        raise_open_files_limit(1);
        assert_eq!(Resource::NOFILE.get().unwrap(), (hard, hard));
    }
}
