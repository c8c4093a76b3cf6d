//! What the endpoints of the authorization server answer.

use oauth::{AuthorizationQuery, GrantRefusal, InvalidClient, Scope, ScopeRefused};
use web::TraceId;
use web::schema::{Map, Node, array, boolean, integer, object, partial_object, string, uri};

use super::super::error::OAuthError;
use super::super::grant_type::GrantType;
use super::super::presented::missing;
use super::super::{authorize, metadata};
use super::returning;
use crate::document::headers::{EVERYWHERE, GOING, referring};
use crate::document::{example, examples, examples_of, json};
use crate::operations::scope;

type Header = (&'static str, &'static str);

const PRAGMA: Header = ("Pragma", "Pragma");
const RETRY_AFTER: Header = ("Retry-After", "Retry-After");
const PERHAPS_LATER: Header = ("Retry-After", "Retry-After-Perhaps");
const BASIC: Header = ("WWW-Authenticate", "WWW-Authenticate-Basic");
const REFERRER: Header = ("Referrer-Policy", "Referrer-Policy");

/// Tokens, or why not.
pub(super) fn of_token() -> Node {
    let refusals = [
        missing("code_verifier"),
        OAuthError::from(GrantRefusal::Unknown),
        OAuthError::from(ScopeRefused::NotHeld(Scope::OrdersRead)),
        GrantType::unsupported(Some("password")),
    ];
    let mut responses = Map::from([(
        "200".to_owned(),
        response("The tokens.", &[PRAGMA], Some((tokens(), issued()))),
    )]);
    responses.extend(refused("TokenBadRequest", &refusals, &[PRAGMA]));
    responses.extend(client_refused());
    responses.extend(failed(&[PRAGMA]));
    Node::Object(responses)
}

/// Nothing, or why not.
pub(super) fn of_revoke() -> Node {
    let mut responses = Map::from([(
        "200".to_owned(),
        response("The token is of no use any more.", &[PRAGMA], None),
    )]);
    responses.extend(refused("RevocationBadRequest", &[missing("token")], &[PRAGMA]));
    responses.extend(client_refused());
    responses.extend(failed(&[PRAGMA]));
    Node::Object(responses)
}

/// A redirect, or why the browser is told itself.
pub(super) fn of_authorize() -> Node {
    let nothing = AuthorizationQuery::default();
    let refusals = [nothing.client_id().err(), nothing.check(None).err()];
    let refusals: Vec<_> = refusals
        .into_iter()
        .flatten()
        .filter_map(|refusal| authorize::back(refusal, "").err())
        .collect();
    let on = response(
        &format!(
            "On to the consent screen, or back to `redirect_uri` with `error`:\n\n{}",
            returning::errors()
        ),
        &[("Location", "Location"), PRAGMA, REFERRER],
        None,
    )
    .with("x-redirect-error", returning::error());
    let mut responses = Map::from([("302".to_owned(), on)]);
    responses.extend(refused("AuthorizationBadRequest", &refusals, &[PRAGMA, REFERRER]));
    responses.extend(failed(&[PRAGMA, REFERRER]));
    Node::Object(responses)
}

/// The metadata document.
pub(super) fn of_metadata(public_url: &str) -> Node {
    let names = || array(string());
    let grant_type = string()
        .one_of(GrantType::ALL.map(GrantType::as_str))
        .named("GrantType");
    let members = [
        ("issuer", uri()),
        ("authorization_endpoint", uri()),
        ("token_endpoint", uri()),
        ("revocation_endpoint", uri()),
        ("scopes_supported", array(scope())),
        ("response_types_supported", names()),
        ("response_modes_supported", names()),
        ("grant_types_supported", array(grant_type)),
        ("token_endpoint_auth_methods_supported", names()),
        ("revocation_endpoint_auth_methods_supported", names()),
        ("code_challenge_methods_supported", names()),
        ("authorization_response_iss_parameter_supported", boolean()),
        ("service_documentation", uri()),
    ];
    let schema = object(&members).named("AuthorizationServerMetadata");
    let shown = metadata::document(public_url, &format!("{public_url}/docs"));
    let shown = example(Node::parse(&String::from_utf8_lossy(&shown)));
    Node::of([("200", response("The metadata.", &[], Some((schema, shown))))])
}

fn tokens() -> Node {
    let members = [
        ("access_token", string()),
        ("token_type", string().one_of(["Bearer"]).named("TokenType")),
        ("expires_in", integer(0, i32::MAX.into()).said("Seconds.")),
        ("refresh_token", string().said("Not with `client_credentials`.")),
        (
            "scope",
            string().said("What the token holds, separated by spaces."),
        ),
    ];
    partial_object(&members, &["access_token", "token_type", "expires_in", "scope"]).named("TokenResponse")
}

/// An answer for each grant type.
fn issued() -> Node {
    let answer = |grant_type: GrantType| {
        let mut members = vec![
            ("access_token", examples::access_token().reveal().into()),
            ("token_type", "Bearer".into()),
            ("expires_in", 43_200_i64.into()),
        ];
        match grant_type {
            GrantType::ClientCredentials => {}
            GrantType::AuthorizationCode | GrantType::RefreshToken => {
                members.push(("refresh_token", examples::refresh_token().reveal().into()));
            }
        }
        members.push(("scope", "offers:read offers:write".into()));
        (grant_type.as_str(), members.into_iter().collect())
    };
    examples_of(GrantType::ALL.map(answer))
}

fn client_refused() -> [(String, Node); 1] {
    let refusal = InvalidClient::Credentials.into();
    refused("OAuthUnauthorized", &[refusal], &[PRAGMA, BASIC])
}

fn failed(headers: &[Header]) -> [(String, Node); 2] {
    let [many] = refused(
        "OAuthTooManyRequests",
        &[OAuthError::too_many(17)],
        &[headers, &[RETRY_AFTER]].concat(),
    );
    let [failed] = refused(
        "OAuthInternal",
        &[OAuthError::server_error()],
        &[headers, &[PERHAPS_LATER]].concat(),
    );
    [many, failed]
}

/// Refusals of one status, as they are answered.
fn refused(name: &str, refusals: &[OAuthError], headers: &[Header]) -> [(String, Node); 1] {
    let trace_id = TraceId::from_random(*b"an example's own");
    let codes = || refusals.iter().map(|refusal| refusal.code().as_str());
    let named = codes()
        .map(|code| format!("`{code}`"))
        .collect::<Vec<_>>()
        .join(", ");
    let status = refusals
        .first()
        .map(|refusal| refusal.status().as_str().to_owned())
        .unwrap_or_default();
    let schema = object(&[
        ("error", string().one_of(codes()).named(format!("{name}Code"))),
        (
            "error_description",
            string().said("For developers. The words may change."),
        ),
        (
            "traceId",
            string().said("The request's `X-Trace-Id`.").named("TraceId"),
        ),
    ]);
    let examples: Node = refusals
        .iter()
        .map(|refusal| {
            let value = Node::parse(&String::from_utf8_lossy(&refusal.body(&trace_id)));
            (refusal.code().as_str(), Node::of([("value", value)]))
        })
        .collect();
    let response = Node::of([
        ("description", format!("Refused: {named}.").into()),
        ("headers", told(headers)),
        ("content", json(schema.named(format!("{name}Error")), examples)),
    ]);
    [(status, response)]
}

fn response(description: &str, headers: &[Header], body: Option<(Node, Node)>) -> Node {
    let response = Node::of([("description", description.into()), ("headers", told(headers))]);
    match body {
        Some((schema, shown)) => response.with("content", json(schema, shown)),
        None => response,
    }
}

/// The headers of every answer, and these.
fn told(headers: &[Header]) -> Node {
    let every = EVERYWHERE.into_iter().chain(GOING).map(|name| (name, name));
    referring(every.chain(headers.iter().copied()))
}
