//! Credentials in the `Authorization` header: a bearer's token (RFC 6750 §2.1), or a client's id and secret in HTTP Basic
//! (RFC 7617 §2, RFC 6749 §2.3.1).

use std::borrow::Cow;

use actix_web::http::header::{AUTHORIZATION, HeaderMap};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::form::percent_decode;

/// Who a client says it is.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientCredentials {
    /// The id, as it was meant.
    pub client_id: String,
    /// The secret, as it was meant; empty where the client has none.
    pub secret: String,
}

/// Reads the value of an `Authorization` header, or gives nothing where it is none of HTTP Basic. Id and secret are form-encoded
/// within it. Ids and secrets of ours hold neither `%` nor `+`, so clients that leave the encoding out are understood as well.
pub fn basic(value: &str) -> Option<ClientCredentials> {
    let (scheme, encoded) = value.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = STANDARD.decode(encoded.trim_start_matches(' ')).ok()?;
    let text = String::from_utf8(decoded).ok()?;
    let (client_id, secret) = text.split_once(':')?;
    Some(ClientCredentials {
        client_id: plain(client_id)?,
        secret: plain(secret)?,
    })
}

fn plain(part: &str) -> Option<String> {
    percent_decode(&part.replace('+', " ")).map(Cow::into_owned)
}

/// The bearer's token, whatever it is worth, if there is one `Authorization` and it is a bearer's. The scheme is read without
/// regard to case; two headers are none (D12).
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut given = headers.get_all(AUTHORIZATION);
    let (Some(only), None) = (given.next(), given.next()) else {
        return None;
    };
    let (scheme, token) = only.to_str().ok()?.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then(|| token.trim_start_matches(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: &str) -> Option<(String, String)> {
        basic(value).map(|found| (found.client_id, found.secret))
    }

    fn encoded(text: &str) -> String {
        format!("Basic {}", STANDARD.encode(text))
    }

    #[test]
    fn id_and_secret_are_decoded() {
        for (text, id, secret) in [
            ("an-id:a-secret", "an-id", "a-secret"),
            ("an-id:", "an-id", ""),
            (":", "", ""),
            ("a:b:c", "a", "b:c"),
            ("a%3Ab:c%25+d", "a:b", "c% d"),
            ("ż:ł", "ż", "ł"),
        ] {
            let both = Some((id.to_owned(), secret.to_owned()));
            assert_eq!(of(&encoded(text)), both, "{text}");
            let shouted = encoded(text).replace("Basic ", "BASIC   ");
            assert_eq!(of(&shouted), both, "{text}");
        }
    }

    #[test]
    fn what_is_no_basic_header_is_refused() {
        for value in [
            "",
            "Basic",
            "Basic ",
            "Basic !",
            "Bearer QTpC",
            "Basic QTpC=",
            "BasicQTpC",
        ] {
            assert_eq!(of(value), None, "{value}");
        }
        for text in ["no colon", "a:%", "a%4x:b", "a:%00", "a:%ff"] {
            assert_eq!(of(&encoded(text)), None, "{text}");
        }
        assert_eq!(of(&format!("Basic {}", STANDARD.encode(b"a:\xff"))), None);
    }
}
