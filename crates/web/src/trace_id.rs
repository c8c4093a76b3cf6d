//! The id of a request: in `X-Trace-Id`, an error's `traceId` and the log. Not the W3C trace id, which is `otel_trace_id` there.

use std::fmt;

use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use uuid::Uuid;

use crate::head::only;

/// The header in which a client may propose the trace id (contract: Common rules).
const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The header of every response that carries the trace id (contract: Common rules).
pub(crate) const X_TRACE_ID: HeaderName = HeaderName::from_static("x-trace-id");

const MIN_LENGTH: usize = 8;
const MAX_LENGTH: usize = 64;

/// 8 to 64 characters of `[A-Za-z0-9._:-]` (contract: Limits). Stored inline, so copying it allocates
/// nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TraceId {
    bytes: [u8; MAX_LENGTH],
    length: u8,
}

impl TraceId {
    /// The trace id of a request with these headers: its single `X-Request-Id` if valid, otherwise an id made
    /// of `random`, which is called only then. An invalid or repeated header is ignored (D13).
    pub fn of(headers: &HeaderMap, random: impl FnOnce() -> [u8; 16]) -> Self {
        let proposed = only(headers, X_REQUEST_ID).and_then(|sent| Self::parse(sent.as_bytes()));
        proposed.unwrap_or_else(|| Self::from_random(random()))
    }

    /// The id with this text; `None` if the text is not a valid id.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"._:-".contains(byte);
        if text.len() < MIN_LENGTH || !text.iter().all(allowed) {
            return None;
        }
        let mut bytes = [0; MAX_LENGTH];
        bytes.get_mut(..text.len())?.copy_from_slice(text);
        Some(Self {
            bytes,
            length: u8::try_from(text.len()).ok()?,
        })
    }

    /// A new id: 16 random bytes as 32 lower-case hexadecimal digits.
    pub fn from_random(random: [u8; 16]) -> Self {
        let mut bytes = [0; MAX_LENGTH];
        Uuid::from_bytes(random).simple().encode_lower(&mut bytes);
        Self { bytes, length: 32 }
    }

    pub fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..usize::from(self.length)).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }

    /// The value of `X-Trace-Id`.
    pub fn to_header_value(&self) -> HeaderValue {
        HeaderValue::from_str(self.as_str()).unwrap_or(HeaderValue::from_static(""))
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TraceId").field(&self.as_str()).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_id_is_accepted_if_and_only_if_it_has_the_format(text in "[A-Za-z0-9._:;/ é-]{0,70}") {
            let follows = (8..=64).contains(&text.len())
                && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ':' | '-'));
            let parsed = TraceId::parse(text.as_bytes());
            prop_assert_eq!(parsed.is_some(), follows);
            if let Some(id) = parsed {
                prop_assert_eq!(id.as_str(), text.as_str());
            }
        }
    }
}
