//! `/.well-known/oauth-authorization-server`: the metadata document of the server (RFC 8414).

use actix_web::http::StatusCode;
use oauth::Scope;
use serde::Serialize;
use web::request::{Answer, Request};
use web::response;

use super::Endpoint;
use super::token::GrantType;
use crate::Public;

/// The path of the document (RFC 8414 §3).
pub(crate) const METADATA_PATH: &str = "/.well-known/oauth-authorization-server";

/// The client authentication methods, at the token endpoint and at revocation (D86).
const AUTHENTICATION: [&str; 3] = ["client_secret_basic", "client_secret_post", "none"];

/// The members of the document.
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
pub(crate) fn metadata(public: &Public, request: Request) -> Answer {
    request.answer_document(METADATA_PATH, |trace_id| {
        let service = &public.ports.service;
        let document = document(&service.public_url, &service.docs_url);
        response::json(StatusCode::OK, document, trace_id)
    })
}

/// The document for a server with this origin.
pub(crate) fn document(issuer: &str, docs_url: &str) -> Vec<u8> {
    let at = |endpoint: Endpoint| format!("{issuer}{}", endpoint.as_str());
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
    // Only strings: serialisation cannot fail.
    serde_json::to_vec(&metadata).unwrap_or_default()
}
