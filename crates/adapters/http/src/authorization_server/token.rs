//! `POST /oauth/token`

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use oauth::{BearerToken, IssuedToken, Limiter, ScopeSet, Subject};
use serde::Serialize;
use serde::ser::Serializer;
use web::{TraceId, reply};

use super::error::{OAuthError, forbid_old_caches};
use super::grant_type::GrantType;
use super::parameters::Parameters;
use super::{client, client_credentials, limits};
use crate::arrival::Arrival;
use crate::deadline::Deadline;
use crate::listener::Listener;

/// Issues a token. The checks are in the order of the contract (D77); only what an authenticated client does counts
/// against that client, so that nobody can lock another one out (D67).
pub(super) async fn issue(listener: &Listener, arrival: &mut Arrival) -> Result<HttpResponse, OAuthError> {
    let (public, settings) = (&listener.public, &listener.public.settings);
    let (rates, applications) = (public.rates.as_ref(), public.applications.as_ref());
    let deadline = Deadline::of_arrival(arrival.at);

    let by_address = (Limiter::TokenByAddress, Subject::address(arrival.client));
    limits::pass(rates, by_address, settings.token_limit_per_ip, deadline).await?;

    let parameters = Parameters::read(arrival, settings).await?;
    let deadline = deadline.later_by(arrival.reading());

    let grant_type = GrantType::of(&parameters)?;
    let headers = arrival.headers();
    let client = client::authenticated(headers, &parameters, grant_type, applications, deadline).await?;

    let by_client = (Limiter::TokenByClient, Subject::client(client.client_id));
    limits::pass(rates, by_client, settings.token_limit_per_client, deadline).await?;

    let issued = match grant_type {
        GrantType::ClientCredentials => {
            client_credentials::issue(public, &client, &parameters, deadline).await?
        }
    };
    let lifetime = settings.access_token_ttl.num_seconds();
    granted(&issued, lifetime, &arrival.trace_id)
}

/// What is answered (contract: `TokenResponse`).
#[derive(Serialize)]
struct TokenView<'a> {
    access_token: &'a str,
    token_type: &'static str,
    expires_in: i64,
    #[serde(serialize_with = "joined")]
    scope: ScopeSet,
}

fn granted(issued: &IssuedToken, lifetime: i64, trace_id: &TraceId) -> Result<HttpResponse, OAuthError> {
    let body = TokenView {
        access_token: BearerToken::reveal(&issued.token),
        token_type: "Bearer",
        expires_in: lifetime,
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
