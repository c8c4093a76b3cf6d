//! `POST /oauth/token`

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use oauth::{Application, BearerToken, ClientType, Credential, ScopeSet};
use serde::Serialize;
use serde::ser::Serializer;
use web::{TraceId, reply};

use super::error::{OAuthError, forbid_old_caches};
use super::grant_type::GrantType;
use super::parameters::Parameters;
use super::presented::{Presented, credential};
use super::{client, client_credentials, issuing, limits};
use crate::Public;
use crate::arrival::Arrival;
use crate::deadline::Deadline;
use crate::listener::Listener;
use crate::meters;

/// Tokens that were issued.
pub(super) struct Issued {
    pub(super) access: BearerToken,
    pub(super) refresh: Option<Credential>,
    pub(super) scopes: ScopeSet,
}

/// What was asked for at the token endpoint, and what came of it, for the meters: words of ours alone.
pub(crate) struct GrantOutcome {
    /// The grant type, if it is served; else `other`.
    pub(crate) grant_type: &'static str,
    /// `granted`, or the error's code.
    pub(crate) outcome: &'static str,
}

/// Issues tokens, and counts what came of it.
pub(super) async fn issue(listener: &Listener, arrival: &mut Arrival) -> Result<HttpResponse, OAuthError> {
    let mut grant_type = None;
    let issued = issue_as_asked(listener, arrival, &mut grant_type).await;
    meters::granted(GrantOutcome {
        grant_type: grant_type.map_or("other", GrantType::as_str),
        outcome: issued
            .as_ref()
            .map_or_else(|error| error.code().as_str(), |_| "granted"),
    });
    issued
}

/// Issues tokens, and tells of what grant type. The checks are in the order of the contract (D77); only what an authenticated client does counts against
/// that client, so that nobody can lock another one out (D67).
async fn issue_as_asked(
    listener: &Listener,
    arrival: &mut Arrival,
    asked: &mut Option<GrantType>,
) -> Result<HttpResponse, OAuthError> {
    let (public, settings) = (&listener.public, &listener.public.settings);
    let deadline = Deadline::of_arrival(arrival.at);
    limits::token_by_address(listener, arrival.client, deadline).await?;

    let parameters = Parameters::read(arrival, settings).await?;
    let deadline = deadline.later_by(arrival.reading());

    let grant_type = GrantType::of(&parameters)?;
    *asked = Some(grant_type);
    let (headers, applications) = (arrival.headers(), public.applications.as_ref());
    let client = client::for_grant(headers, &parameters, grant_type, applications, deadline).await?;
    arrival.span.came_for(client.client_id);
    if counts(
        public,
        &client,
        credential(grant_type, &parameters).as_ref(),
        deadline,
    )
    .await?
    {
        limits::token_by_client(listener, client.client_id, deadline).await?;
    }

    let presented = match grant_type {
        GrantType::ClientCredentials => None,
        GrantType::AuthorizationCode => Some(Presented::code(&parameters, client.client_id)?),
        GrantType::RefreshToken => Some(Presented::refresh_token(&parameters, client.client_id)?),
    };
    let issued = match presented {
        None => client_credentials::issue(public, &client, &parameters, deadline)
            .await
            .map_err(|error| client::challenged(arrival.headers(), error))?,
        Some(presented) => issuing::issue(public, presented, deadline, arrival.trace_id).await?,
    };
    granted(
        &issued,
        settings.access_token_ttl.num_seconds(),
        &arrival.trace_id,
    )
}

/// Whether the call counts against the client: a public one proves by its code or refresh token alone that it is itself.
async fn counts(
    public: &Public,
    client: &Application,
    credential: Option<&Credential>,
    deadline: Deadline,
) -> Result<bool, OAuthError> {
    match client.client_type {
        ClientType::Confidential => Ok(true),
        ClientType::Public => limits::is_its_own(public, client, credential, deadline).await,
    }
}

/// What is answered (contract: `TokenResponse`).
#[derive(Serialize)]
struct TokenView<'a> {
    access_token: &'a str,
    token_type: &'static str,
    expires_in: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    refresh_token: Option<&'a str>,
    #[serde(serialize_with = "joined")]
    scope: ScopeSet,
}

fn granted(issued: &Issued, lifetime: i64, trace_id: &TraceId) -> Result<HttpResponse, OAuthError> {
    let body = TokenView {
        access_token: issued.access.reveal(),
        token_type: "Bearer",
        expires_in: lifetime,
        refresh_token: issued.refresh.as_ref().map(Credential::reveal),
        scope: issued.scopes,
    };
    let mut response = reply::json(StatusCode::OK, serde_json::to_vec(&body)?, trace_id);
    forbid_old_caches(response.headers_mut());
    Ok(response)
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes fields by reference"
)]
fn joined<S: Serializer>(scopes: &ScopeSet, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(scopes)
}
