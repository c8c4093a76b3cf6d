//! `/.well-known/oauth-authorization-server`: what clients discover the server by (RFC 8414).

use actix_web::http::{Method, StatusCode};
use oauth::Scope;
use serde::Serialize;
use web::{Entry, Problem, head, reply};

use super::grant_type::GrantType;
use crate::arrival::Arrival;
use crate::listener::{Answer, Listener};

/// Where the document is (RFC 8414 §3).
pub(crate) const METADATA_PATH: &str = "/.well-known/oauth-authorization-server";

/// What the server has today. It has no authorization endpoint, so there are no response types; the member is there all
/// the same, since RFC 8414 §2 requires it.
#[derive(Serialize)]
struct Metadata<'a> {
    issuer: &'a str,
    token_endpoint: String,
    scopes_supported: Vec<&'static str>,
    response_types_supported: [&'static str; 0],
    grant_types_supported: Vec<&'static str>,
    token_endpoint_auth_methods_supported: [&'static str; 3],
}

/// Answers a request for the document.
pub(crate) fn metadata(listener: &Listener, arrival: Arrival) -> Answer {
    let (response, closes) = match (head::check(arrival.request.head()), arrival.request.method()) {
        (Err(excess), _) => {
            let problem = Problem::from(Entry::from(excess));
            (problem.into_response(&arrival.trace_id), true)
        }
        (Ok(()), &Method::GET | &Method::HEAD) => {
            let document = document(&listener.public.settings.public_url);
            (reply::json(StatusCode::OK, document, &arrival.trace_id), false)
        }
        (Ok(()), _) => (
            Problem::wrong_method("GET").into_response(&arrival.trace_id),
            false,
        ),
    };
    Answer {
        response: arrival.end(response, closes),
        route: METADATA_PATH,
    }
}

fn document(issuer: &str) -> Vec<u8> {
    let metadata = Metadata {
        issuer,
        token_endpoint: format!("{issuer}{}", super::TOKEN_PATH),
        scopes_supported: Scope::ALL.iter().map(|scope| scope.as_str()).collect(),
        response_types_supported: [],
        grant_types_supported: GrantType::ALL.map(GrantType::as_str).to_vec(),
        token_endpoint_auth_methods_supported: ["client_secret_basic", "client_secret_post", "none"],
    };
    // Strings only: this cannot fail to serialise.
    serde_json::to_vec(&metadata).unwrap_or_default()
}
