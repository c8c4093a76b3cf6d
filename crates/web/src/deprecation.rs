//! Announces deprecations to clients: `Deprecation` (RFC 9745), `Sunset` (RFC 8594) and `Link`.

use std::fmt;
use std::time::SystemTime;

use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue, HttpDate, LINK};
use chrono::{DateTime, NaiveDate, NaiveTime, Utc};

const DEPRECATION: HeaderName = HeaderName::from_static("deprecation");
const SUNSET: HeaderName = HeaderName::from_static("sunset");

/// A deprecation: since when, until when the feature still works, and its replacement.
///
/// ```
/// use web::deprecation::{Deprecation, day};
///
/// const BRAND: Deprecation = Deprecation {
///     since: day(2027, 1, 15),
///     sunset: Some(day(2027, 7, 15)),
///     instead: "Read `maker`.",
///     link: Some("https://docs.example.com/changes/maker"),
/// };
/// assert_eq!(
///     BRAND.to_string(),
///     "**Deprecated** since 2027-01-15, gone on 2027-07-15. Read `maker`. \
///      More: <https://docs.example.com/changes/maker>",
/// );
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deprecation {
    /// Deprecated from this day on (0:00 UTC); it may be in the future.
    pub since: DateTime<Utc>,
    /// Removed from this day on (0:00 UTC), if that day is known.
    pub sunset: Option<DateTime<Utc>>,
    /// What to use instead: a sentence (Markdown).
    pub instead: &'static str,
    /// Where to read more: a URI reference.
    pub link: Option<&'static str>,
}

/// The start of a day in UTC, for constants.
///
/// # Panics
///
/// If the calendar has no such day; for a constant, at compile time.
#[expect(clippy::expect_used, reason = "found where the program is compiled")]
pub const fn day(year: i32, month: u32, day: u32) -> DateTime<Utc> {
    let date = NaiveDate::from_ymd_opt(year, month, day).expect("the calendar has no such day");
    date.and_time(NaiveTime::MIN).and_utc()
}

impl Deprecation {
    /// Sets the headers of a response.
    pub fn write(&self, headers: &mut HeaderMap) {
        let mut set = |name: HeaderName, value: String| {
            if let Ok(value) = HeaderValue::try_from(value) {
                headers.append(name, value);
            }
        };
        set(DEPRECATION, format!("@{}", self.since.timestamp()));
        if let Some(sunset) = self.sunset {
            set(SUNSET, HttpDate::from(SystemTime::from(sunset)).to_string());
        }
        let Some(link) = self.link else { return };
        set(LINK, format!("<{link}>; rel=\"deprecation\""));
        if self.sunset.is_some() {
            set(LINK, format!("<{link}>; rel=\"sunset\""));
        }
    }
}

impl fmt::Display for Deprecation {
    /// The text in the OpenAPI document.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "**Deprecated** since {}", self.since.date_naive())?;
        if let Some(sunset) = self.sunset {
            write!(f, ", gone on {}", sunset.date_naive())?;
        }
        write!(f, ". {}", self.instead)?;
        match self.link {
            Some(link) => write!(f, " More: <{link}>"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deprecation_becomes_its_headers() {
        let early = Deprecation {
            since: day(2027, 1, 15),
            sunset: None,
            instead: "Use the other.",
            link: None,
        };
        let late = Deprecation {
            sunset: Some(day(2027, 8, 1)),
            link: Some("/docs/late"),
            ..early
        };
        let written = |notice: Deprecation| {
            let mut headers = HeaderMap::new();
            notice.write(&mut headers);
            let line =
                |(name, value): (&HeaderName, &HeaderValue)| format!("{name}: {}", value.to_str().unwrap());
            let mut written: Vec<_> = headers.iter().map(line).collect();
            written.sort();
            written
        };
        assert_eq!(written(early), ["deprecation: @1799971200"]);
        assert_eq!(
            written(late),
            [
                "deprecation: @1799971200",
                "link: </docs/late>; rel=\"deprecation\"",
                "link: </docs/late>; rel=\"sunset\"",
                "sunset: Sun, 01 Aug 2027 00:00:00 GMT",
            ]
        );
    }
}
