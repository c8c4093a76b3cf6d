//! The access token of a request (RFC 6750 §2.1).

use actix_web::http::header::HeaderMap;
use oauth::{BearerToken, TokenKey};
use web::bearer;

/// The rows to look for, if there is a token that can be one of ours.
pub(crate) fn presented(headers: &HeaderMap) -> Option<TokenKey> {
    BearerToken::parse(bearer::token(headers)?).map(|token| token.key())
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::{AUTHORIZATION, HeaderValue};
    use oauth::TokenKind;
    use uuid::Uuid;

    use super::*;

    fn key(values: &[&str]) -> Option<TokenKey> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
        }
        presented(&headers)
    }

    #[test]
    fn one_token_in_any_spelling_of_the_scheme() {
        let token = BearerToken::from_random(TokenKind::Access, Uuid::from_u128(1).into(), &[7; 32]);
        let text = token.reveal();
        for scheme in ["Bearer", "bearer", "BEARER", "bEaReR "] {
            assert_eq!(key(&[&format!("{scheme} {text}")]), Some(token.key()), "{scheme}");
        }
        for refused in [
            String::new(),
            text.to_owned(),
            format!("Basic {text}"),
            format!("Bearer{text}"),
            format!("Bearer {text} x"),
            format!("Bearer {}", text.replace("ps_at_", "ps_rt_")),
        ] {
            assert_eq!(key(&[&refused]), None, "{refused}");
        }
        let good = format!("Bearer {text}");
        assert_eq!(key(&[&good, &good]), None);
        assert_eq!(key(&[]), None);
    }
}
