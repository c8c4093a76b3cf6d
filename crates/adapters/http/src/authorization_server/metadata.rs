//! `/.well-known/oauth-authorization-server`: what clients discover the server by (RFC 8414).

use actix_web::http::StatusCode;
use oauth::Scope;
use serde::Serialize;
use web::reply;

use super::Endpoint;
use super::grant_type::GrantType;
use crate::arrival::Arrival;
use crate::listener::{Answer, Listener};

/// Where the document is (RFC 8414 §3).
pub(crate) const METADATA_PATH: &str = "/.well-known/oauth-authorization-server";

/// `operationId`.
pub(super) const METADATA_ID: &str = "getAuthorizationServerMetadata";

/// How clients prove who they are, at the token endpoint as at revocation (D86).
const AUTHENTICATION: [&str; 3] = ["client_secret_basic", "client_secret_post", "none"];

/// What the server has.
#[derive(Serialize)]
struct Metadata<'a> {
    issuer: &'a str,
    authorization_endpoint: String,
    token_endpoint: String,
    revocation_endpoint: String,
    scopes_supported: Vec<&'static str>,
    response_types_supported: [&'static str; 1],
    response_modes_supported: [&'static str; 1],
    grant_types_supported: Vec<&'static str>,
    token_endpoint_auth_methods_supported: [&'static str; 3],
    revocation_endpoint_auth_methods_supported: [&'static str; 3],
    code_challenge_methods_supported: [&'static str; 1],
    authorization_response_iss_parameter_supported: bool,
    service_documentation: &'a str,
}

/// Answers a request for the document.
pub(crate) fn metadata(listener: &Listener, arrival: Arrival) -> Answer {
    Answer::document(arrival, METADATA_PATH, |arrival| {
        let settings = &listener.public.settings;
        let document = document(&settings.public_url, &settings.docs_url);
        let mut response = reply::json(StatusCode::OK, document, &arrival.trace_id);
        let query = arrival.request.uri().query();
        listener.notices.write(METADATA_ID, query, response.headers_mut());
        response
    })
}

/// The document of a server at this origin.
pub(super) fn document(issuer: &str, docs_url: &str) -> Vec<u8> {
    let at = |endpoint: Endpoint| format!("{issuer}{}", endpoint.path());
    let metadata = Metadata {
        issuer,
        authorization_endpoint: at(Endpoint::Authorize),
        token_endpoint: at(Endpoint::Token),
        revocation_endpoint: at(Endpoint::Revoke),
        scopes_supported: Scope::ALL.iter().map(|scope| scope.as_str()).collect(),
        response_types_supported: ["code"],
        response_modes_supported: ["query"],
        grant_types_supported: GrantType::ALL.map(GrantType::as_str).to_vec(),
        token_endpoint_auth_methods_supported: AUTHENTICATION,
        revocation_endpoint_auth_methods_supported: AUTHENTICATION,
        code_challenge_methods_supported: ["S256"],
        authorization_response_iss_parameter_supported: true,
        service_documentation: docs_url,
    };
    // Strings only: this cannot fail to serialise.
    serde_json::to_vec(&metadata).unwrap_or_default()
}
