//! The `Idempotency-Key` header: how it is read, what is told about it, and the mark of a replay (contract: Idempotency).

use std::fmt::Display;

use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};

use crate::code::Code;
use crate::problem::{Entry, Problem};
use crate::violations::Violations;

/// The header in which a client sends its key; in an error's `path` it is written `Idempotency-Key`.
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The header of an answer that was remembered: `true`.
pub const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

const PATH: &str = "Idempotency-Key";
const TRUE: HeaderValue = HeaderValue::from_static("true");

/// How many seconds a client is asked to wait while its first request runs (D49).
const IN_PROGRESS_RETRY_AFTER: u32 = 2;

/// The key that was sent, if any was. `check` takes its bytes; its error is the message, a sentence. A header that is
/// there twice is refused, whatever it says, while a comma is a character of the key (D48, D116).
pub fn read<T, E: Display>(
    headers: &HeaderMap,
    check: impl FnOnce(&[u8]) -> Result<T, E>,
) -> Result<Option<T>, Violations> {
    let mut given = headers.get_all(IDEMPOTENCY_KEY);
    match (given.next(), given.next()) {
        (None, _) => Ok(None),
        (Some(key), None) => check(key.as_bytes())
            .map(Some)
            .map_err(|error| Entry::validation(PATH, error.to_string()).into()),
        (Some(_), Some(_)) => Err(Entry::validation(PATH, "Send this header once.").into()),
    }
}

/// 409: the first request with this key has not ended.
pub fn in_progress() -> Problem {
    let message = "The first request with this Idempotency-Key is still running. Retry in a moment.";
    Problem::new(Code::IdempotencyInProgress, message).retry_after(IN_PROGRESS_RETRY_AFTER)
}

/// 422: the key was used for another request.
pub fn reused() -> Problem {
    let message =
        "This Idempotency-Key was used for a request with another method, path or body. Take a new key.";
    Problem::new(Code::IdempotencyKeyReused, message)
}

/// Marks a remembered answer.
pub fn mark_replayed(headers: &mut HeaderMap) {
    headers.insert(IDEMPOTENT_REPLAYED, TRUE);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(values: &[&str]) -> Result<Option<String>, Vec<(String, String)>> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(IDEMPOTENCY_KEY, HeaderValue::from_str(value).unwrap());
        }
        let check = |key: &[u8]| match key {
            b"" => Err("Must not be empty."),
            key => Ok(String::from_utf8_lossy(key).into_owned()),
        };
        read(&headers, check).map_err(|violations| {
            let entries = violations.into_entries().into_iter();
            entries
                .map(|entry| (entry.path().unwrap().to_owned(), entry.message().to_owned()))
                .collect()
        })
    }

    #[test]
    fn one_header_is_a_key_commas_and_all() {
        assert_eq!(found(&[]), Ok(None));
        assert_eq!(found(&["a, b"]), Ok(Some("a, b".to_owned())));
    }

    #[test]
    fn a_bad_key_and_a_second_header_are_refused_by_name() {
        let refused = |message: &str| Err(vec![("Idempotency-Key".to_owned(), message.to_owned())]);
        assert_eq!(found(&[""]), refused("Must not be empty."));
        assert_eq!(found(&["a", "a"]), refused("Send this header once."));
        assert_eq!(found(&["", ""]), refused("Send this header once."));
    }

    #[test]
    fn who_has_to_wait_is_told_how_long() {
        let trace_id = crate::TraceId::from_random([0; 16]);
        let response = in_progress().into_response(&trace_id);
        assert_eq!(response.status(), 409);
        assert_eq!(response.headers().get("retry-after").unwrap(), "2");
        assert_eq!(reused().status(), 422);
    }
}
