//! `If-Match` (RFC 9110 §13.1.1): a change of nothing but what the client has seen.

use actix_web::http::header::{HeaderMap, IF_MATCH};
use offers::IfMatch;

use crate::problem::{Entry, to_sentence};
use crate::violations::Violations;

/// The header's name in an error's `path`.
const PATH: &str = "If-Match";

/// The condition in the header. Lists are refused, and several lines too.
pub fn if_match(headers: &HeaderMap) -> Result<Option<IfMatch>, Violations> {
    let mut given = headers.get_all(IF_MATCH);
    let condition = match (given.next(), given.next()) {
        (None, _) => return Ok(None),
        (Some(one), None) => {
            // A foreign tag may hold any bytes; ours are ASCII.
            let text = String::from_utf8_lossy(one.as_bytes());
            IfMatch::parse(&text).map_err(|invalid| to_sentence(&invalid))
        }
        (Some(_), Some(_)) => Err("Send this header once.".to_owned()),
    };
    condition
        .map(Some)
        .map_err(|message| Entry::validation(PATH, message).into())
}
