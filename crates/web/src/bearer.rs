//! The token that a request carries in its `Authorization` header (RFC 6750 §2.1).

use actix_web::http::header::{AUTHORIZATION, HeaderMap};

/// The bearer's token, whatever it is worth, if there is one `Authorization` and it is a bearer's. The scheme is read without
/// regard to case; two headers are none (D12).
pub fn token(headers: &HeaderMap) -> Option<&str> {
    let mut given = headers.get_all(AUTHORIZATION);
    let (Some(only), None) = (given.next(), given.next()) else {
        return None;
    };
    let (scheme, token) = only.to_str().ok()?.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then(|| token.trim_start_matches(' '))
}
