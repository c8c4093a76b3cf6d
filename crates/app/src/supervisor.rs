//! What systemd is told, where it has started the program as a service of `Type=notify`: that it listens, how it is, that it
//! lives (`WatchdogSec=`), and that it stops. Anywhere else nobody is told anything.
//!
//! A service that waits for its database has started: systemd would otherwise end it after `TimeoutStartSec=`, and the order
//! of starting would matter. What it waits for stands in its status.

use std::time::Duration;

use sd_notify::NotifyState;
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

/// What a stop may take beyond what the configuration gives it, until systemd may lose its patience.
const STOP_SLACK: Duration = Duration::from_secs(5);

/// All listeners answer.
pub(crate) fn listening() {
    tell(&[NotifyState::Ready]);
}

/// How the process is, in a few words for people.
pub(crate) fn status(words: &str) {
    tell(&[NotifyState::Status(words)]);
}

/// The process stops, and may take so long.
pub(crate) fn stopping(at_most: Duration) {
    let microseconds = at_most.saturating_add(STOP_SLACK).as_micros();
    let extended = u32::try_from(microseconds).unwrap_or(u32::MAX);
    tell(&[
        NotifyState::Stopping,
        NotifyState::ExtendTimeoutUsec(extended),
        NotifyState::Status("stopping"),
    ]);
}

/// Tells the watchdog of life, where there is one, twice in the time that it waits, for as long as the handle is kept. It is a
/// task like all others: a runtime that runs nothing any more is not alive.
pub(crate) fn tell_of_life() -> Option<AbortOnDropHandle<()>> {
    let patience = sd_notify::watchdog_enabled()?;
    let living = async move {
        loop {
            tell(&[NotifyState::Watchdog]);
            sleep(patience / 2).await;
        }
    };
    Some(AbortOnDropHandle::new(tokio::spawn(living)))
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "the service manager cannot be told how the process is");
    }
}
