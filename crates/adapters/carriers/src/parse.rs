//! Lenient parsers of answers: JSON of which only the needed fields must be valid, and instants in the
//! formats that carriers use.

use chrono::{DateTime, Duration, LocalResult, NaiveDateTime, TimeZone, Utc};
use chrono_tz::Europe::Warsaw;
use serde_json::Value;

use crate::{apis::LookupFailure, http::Response};

/// The JSON of an answer with status 200. Other statuses are failures: "no such parcel" if `is_not_found`
/// holds, a rejected request for 400 and 422 with JSON, else an error of the carrier.
pub(crate) fn answer(
    answer: &Response,
    is_not_found: impl Fn(&Value) -> bool,
) -> Result<Value, LookupFailure> {
    match (answer.status.as_u16(), object(&answer.body)) {
        (200, body) => body,
        (_, Ok(body)) if is_not_found(&body) => Err(LookupFailure::NotFound),
        (code @ (400 | 422), Ok(_)) => Err(LookupFailure::Refused(format!("HTTP status {code}"))),
        (code, _) => Err(LookupFailure::Status(code)),
    }
}

/// Parses a JSON object.
pub(crate) fn object(body: &[u8]) -> Result<Value, LookupFailure> {
    let value: Value = serde_json::from_slice(body).map_err(|_| LookupFailure::Unreadable("not JSON"))?;
    if value.is_object() {
        Ok(value)
    } else {
        Err(LookupFailure::Unreadable("not a JSON object"))
    }
}

/// The value at a JSON pointer (RFC 6901) as text: some carriers quote numbers and booleans.
pub(crate) fn text(value: &Value, pointer: &str) -> Option<String> {
    match value.pointer(pointer)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

pub(crate) fn integer(value: &Value, pointer: &str) -> Option<i64> {
    text(value, pointer)?.trim().parse().ok()
}

pub(crate) fn flag(value: &Value, pointer: &str) -> bool {
    text(value, pointer).is_some_and(|text| text == "true")
}

pub(crate) fn time(value: &Value, pointer: &str) -> Option<DateTime<Utc>> {
    instant(&text(value, pointer)?)
}

/// The elements at a pointer. A single object is a list of one; anything else is an empty list.
pub(crate) fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    match value.pointer(pointer) {
        Some(Value::Array(elements)) => elements,
        Some(single @ Value::Object(_)) => std::slice::from_ref(single),
        _ => &[],
    }
}

/// The first element of a list with `key` equal to `wanted`.
pub(crate) fn find<'a>(value: &'a Value, pointer: &str, key: &str, wanted: &str) -> Option<&'a Value> {
    let mut elements = list(value, pointer).iter();
    elements.find(|element| text(element, key).as_deref() == Some(wanted))
}

/// Parses an instant. Without an offset it is Polish local time. A leap second is the next minute's first.
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
    .and_then(|at| at.timestamp_nanos_opt())
    .map(DateTime::from_timestamp_nanos)
}

/// Converts Polish local time. An ambiguous time is the first of the two; a time in the skipped hour is read
/// with the offset before the change.
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
    fn an_instant_has_an_offset_or_is_polish_time() {
        for (text, instant) in [
            ("2026-07-06T12:00:00Z", Some("2026-07-06T12:00:00Z")),
            ("2026-07-06T14:00:00.000+02:00", Some("2026-07-06T12:00:00Z")),
            ("2026-07-06T14:00:00+0200", Some("2026-07-06T12:00:00Z")),
            (" 2026-07-06 14:00:00+0200 ", Some("2026-07-06T12:00:00Z")),
            (
                "2026-07-06T14:00:00.331986369+02:00",
                Some("2026-07-06T12:00:00.331986369Z"),
            ),
            ("2026-07-06T11:59:60Z", Some("2026-07-06T12:00:00Z")),
            ("2026-01-06T12:00:00", Some("2026-01-06T11:00:00Z")),
            ("2026-07-06 12:00", Some("2026-07-06T10:00:00Z")),
            // 25 October 2026, 03:00 becomes 02:00: the hour from 02:00 on occurs twice.
            ("2026-10-25T01:59:59", Some("2026-10-24T23:59:59Z")),
            ("2026-10-25T02:30:00", Some("2026-10-25T00:30:00Z")),
            ("2026-10-25T03:00:00", Some("2026-10-25T02:00:00Z")),
            // 29 March 2026, 02:00 becomes 03:00: the hour from 02:00 on is skipped.
            ("2026-03-29T01:59:59", Some("2026-03-29T00:59:59Z")),
            ("2026-03-29T02:30:00", Some("2026-03-29T01:30:00Z")),
            ("2026-03-29T03:00:00", Some("2026-03-29T01:00:00Z")),
            ("", None),
            ("yesterday", None),
            ("2026-02-30T12:00:00", None),
            ("12:00", None),
            ("2026-01-06T25:00:00", None),
            ("-262144-01-01T00:00:00", None),
        ] {
            assert_eq!(utc(text).as_deref(), instant, "{text}");
        }
    }
}
