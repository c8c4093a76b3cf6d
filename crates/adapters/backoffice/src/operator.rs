//! Who calls: the bearer of an operator's token (RFC 6750 §2.1), and from where.

use std::net::{IpAddr, Ipv4Addr};

use actix_web::dev::RequestHead;
use actix_web::http::header::HeaderMap;
use oauth::SecretHash;
use usecases::ActingOperator;
use web::{Problem, bearer};

use crate::refusal::Refusal;
use crate::state::BackOffice;

/// Refuses a request without a living operator's token. The row is looked at each time, so that a revoked token is
/// refused from the revocation on.
pub(crate) async fn admit(head: &RequestHead, office: &BackOffice) -> Result<ActingOperator, Refusal> {
    let row = match presented(&head.headers) {
        Some(hash) => office.operators.operator(hash).await?,
        None => None,
    };
    let row = row.ok_or_else(|| Problem::unauthorized(&office.settings.realm))?;
    Ok(ActingOperator::Token(row.id, address(head, office)))
}

/// The address that the request came from. A listener always knows its peer; a test's request may have none.
fn address(head: &RequestHead, office: &BackOffice) -> IpAddr {
    let peer = head
        .peer_addr
        .map_or(Ipv4Addr::UNSPECIFIED.into(), |peer| peer.ip());
    let client = office.settings.trusted_proxies.client(peer, &head.headers);
    client.address
}

/// The hash of the token that was sent.
fn presented(headers: &HeaderMap) -> Option<SecretHash> {
    bearer::token(headers).map(SecretHash::of)
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::{AUTHORIZATION, HeaderValue};

    use super::*;

    fn hash(values: &[&str]) -> Option<SecretHash> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
        }
        presented(&headers)
    }

    #[test]
    fn one_token_in_any_spelling_of_the_scheme() {
        for header in ["Bearer ps_op_x", "bearer ps_op_x", "BEARER  ps_op_x"] {
            assert_eq!(hash(&[header]), Some(SecretHash::of("ps_op_x")), "{header}");
        }
        for refused in ["", "ps_op_x", "Basic ps_op_x", "Bearerps_op_x"] {
            assert_eq!(hash(&[refused]), None, "{refused}");
        }
        assert_eq!(hash(&["Bearer ps_op_x", "Bearer ps_op_x"]), None);
        assert_eq!(hash(&[]), None);
    }
}
