//! `POST /oauth/token`

use std::sync::Arc;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderMap, HeaderValue};
use chrono::TimeDelta;
use kernel::IdempotencyKey;
use oauth::{
    Application, BearerToken, ClientId, ClientType, CodeExchange, CodeVerifier, Credential, CredentialKind,
    Grant, GrantRefusal, Presented,
};
use serde::Serialize;
use usecases::issue_tokens::issue_client_token;
use web::deadline::Deadline;
use web::reply::IDEMPOTENT_REPLAYED;
use web::request::Request;
use web::{TraceId, idempotency, response};

use super::PresentedKey;
use super::client::{self, Parameters};
use super::error::{Code, OAuthError};
use super::issuing;
use super::limits::{count_address, count_client};
use crate::Public;

/// The issued tokens.
pub(super) struct Issued {
    pub(super) access: BearerToken,
    pub(super) refresh: Option<Credential>,
    pub(super) grant: Grant,
    /// Of an answer that was given before: what is left of the access token's lifetime.
    pub(super) left: Option<TimeDelta>,
}

/// Issues tokens, and counts the grant type and the outcome.
pub(super) async fn issue(public: &Arc<Public>, request: &mut Request) -> Result<HttpResponse, OAuthError> {
    let mut grant_type = None;
    let issued = check_and_issue(public, request, &mut grant_type).await;
    // The metric's label has only known values: an unknown grant type is `other`.
    let grant_type = grant_type.map_or("other", GrantType::as_str);
    let refused = issued.as_ref().err();
    let outcome = refused.map_or("granted", |error| error.code().as_str());
    metrics::counter!("oauth_grants_total", "grant_type" => grant_type, "outcome" => outcome).increment(1);
    issued
}

/// The checks follow the order of the contract (D77). Only calls of an authenticated client count against it,
/// so that nobody else can exhaust its limit (D67).
async fn check_and_issue(
    public: &Arc<Public>,
    request: &mut Request,
    requested: &mut Option<GrantType>,
) -> Result<HttpResponse, OAuthError> {
    let settings = &public.settings;
    let asked_at = count_address(public, request).await?;

    let parameters = Parameters::read(request, &public.ports.service).await?;
    let deadline = request.deadline();

    let grant_type = GrantType::of(&parameters)?;
    *requested = Some(grant_type);
    let credential = credential(grant_type, &parameters);
    let key = credential.as_ref().map(Credential::key);
    let key = key.map(PresentedKey::new);
    let client = client::authenticated(public, request, &parameters, key.as_ref(), deadline).await?;
    if client.client_type == ClientType::Public && grant_type == GrantType::ClientCredentials {
        let description = "A public client cannot use this grant_type: it requires a client_secret.";
        return Err(OAuthError::invalid_client(description));
    }
    count_client(public, &client, key.as_deref(), deadline).await?;

    let (presented, repeat_key) = match grant_type {
        GrantType::ClientCredentials => (None, None),
        GrantType::AuthorizationCode => {
            let code = presented_code(&parameters, credential.as_ref(), client.client_id)?;
            (Some(code), None)
        }
        GrantType::RefreshToken => {
            // Before the token: a malformed key is reported whether or not the token is known.
            let key = repeat_key(request.headers())?;
            let token = presented_refresh_token(&parameters, credential.as_ref(), client.client_id)?;
            (Some(token), key)
        }
    };
    let issued = match presented.zip(key.clone()) {
        None => client_credentials(public, &client, &parameters, deadline).await?,
        Some((presented, key)) => {
            let (again, trace_id) = (credential.as_ref().zip(repeat_key.as_ref()), request.trace_id);
            issuing::issue(public, presented, key, again, asked_at, deadline, trace_id).await?
        }
    };
    request.record_caller(|caller| {
        caller.seller = Some(issued.grant.seller);
        caller.token = key.map(|presented| presented.token.family);
    });
    granted(&issued, settings.access_token_ttl, &request.trace_id)
}

/// The response body (contract: `TokenResponse`).
#[derive(Serialize)]
struct TokenView<'a> {
    access_token: &'a str,
    token_type: &'static str,
    expires_in: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    refresh_token: Option<&'a str>,
    scope: String,
}

fn granted(issued: &Issued, lifetime: TimeDelta, trace_id: &TraceId) -> Result<HttpResponse, OAuthError> {
    let body = TokenView {
        access_token: issued.access.reveal(),
        token_type: "Bearer",
        expires_in: issued.left.unwrap_or(lifetime).num_seconds(),
        refresh_token: issued.refresh.as_ref().map(Credential::reveal),
        scope: issued.grant.scopes.to_string(),
    };
    let mut response = response::json(StatusCode::OK, serde_json::to_vec(&body)?, trace_id);
    if issued.left.is_some() {
        let replayed = HeaderValue::from_static("true");
        response.headers_mut().insert(IDEMPOTENT_REPLAYED, replayed);
    }
    Ok(response)
}

kernel::words! {
    /// The supported grant types.
    pub(crate) enum GrantType {
        /// RFC 6749 §4.4
        ClientCredentials = "client_credentials",
        /// RFC 6749 §4.1.3
        AuthorizationCode = "authorization_code",
        /// RFC 6749 §6
        RefreshToken = "refresh_token",
    }
}

impl GrantType {
    /// The grant type of a call. A missing one counts as unsupported, as the contract defines (D77).
    fn of(parameters: &Parameters) -> Result<Self, OAuthError> {
        let given = parameters.get("grant_type");
        given.and_then(Self::parse).ok_or_else(|| {
            let known = Self::ALL.map(Self::as_str).join(", ");
            let description = match given {
                None => format!("Send a grant_type: {known}."),
                Some(_) => format!("Unsupported grant_type. Supported: {known}."),
            };
            OAuthError::new(Code::UNSUPPORTED_GRANT_TYPE, description)
        })
    }
}

/// The `client_credentials` grant: a token for the application owner's own account (contract: Flows 1). A
/// client that disconnects leaves no partial state: the token is stored in one step or not at all, and no
/// client knows it.
async fn client_credentials(
    public: &Public,
    client: &Application,
    parameters: &Parameters,
    deadline: Deadline,
) -> Result<Issued, OAuthError> {
    let grant = oauth::client_credentials(client, parameters.get("scope"))?;
    let (tokens, randomness) = (public.tokens.as_ref(), public.ports.randomness.as_ref());
    let issuing = issue_client_token(tokens, randomness, grant, public.settings.access_token_ttl);
    Ok(Issued {
        access: deadline.run(issuing).await??,
        refresh: None,
        grant,
        left: None,
    })
}

/// Reads an exchange: first checks that all parameters are present, then that the code is well-formed.
fn presented_code(
    parameters: &Parameters,
    code: Option<&Credential>,
    client_id: ClientId,
) -> Result<Presented, OAuthError> {
    required(parameters, "code")?;
    let redirect_uri = required(parameters, "redirect_uri")?.to_owned();
    let verifier = required(parameters, "code_verifier")?.to_owned();
    let verifier = CodeVerifier::new(verifier)
        .map_err(|wrong| OAuthError::invalid_request(format!("code_verifier {wrong}.")))?;
    let presented = CodeExchange {
        client_id,
        redirect_uri,
        verifier,
    };
    let code = code.ok_or(GrantRefusal::Unknown)?;
    Ok(Presented::Code(code.key(), presented))
}

/// Reads a refresh, in the same order.
fn presented_refresh_token(
    parameters: &Parameters,
    token: Option<&Credential>,
    client_id: ClientId,
) -> Result<Presented, OAuthError> {
    required(parameters, "refresh_token")?;
    let token = token.ok_or(GrantRefusal::Unknown)?;
    Ok(Presented::RefreshToken(token.key(), client_id))
}

/// The key with which a client may repeat its refresh. It has to be hard to guess, hence longer than those of
/// other requests.
fn repeat_key(headers: &HeaderMap) -> Result<Option<IdempotencyKey>, OAuthError> {
    let rule = "Idempotency-Key must be sent once, with 16 to 128 printable ASCII characters.";
    let malformed = || OAuthError::invalid_request(rule);
    let key = idempotency::key(headers).map_err(|_| malformed())?;
    match key {
        Some(key) if key.as_str().len() < 16 => Err(malformed()),
        key => Ok(key),
    }
}

/// The credential of a call if it is well-formed, even if the rest of the call is not valid.
fn credential(grant_type: GrantType, parameters: &Parameters) -> Option<Credential> {
    let (kind, name) = match grant_type {
        GrantType::ClientCredentials => return None,
        GrantType::AuthorizationCode => (CredentialKind::AuthorizationCode, "code"),
        GrantType::RefreshToken => (CredentialKind::RefreshToken, "refresh_token"),
    };
    Credential::parse(kind, parameters.get(name)?)
}

/// A required parameter.
pub(super) fn required<'a>(parameters: &'a Parameters, name: &str) -> Result<&'a str, OAuthError> {
    let missing = || OAuthError::invalid_request(format!("Send {name}."));
    parameters.get(name).ok_or_else(missing)
}
