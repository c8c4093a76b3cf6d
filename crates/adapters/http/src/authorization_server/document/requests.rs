//! What the endpoints of the authorization server take.

use web::schema::{Map, Node, open_object, string, uri};

use super::super::grant_type::GrantType;
use crate::document::{example, examples, examples_of};

/// The consent's parameters.
pub(super) fn of_authorize(request_id: Node) -> Node {
    let parameter = |name: &str, description: &str, schema: Node, example: &str| {
        Node::of([
            ("name", name.into()),
            ("in", "query".into()),
            ("required", true.into()),
            ("description", description.into()),
            ("schema", schema),
            ("example", example.into()),
        ])
    };
    let challenge = string().with("pattern", "^[A-Za-z0-9_-]{43}$");
    let state = string().with("minLength", 8).with("maxLength", 1024);
    vec![
        parameter(
            "response_type",
            "`code`.",
            string().one_of(["code"]).named("ResponseType"),
            "code",
        ),
        parameter("client_id", "The application.", string(), examples::CLIENT_ID),
        parameter(
            "redirect_uri",
            "One of the application's registered addresses, character for character.",
            uri(),
            examples::REDIRECT_URI,
        ),
        parameter(
            "scope",
            "Scopes of the application, separated by spaces.",
            string(),
            "offers:read orders:read",
        ),
        parameter(
            "state",
            "Comes back unchanged; the client compares it.",
            state,
            examples::STATE,
        ),
        parameter(
            "code_challenge",
            "Base64url of the SHA-256 of the verifier (RFC 7636).",
            challenge,
            examples::CHALLENGE,
        ),
        parameter(
            "code_challenge_method",
            "`S256`.",
            string().one_of(["S256"]).named("CodeChallengeMethod"),
            "S256",
        ),
        request_id,
    ]
    .into()
}

/// Told in words alone: what belongs to another grant is passed over, whatever it is.
const VERIFIER: &str = "With `authorization_code`, required: 43 to 128 characters of `A-Z a-z 0-9 . _ ~ -`.";

/// A call of the token endpoint.
pub(super) fn of_token() -> Node {
    let grant_type = string()
        .one_of(GrantType::ALL.map(GrantType::as_str))
        .named("GrantType");
    let members = [
        ("grant_type", grant_type),
        ("code", string().said("With `authorization_code`, required.")),
        ("redirect_uri", string().said("With `authorization_code`, required: the one of the consent.")),
        ("code_verifier", string().said(VERIFIER)),
        ("refresh_token", string().said("With `refresh_token`, required.")),
        ("scope", string().said("With `client_credentials`: scopes of the application, separated by spaces; all of them without.")),
    ];
    body(
        "TokenRequest",
        members.into_iter().chain(client()),
        "grant_type",
        &calls(),
    )
}

/// A call for each grant type.
fn calls() -> Node {
    let call = |grant_type: GrantType| {
        let (code, refresh_token) = (examples::code(), examples::refresh_token());
        let own: &[_] = match grant_type {
            GrantType::ClientCredentials => &[("scope", "offers:read offers:write")],
            GrantType::AuthorizationCode => &[
                ("code", code.reveal()),
                ("redirect_uri", examples::REDIRECT_URI),
                ("code_verifier", examples::VERIFIER),
            ],
            GrantType::RefreshToken => &[("refresh_token", refresh_token.reveal())],
        };
        let all = [("grant_type", grant_type.as_str())];
        let members = all.iter().chain(own);
        let call = members.map(|(name, value)| (*name, Node::from(*value)));
        (grant_type.as_str(), call.collect())
    };
    examples_of(GrantType::ALL.map(call))
}

/// A call of the revocation endpoint.
pub(super) fn of_revoke() -> Node {
    let members = [
        ("token", string().said("An access token or a refresh token.")),
        ("token_type_hint", string().said("Not needed, and passed over.")),
    ];
    let call = Node::of([("token", examples::refresh_token().reveal().into())]);
    body(
        "RevocationRequest",
        members.into_iter().chain(client()),
        "token",
        &example(call),
    )
}

fn client() -> [(&'static str, Node); 2] {
    [
        ("client_id", string().said("Where HTTP Basic is not used.")),
        (
            "client_secret",
            string()
                .with("format", "password")
                .said("Where HTTP Basic is not used, and the client has one."),
        ),
    ]
}

/// A JSON object of strings, or a form. Unknown parameters are passed over (RFC 6749 §3.2), so the schema stays open.
///
/// JSON comes first because generated clients send what is named first, and several of them go wrong over a form.
fn body(
    name: &str,
    members: impl Iterator<Item = (&'static str, Node)>,
    required: &str,
    shown: &Node,
) -> Node {
    let schema = open_object(members, &[required]).named(name);
    let content = ["application/json", "application/x-www-form-urlencoded"].map(|kind| {
        let media = Node::of([("schema", schema.clone()), ("examples", shown.clone())]);
        (kind.to_owned(), media)
    });
    Node::of([
        ("required", true.into()),
        ("content", Node::Object(Map::from(content))),
    ])
}
