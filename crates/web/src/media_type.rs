//! The media type of a request body.

use actix_web::http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue};

use crate::head::only;
use crate::problem::Entry;
use crate::violations::Violations;

const NDJSON: [&str; 3] = ["application/x-ndjson", "application/ndjson", "application/jsonl"];

/// The accepted media types of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaType {
    /// `application/json`
    Json,
    /// `application/x-www-form-urlencoded`
    Form,
    /// One JSON object on each line: `application/x-ndjson`, or its common aliases `application/ndjson` and
    /// `application/jsonl`.
    NdJson,
}

impl MediaType {
    /// The type in the single `Content-Type`, if it is accepted and its charset is absent or UTF-8; both are
    /// case-insensitive (D8, D112). Other parameters are ignored.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let sent = only(headers, CONTENT_TYPE)?;
        let mut parts = sent.to_str().ok()?.split(';').map(str::trim);
        let kind = match parts.next()? {
            name if name.eq_ignore_ascii_case("application/json") => Self::Json,
            name if name.eq_ignore_ascii_case("application/x-www-form-urlencoded") => Self::Form,
            name if NDJSON.iter().any(|ours| name.eq_ignore_ascii_case(ours)) => Self::NdJson,
            _ => return None,
        };
        parts.all(is_utf8_compatible).then_some(kind)
    }

    /// Requires an uncompressed body of this type. Otherwise there is one violation with the path `Content-Type` or
    /// `Content-Encoding` (D8).
    pub fn require(self, headers: &HeaderMap) -> Result<(), Violations> {
        if is_compressed(headers) {
            let message = "Must be absent: compressed bodies are not supported.";
            return Err(Entry::validation("Content-Encoding", message).into());
        }
        if Self::of(headers) == Some(self) {
            return Ok(());
        }
        let message = match self {
            Self::Json => "Must be application/json, in UTF-8, and sent once.",
            Self::Form => "Must be application/x-www-form-urlencoded, in UTF-8, and sent once.",
            Self::NdJson => "Must be application/x-ndjson, in UTF-8, and sent once.",
        };
        Err(Entry::validation("Content-Type", message).into())
    }
}

/// Whether a body has a coding other than `identity`: none is supported.
pub fn is_compressed(headers: &HeaderMap) -> bool {
    let plain = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"identity");
    !headers.get_all(CONTENT_ENCODING).all(plain)
}

/// Whether a parameter is compatible with UTF-8. The value may be quoted (RFC 9110 §5.6.6).
fn is_utf8_compatible(parameter: &str) -> bool {
    let Some((name, value)) = parameter.split_once('=') else {
        return parameter.is_empty();
    };
    let bare = value
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .unwrap_or(value);
    !name.eq_ignore_ascii_case("charset") || bare.eq_ignore_ascii_case("utf-8")
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    #[test]
    fn a_type_is_known_with_utf_8_or_no_charset() {
        let json = Some(MediaType::Json);
        for (values, expected) in [
            (
                "application/json|Application/JSON|application/json; charset=utf-8|application/json; profile=x",
                json,
            ),
            (
                "application/json;charset=UTF-8|application/json ; Charset=\"Utf-8\" ;",
                json,
            ),
            ("application/x-www-form-urlencoded", Some(MediaType::Form)),
            (NDJSON.join("|").as_str(), Some(MediaType::NdJson)),
            (
                "|json|text/json|application/json-patch+json|application/problem+json",
                None,
            ),
            (
                "application/json; charset=latin1|application/json; charset=utf-8; charset=utf-16",
                None,
            ),
            (
                "application/json; charset|application/json, application/json",
                None,
            ),
        ] {
            for value in values.split('|') {
                let mut headers = HeaderMap::new();
                assert_eq!(MediaType::of(&headers), None);
                headers.append(CONTENT_TYPE, HeaderValue::from_str(value).unwrap());
                assert_eq!(MediaType::of(&headers), expected, "{value}");
                headers.append(CONTENT_TYPE, HeaderValue::from_str(value).unwrap());
                assert_eq!(MediaType::of(&headers), None, "{value} twice");
            }
        }
    }
}
