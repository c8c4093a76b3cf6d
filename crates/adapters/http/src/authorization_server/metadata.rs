//! `/.well-known/oauth-authorization-server`: the metadata document of the server (RFC 8414).

use actix_web::http::StatusCode;
use oauth::Scope;
use web::request::{Answer, Request};
use web::response;
use web::schema::Node;

use super::Endpoint;
use super::token::GrantType;
use crate::Public;

/// The path of the document (RFC 8414 §3).
pub(crate) const METADATA_PATH: &str = "/.well-known/oauth-authorization-server";

/// The client authentication methods, at the token endpoint and at revocation (D86).
const AUTHENTICATION: [&str; 3] = ["client_secret_basic", "client_secret_post", "none"];

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
    let at = |endpoint: Endpoint| Node::from(format!("{issuer}{}", endpoint.as_str()));
    let metadata = Node::of([
        ("issuer", issuer.into()),
        ("authorization_endpoint", at(Endpoint::Authorize)),
        ("token_endpoint", at(Endpoint::Token)),
        ("revocation_endpoint", at(Endpoint::Revoke)),
        ("scopes_supported", list(Scope::ALL.map(Scope::as_str))),
        ("response_types_supported", list(["code"])),
        ("response_modes_supported", list(["query"])),
        (
            "grant_types_supported",
            list(GrantType::ALL.map(GrantType::as_str)),
        ),
        ("token_endpoint_auth_methods_supported", list(AUTHENTICATION)),
        ("revocation_endpoint_auth_methods_supported", list(AUTHENTICATION)),
        ("code_challenge_methods_supported", list(["S256"])),
        ("authorization_response_iss_parameter_supported", true.into()),
        ("service_documentation", docs_url.into()),
    ]);
    metadata.to_string().into_bytes()
}

fn list(words: impl IntoIterator<Item = &'static str>) -> Node {
    let words: Vec<_> = words.into_iter().map(Node::from).collect();
    words.into()
}
