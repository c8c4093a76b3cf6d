//! Credentials in the `Authorization` header: a bearer token (RFC 6750 §2.1), or client id and secret as HTTP
//! Basic (RFC 7617 §2, RFC 6749 §2.3.1).

use actix_web::http::header::{AUTHORIZATION, HeaderMap};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::form::form_decode;
use crate::head::only;

/// The credentials that a client presents.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientCredentials {
    /// The decoded id.
    pub client_id: String,
    /// The decoded secret; empty if the client sends none.
    pub secret: String,
}

/// Parses the value of an `Authorization` header; `None` if it is not HTTP Basic. Id and secret are
/// form-encoded in it. Our ids and secrets contain neither `%` nor `+`, so clients that skip the encoding
/// work as well.
pub fn basic(value: &str) -> Option<ClientCredentials> {
    let (scheme, encoded) = value.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = STANDARD.decode(encoded.trim_start_matches(' ')).ok()?;
    let text = String::from_utf8(decoded).ok()?;
    let (client_id, secret) = text.split_once(':')?;
    Some(ClientCredentials {
        client_id: form_decode(client_id)?,
        secret: form_decode(secret)?,
    })
}

/// The unverified bearer token, if there is a single `Authorization` header with the scheme `Bearer`. The
/// scheme is case-insensitive; a repeated header counts as absent (D12).
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = only(headers, AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then(|| token.trim_start_matches(' '))
}
