//! Points in time as people read them, in UTC.

use std::fmt;

use chrono::{DateTime, Utc};

/// A point in time: its text to the minute, and the text for machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct When(pub(crate) DateTime<Utc>);

impl When {
    /// For the `datetime` attribute.
    pub(crate) fn machine(&self) -> String {
        self.0.format("%Y-%m-%dT%H:%M:%SZ").to_string()
    }
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.format("%Y-%m-%d %H:%M UTC"))
    }
}
