//! Instants in the forms in which carriers write them.

use chrono::{DateTime, Duration, LocalResult, NaiveDateTime, TimeZone, Utc};
use chrono_tz::Europe::Warsaw;

/// An instant with or without an offset; without one it is Polish local time.
pub(crate) fn instant(text: &str) -> Option<DateTime<Utc>> {
    let text = text.trim();
    let offset = DateTime::parse_from_rfc3339(text)
        .or_else(|_| DateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f%z"))
        .or_else(|_| DateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f%z"));
    match offset {
        Ok(at) => Some(at.to_utc()),
        Err(_) => [
            "%Y-%m-%dT%H:%M:%S%.f",
            "%Y-%m-%d %H:%M:%S%.f",
            "%Y-%m-%dT%H:%M",
            "%Y-%m-%d %H:%M",
        ]
        .into_iter()
        .find_map(|form| NaiveDateTime::parse_from_str(text, form).ok())
        .and_then(in_poland),
    }
}

/// A Polish wall clock's instant. An hour that the clock shows twice is its first pass; one that it skips is read as if it
/// had not been put forward yet.
pub(crate) fn in_poland(wall: NaiveDateTime) -> Option<DateTime<Utc>> {
    let hour = Duration::hours(1);
    match Warsaw.from_local_datetime(&wall) {
        LocalResult::Single(at) | LocalResult::Ambiguous(at, _) => Some(at.to_utc()),
        LocalResult::None => {
            let before = Warsaw
                .from_local_datetime(&wall.checked_sub_signed(hour)?)
                .earliest()?;
            before.to_utc().checked_add_signed(hour)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utc(text: &str) -> Option<String> {
        instant(text).map(|at| at.format("%Y-%m-%dT%H:%M:%S%.fZ").to_string())
    }

    #[test]
    fn offsets_are_kept() {
        for text in [
            "2026-07-06T12:00:00Z",
            "2026-07-06T14:00:00+02:00",
            "2026-07-06T14:00:00.000+02:00",
            "2026-07-06T14:00:00+0200",
            " 2026-07-06 14:00:00+0200 ",
        ] {
            assert_eq!(utc(text).as_deref(), Some("2026-07-06T12:00:00Z"), "{text}");
        }
        assert_eq!(
            utc("2026-07-06T14:00:00.331986369+02:00").as_deref(),
            Some("2026-07-06T12:00:00.331986369Z")
        );
    }

    #[test]
    fn without_an_offset_it_is_polish_time() {
        assert_eq!(
            utc("2026-01-06T12:00:00").as_deref(),
            Some("2026-01-06T11:00:00Z")
        );
        assert_eq!(utc("2026-07-06 12:00").as_deref(), Some("2026-07-06T10:00:00Z"));
        // 25 October 2026, 03:00 becomes 02:00: the hour from 02:00 on comes twice.
        assert_eq!(
            utc("2026-10-25T01:59:59").as_deref(),
            Some("2026-10-24T23:59:59Z")
        );
        assert_eq!(
            utc("2026-10-25T02:30:00").as_deref(),
            Some("2026-10-25T00:30:00Z")
        );
        assert_eq!(
            utc("2026-10-25T03:00:00").as_deref(),
            Some("2026-10-25T02:00:00Z")
        );
        // 29 March 2026, 02:00 becomes 03:00: the hour from 02:00 on does not come.
        assert_eq!(
            utc("2026-03-29T01:59:59").as_deref(),
            Some("2026-03-29T00:59:59Z")
        );
        assert_eq!(
            utc("2026-03-29T02:30:00").as_deref(),
            Some("2026-03-29T01:30:00Z")
        );
        assert_eq!(
            utc("2026-03-29T03:00:00").as_deref(),
            Some("2026-03-29T01:00:00Z")
        );
    }

    #[test]
    fn anything_else_is_no_time() {
        for text in [
            "",
            "yesterday",
            "2026-02-30T12:00:00",
            "12:00",
            "2026-01-06T25:00:00",
            "-262144-01-01T00:00:00",
        ] {
            assert_eq!(utc(text), None, "{text}");
        }
    }
}
