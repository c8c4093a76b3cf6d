//! The authorization server: `/oauth` and the metadata document.

mod authorize;
mod client;
mod client_credentials;
pub(crate) mod document;
mod error;
mod grant_type;
mod issuing;
mod limits;
mod metadata;
mod parameters;
mod presented;
mod revoke;
mod token;

use actix_web::HttpResponse;
use actix_web::http::Method;
use web::guarded::guarded;
use web::{failure, head};

use crate::arrival::Arrival;
use crate::deprecated::Ending;
use crate::listener::{Answer, Listener};
use error::OAuthError;

pub(crate) use metadata::{METADATA_PATH, metadata};
pub(crate) use token::GrantOutcome;

/// What of the authorization server goes away.
pub(crate) const ENDING: &[Ending] = &[];

/// What there is under `/oauth`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Endpoint {
    Authorize,
    Token,
    Revoke,
}

impl Endpoint {
    const ALL: [Self; 3] = [Self::Authorize, Self::Token, Self::Revoke];

    fn at(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|endpoint| endpoint.path() == path)
    }

    /// `operationId`.
    const fn id(self) -> &'static str {
        match self {
            Self::Authorize => "authorize",
            Self::Token => "issueToken",
            Self::Revoke => "revokeToken",
        }
    }

    /// The contract's method.
    const fn method(self) -> &'static str {
        match self {
            Self::Authorize => "GET",
            Self::Token | Self::Revoke => "POST",
        }
    }

    /// Whether a request with this method is for it: HEAD stands for GET (D5).
    fn takes(self, method: &Method) -> bool {
        method == self.method() || (*method == Method::HEAD && self.method() == "GET")
    }

    const fn path(self) -> &'static str {
        match self {
            Self::Authorize => "/oauth/authorize",
            Self::Token => "/oauth/token",
            Self::Revoke => "/oauth/revoke",
        }
    }
}

/// Every endpoint as a test can walk it: method and path.
pub fn endpoints() -> impl Iterator<Item = (&'static str, &'static str)> {
    Endpoint::ALL
        .into_iter()
        .map(|endpoint| (endpoint.method(), endpoint.path()))
}

/// Answers a request under `/oauth`.
pub(crate) async fn answer(listener: &Listener, mut arrival: Arrival) -> Answer {
    let endpoint = Endpoint::at(arrival.path());
    let route = endpoint.map_or("-", Endpoint::path);
    let trace_id = arrival.trace_id;
    let outcome = guarded(&trace_id, dispatch(listener, &mut arrival, endpoint)).await;
    let (mut response, closes) = match outcome.unwrap_or_else(|_| Err(OAuthError::server_error())) {
        Ok(response) => (response, false),
        Err(error) => {
            if let Some(cause) = error.cause() {
                failure::log(&trace_id, route, cause);
            }
            let closes = error.closes();
            (
                error.into_response(&trace_id, &listener.public.settings.realm),
                closes,
            )
        }
    };
    if endpoint == Some(Endpoint::Authorize) {
        authorize::forbid_referrers(response.headers_mut());
    }
    if let Some(endpoint) = endpoint.filter(|endpoint| endpoint.takes(arrival.request.method())) {
        let query = arrival.request.uri().query();
        listener
            .notices
            .write(endpoint.id(), query, response.headers_mut());
    }
    let response = arrival.end(response, closes);
    Answer { response, route }
}

/// Everything under `/oauth` that is no endpoint is answered alike (D87).
async fn dispatch(
    listener: &Listener,
    arrival: &mut Arrival,
    endpoint: Option<Endpoint>,
) -> Result<HttpResponse, OAuthError> {
    head::check(arrival.request.head())?;
    let endpoint = endpoint.ok_or_else(OAuthError::not_found)?;
    if !endpoint.takes(arrival.request.method()) {
        return Err(OAuthError::wrong_method(endpoint.method()));
    }
    match endpoint {
        Endpoint::Authorize => authorize::answer(listener, arrival).await,
        Endpoint::Token => token::issue(listener, arrival).await,
        Endpoint::Revoke => revoke::revoke(listener, arrival).await,
    }
}
