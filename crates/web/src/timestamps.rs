//! Timestamps as text: RFC 3339, written in UTC with `Z` and microseconds (D21).
//!
//! The database stores microseconds, so a client can send a timestamp back as a filter without loss.

use std::fmt;

use chrono::{DateTime, Datelike, Timelike, Utc};
use serde::{Serialize, Serializer};

/// The expected format of a date-time parameter; fits "Must be …".
pub const EXPECTED: &str = "an RFC 3339 date-time with `Z` or an offset, such as 2026-01-31T12:00:00Z";

/// Parses a date-time with `Z` or an offset; `None` for a date alone or a local time.
pub fn parse(text: &str) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(text)
        .ok()
        .map(|at| at.with_timezone(&Utc))
}

/// The text of a timestamp, 27 bytes stored inline: `2026-01-31T12:00:00.000000Z`.
///
/// RFC 3339 has years 0 to 9999; an instant outside this range is clamped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timestamp([u8; 27]);

impl Timestamp {
    /// The text of `at`, truncated to microseconds.
    pub fn new(at: DateTime<Utc>) -> Self {
        // Reading each part from a `DateTime` would add its zero offset every time.
        let at = at.naive_utc();
        let mut text = *b"0000-01-01T00:00:00.000000Z";
        match u32::try_from(at.year()) {
            Err(_) => return Self(text),
            Ok(10_000..) => return Self(*b"9999-12-31T23:59:59.999999Z"),
            Ok(year) => write(&mut text, 0, 4, year),
        }
        write(&mut text, 5, 2, at.month());
        write(&mut text, 8, 2, at.day());
        write(&mut text, 11, 2, at.hour());
        write(&mut text, 14, 2, at.minute());
        write(&mut text, 17, 2, at.second());
        // chrono represents a leap second as the previous second with more than 10^9 nanoseconds.
        write(&mut text, 20, 6, (at.nanosecond() / 1_000).min(999_999));
        Self(text)
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// Writes `number` in decimal into `text[at..at + digits]`.
fn write(text: &mut [u8; 27], at: usize, digits: usize, number: u32) {
    let mut rest = number;
    let places = text.get_mut(at..at.saturating_add(digits)).unwrap_or_default();
    for place in places.iter_mut().rev() {
        *place = b'0'.saturating_add(u8::try_from(rest % 10).unwrap_or_default());
        rest /= 10;
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        parse(text).unwrap()
    }

    #[test]
    fn timestamps_are_written_in_utc_with_microseconds() {
        let written = |text| Timestamp::new(at(text)).to_string();
        assert_eq!(written("2026-01-31T12:00:00Z"), "2026-01-31T12:00:00.000000Z");
        assert_eq!(
            written("2026-01-01T00:30:00.1234567+02:00"),
            "2025-12-31T22:30:00.123456Z"
        );
        assert_eq!(written("2016-12-31T23:59:60Z"), "2016-12-31T23:59:59.999999Z");
        assert_eq!(
            Timestamp::new(DateTime::<Utc>::MIN_UTC).as_str(),
            "0000-01-01T00:00:00.000000Z"
        );
        assert_eq!(
            Timestamp::new(DateTime::<Utc>::MAX_UTC).as_str(),
            "9999-12-31T23:59:59.999999Z"
        );
    }
}
