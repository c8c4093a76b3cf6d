//! What the document says of the authorization server (contract: Authentication endpoints).

mod answers;
mod requests;
mod returning;

use web::schema::{Map, Node};

use super::Endpoint;
use super::metadata::{METADATA_ID, METADATA_PATH};
use crate::declared::Tag;
use crate::deprecated::Ending;
use crate::document::security;

/// An endpoint, told.
pub(crate) struct Told {
    /// `operationId`.
    pub(crate) id: &'static str,
    /// In lower case.
    pub(crate) method: String,
    pub(crate) path: &'static str,
    pub(crate) operation: Node,
}

/// Adds the endpoints and the metadata, of which these go away.
pub(crate) fn add(paths: &mut Map, ending: &[Ending], public_url: &str) {
    for told in all(public_url) {
        let notice = ending.iter().find(|(id, _)| *id == told.id);
        let operation = match notice {
            Some((_, notice)) => told.operation.marked(notice),
            None => told.operation,
        };
        paths.insert(
            told.path.to_owned(),
            Node::of([(told.method.as_str(), operation)]),
        );
    }
}

/// The endpoints and the metadata.
pub(crate) fn all(public_url: &str) -> Vec<Told> {
    let told = |endpoint: Endpoint| Told {
        id: endpoint.id(),
        method: endpoint.method().to_ascii_lowercase(),
        path: endpoint.path(),
        operation: operation(endpoint),
    };
    let mut all: Vec<_> = Endpoint::ALL.into_iter().map(told).collect();
    all.push(Told {
        id: METADATA_ID,
        method: "get".to_owned(),
        path: METADATA_PATH,
        operation: head(METADATA_ID, "Read what the server has", METADATA)
            .with("security", Vec::new())
            .with("parameters", vec![request_id()])
            .with("responses", answers::of_metadata(public_url)),
    });
    all
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

fn operation(endpoint: Endpoint) -> Node {
    let id = endpoint.id();
    match endpoint {
        Endpoint::Authorize => head(id, "Ask a seller for consent", AUTHORIZE)
            .with("security", Vec::new())
            .with("parameters", requests::of_authorize(request_id()))
            .with("responses", answers::of_authorize())
            .with("callbacks", returning::callbacks()),
        Endpoint::Token => head(id, "Issue tokens", TOKEN)
            .with("security", security::of_client())
            .with("parameters", vec![request_id()])
            .with("requestBody", requests::of_token())
            .with("responses", answers::of_token()),
        Endpoint::Revoke => head(id, "Revoke a token", REVOKE)
            .with("security", security::of_client())
            .with("parameters", vec![request_id()])
            .with("requestBody", requests::of_revoke())
            .with("responses", answers::of_revoke()),
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
