//! Telling clients in good time that something goes away: `Deprecation` (RFC 9745), `Sunset` (RFC 8594) and `Link`.

use std::fmt;
use std::time::SystemTime;

use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue, HttpDate, LINK};
use chrono::{DateTime, NaiveDate, NaiveTime, Utc};

const DEPRECATION: HeaderName = HeaderName::from_static("deprecation");
const SUNSET: HeaderName = HeaderName::from_static("sunset");

/// That something is not to be used any more, and until when it can be.
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
    /// From this day on (0:00 UTC) it is deprecated; it may lie ahead.
    pub since: DateTime<Utc>,
    /// From this day on (0:00 UTC) it is gone, where that is known.
    pub sunset: Option<DateTime<Utc>>,
    /// What to use instead: a sentence (Markdown).
    pub instead: &'static str,
    /// Where more is said about it: a URI reference.
    pub link: Option<&'static str>,
}

/// The beginning of a day in UTC, for constants.
///
/// # Panics
///
/// Where the calendar has no such day; of a constant, while the program is compiled.
#[expect(clippy::expect_used, reason = "found where the program is compiled")]
pub const fn day(year: i32, month: u32, day: u32) -> DateTime<Utc> {
    let date = NaiveDate::from_ymd_opt(year, month, day).expect("the calendar has no such day");
    date.and_time(NaiveTime::MIN).and_utc()
}

/// Sets the headers for all of these. `Deprecation` and `Sunset` have room for one date: the earliest is the one to heed.
pub fn write<'a>(notices: impl Iterator<Item = &'a Deprecation> + Clone, headers: &mut HeaderMap) {
    let mut set = |name: HeaderName, value: Option<String>| {
        if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
            headers.append(name, value);
        }
    };
    let since = notices.clone().map(|notice| notice.since).min();
    set(DEPRECATION, since.map(|since| format!("@{}", since.timestamp())));
    let sunset = notices.clone().filter_map(|notice| notice.sunset).min();
    let as_http = |sunset| HttpDate::from(SystemTime::from(sunset)).to_string();
    set(SUNSET, sunset.map(as_http));
    for notice in notices {
        let link = |relation| notice.link.map(|link| format!("<{link}>; rel=\"{relation}\""));
        set(LINK, link("deprecation"));
        if notice.sunset.is_some() {
            set(LINK, link("sunset"));
        }
    }
}

impl fmt::Display for Deprecation {
    /// As the document tells it.
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

    const EARLY: Deprecation = Deprecation {
        since: day(2027, 1, 15),
        sunset: None,
        instead: "Use the other.",
        link: Some("/docs/early"),
    };
    const LATE: Deprecation = Deprecation {
        since: day(2027, 2, 1),
        sunset: Some(day(2027, 8, 1)),
        instead: "Use another.",
        link: Some("/docs/late"),
    };

    fn written(notices: &[Deprecation]) -> Vec<(String, String)> {
        let mut headers = HeaderMap::new();
        write(notices.iter(), &mut headers);
        let mut written: Vec<_> = headers
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect();
        written.sort();
        written
    }

    fn are(written: &[(String, String)], expected: &[(&str, &str)]) {
        let written: Vec<_> = written
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(written, expected);
    }

    #[test]
    fn nothing_is_said_of_nothing() {
        are(&written(&[]), &[]);
    }

    #[test]
    fn one_notice_says_what_it_knows() {
        are(
            &written(&[EARLY]),
            &[
                ("deprecation", "@1799971200"),
                ("link", "</docs/early>; rel=\"deprecation\""),
            ],
        );
    }

    #[test]
    fn of_several_the_earliest_dates_are_told_and_every_link() {
        are(
            &written(&[LATE, EARLY]),
            &[
                ("deprecation", "@1799971200"),
                ("link", "</docs/early>; rel=\"deprecation\""),
                ("link", "</docs/late>; rel=\"deprecation\""),
                ("link", "</docs/late>; rel=\"sunset\""),
                ("sunset", "Sun, 01 Aug 2027 00:00:00 GMT"),
            ],
        );
    }
}
