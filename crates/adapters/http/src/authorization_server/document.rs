//! What the document says of the authorization server (contract: Authentication endpoints).

mod answers;
mod requests;

use web::schema::{Map, Node};

use super::Endpoint;
use super::metadata::METADATA_PATH;
use crate::declared::Tag;
use crate::document::security;

/// Adds the endpoints and the metadata.
pub(crate) fn add(paths: &mut Map, public_url: &str) {
    for endpoint in Endpoint::ALL {
        let (method, operation) = operation(endpoint);
        paths.insert(endpoint.path().to_owned(), Node::of([(method, operation)]));
    }
    let metadata = head(
        "getAuthorizationServerMetadata",
        "Read what the server has",
        METADATA,
    )
    .with("security", Vec::new())
    .with("parameters", vec![request_id()])
    .with("responses", answers::of_metadata(public_url));
    paths.insert(METADATA_PATH.to_owned(), Node::of([("get", metadata)]));
}

const AUTHORIZE: &str = "\
Where a client sends the seller's browser. The browser goes on to the consent screen, or, where the request is wrong in a way that \
the client is to know, back to `redirect_uri` with `error`, `error_description`, `state` and `iss`. After the seller's consent it comes \
back with `code`, `state` and `iss` (RFC 9207), after a refusal with `error=access_denied`, `state` and `iss`. All parameters are \
required. Others are passed over, but no name may come twice. 60 calls a minute are admitted from one address.";

const TOKEN: &str = "\
Issues an access token: over the application's own account (`client_credentials`), for a code (`authorization_code`, PKCE S256 \
mandatory), or for a refresh token (`refresh_token`). The client proves itself by HTTP Basic or by `client_id` and `client_secret` \
in the body; a public client sends its `client_id` alone. Codes and refresh tokens can be used once: a second use ends every token \
that came of the consent. 30 calls a minute from one address and 60 of one client, together with `/oauth/revoke`.";

const REVOKE: &str = "\
Ends a token (RFC 7009): a refresh token with everything that came of its consent, an access token alone. A token that is \
unknown, or another client's, is answered alike and left alone. The client proves itself as at the token endpoint.";

const METADATA: &str = "What clients discover the authorization server by (RFC 8414).";

fn operation(endpoint: Endpoint) -> (&'static str, Node) {
    match endpoint {
        Endpoint::Authorize => (
            "get",
            head("authorize", "Ask a seller for consent", AUTHORIZE)
                .with("security", Vec::new())
                .with("parameters", requests::of_authorize(request_id()))
                .with("responses", answers::of_authorize()),
        ),
        Endpoint::Token => (
            "post",
            head("issueToken", "Issue tokens", TOKEN)
                .with("security", security::of_client())
                .with("parameters", vec![request_id()])
                .with("requestBody", requests::of_token())
                .with("responses", answers::of_token()),
        ),
        Endpoint::Revoke => (
            "post",
            head("revokeToken", "Revoke a token", REVOKE)
                .with("security", security::of_client())
                .with("parameters", vec![request_id()])
                .with("requestBody", requests::of_revoke())
                .with("responses", answers::of_revoke()),
        ),
    }
}

fn head(id: &str, summary: &str, description: &str) -> Node {
    Node::of([
        ("operationId", id.into()),
        ("tags", vec![Tag::Authorization.name().into()].into()),
        ("summary", summary.into()),
        ("description", description.into()),
    ])
}

fn request_id() -> Node {
    Node::of([("$ref", "#/components/parameters/RequestId".into())])
}
