//! Timestamps as text: RFC 3339, written in UTC with `Z` and microseconds (D21).
//!
//! The database stores microseconds, so a client can send a timestamp back as a filter without loss.

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Serialize;

/// The expected format of a date-time parameter; fits "Must be …".
pub const EXPECTED: &str = "an RFC 3339 date-time with `Z` or an offset, such as 2026-01-31T12:00:00Z";

/// The microseconds since 1970 at the begin of year 0 and at the end of year 9999.
const FIRST: i64 = -62_167_219_200_000_000;
const LAST: i64 = 253_402_300_799_999_999;

/// Parses a date-time with `Z` or an offset; `None` for a date alone or a local time.
pub fn parse(text: &str) -> Option<DateTime<Utc>> {
    // chrono also takes U+2212 for a minus sign.
    let at = text
        .is_ascii()
        .then(|| DateTime::parse_from_rfc3339(text).ok())??;
    Some(at.with_timezone(&Utc))
}

/// The text of a timestamp: `2026-01-31T12:00:00.000000Z`.
///
/// RFC 3339 has years 0 to 9999; an instant outside this range is clamped.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Timestamp(String);

impl Timestamp {
    /// The text of `at`, truncated to microseconds; a leap second is that of the next minute.
    pub fn new(at: DateTime<Utc>) -> Self {
        let at = DateTime::from_timestamp_micros(at.timestamp_micros().clamp(FIRST, LAST)).unwrap_or(at);
        Self(at.to_rfc3339_opts(SecondsFormat::Micros, true))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        parse(text).unwrap()
    }

    #[test]
    fn a_minus_sign_is_no_hyphen() {
        assert_eq!(parse("2026-01-31T12:00:00\u{2212}02:00"), None);
    }

    #[test]
    fn timestamps_are_written_in_utc_with_microseconds() {
        for (given, written) in [
            (at("2026-01-31T12:00:00Z"), "2026-01-31T12:00:00.000000Z"),
            (
                at("2026-01-01T00:30:00.1234567+02:00"),
                "2025-12-31T22:30:00.123456Z",
            ),
            (at("2016-12-31T23:59:60Z"), "2017-01-01T00:00:00.000000Z"),
            (DateTime::<Utc>::MIN_UTC, "0000-01-01T00:00:00.000000Z"),
            (DateTime::<Utc>::MAX_UTC, "9999-12-31T23:59:59.999999Z"),
        ] {
            assert_eq!(Timestamp::new(given).as_str(), written);
        }
    }
}
