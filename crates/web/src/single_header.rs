//! Headers that a request may have once.

use std::fmt::Display;

use actix_web::http::header::{HeaderMap, HeaderName, IF_MATCH};
use offers::IfMatch;

use crate::problem::{Entry, to_sentence};
use crate::violations::Violations;

/// The parsed value of a header that may be sent once; `path` is its name in a violation.
pub(crate) fn at_most_once<T, E: Display>(
    headers: &HeaderMap,
    name: HeaderName,
    path: &'static str,
    parse: impl FnOnce(&[u8]) -> Result<T, E>,
) -> Result<Option<T>, Violations> {
    let mut given = headers.get_all(name);
    match (given.next(), given.next()) {
        (None, _) => Ok(None),
        (Some(one), None) => parse(one.as_bytes())
            .map(Some)
            .map_err(|invalid| Entry::validation(path, to_sentence(&invalid)).into()),
        (Some(_), Some(_)) => Err(Entry::validation(path, "Send this header once.").into()),
    }
}

/// `If-Match` (RFC 9110 §13.1.1): a change of nothing but what the client has seen. Lists are refused.
pub fn if_match(headers: &HeaderMap) -> Result<Option<IfMatch>, Violations> {
    // A foreign tag may hold any bytes; ours are ASCII.
    let parse = |tag: &[u8]| IfMatch::parse(&String::from_utf8_lossy(tag));
    at_most_once(headers, IF_MATCH, "If-Match", parse)
}
