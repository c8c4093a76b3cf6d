//! SIGTERM and SIGINT: the first asks the program to finish what runs, a second one ends it at once.

use std::{io, process};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens for both signals from the moment that it is made.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Needs a runtime.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next signal and gives its name.
    pub(crate) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }

    /// From now on, the next signal ends the process at once, as one that is not handled would.
    pub(crate) fn end_at_the_next(mut self) {
        tokio::spawn(async move {
            let name = self.next().await;
            tracing::warn!(signal = name, "ending at once, without waiting for what runs");
            process::exit(if name == "SIGINT" { 130 } else { 143 });
        });
    }
}
