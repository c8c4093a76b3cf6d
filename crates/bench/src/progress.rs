//! What the user sees meanwhile: a line that moves on a terminal, plain lines elsewhere.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Shows steps on standard error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    terminal: bool,
}

impl Progress {
    /// Looks where standard error goes.
    pub(crate) fn new() -> Self {
        Self {
            terminal: std::io::stderr().is_terminal(),
        }
    }

    /// Begins a step without a known end.
    pub(crate) fn step(self, what: &str) -> Step {
        self.begin(what, ProgressBar::new_spinner(), "{spinner} {msg} {elapsed}")
    }

    /// Begins a step of `total` parts.
    pub(crate) fn counted(self, what: &str, total: u64) -> Step {
        self.begin(
            what,
            ProgressBar::new(total),
            "{msg} {wide_bar} {human_pos}/{human_len} {elapsed}/{duration}",
        )
    }

    fn begin(self, what: &str, bar: ProgressBar, style: &str) -> Step {
        if !self.terminal {
            say(what);
        }
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style);
        }
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(250));
        Step { bar }
    }
}

/// Says something that stays.
pub(crate) fn say(line: &str) {
    // Nobody may be reading.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// A step; it is over with the value.
#[derive(Debug)]
pub(crate) struct Step {
    bar: ProgressBar,
}

impl Step {
    /// So many parts more are done.
    pub(crate) fn advance(&self, parts: u64) {
        self.bar.inc(parts);
    }

    /// Names what is being done now.
    pub(crate) fn now(&self, what: &str) {
        self.bar.set_message(what.to_owned());
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
