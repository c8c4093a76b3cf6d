//! The authorization server: `/oauth/token` and the metadata document.

mod client;
mod client_credentials;
mod error;
mod grant_type;
mod limits;
mod metadata;
mod parameters;
mod token;

use actix_web::HttpResponse;
use actix_web::http::Method;
use web::guarded::guarded;
use web::head;

use crate::arrival::Arrival;
use crate::failure;
use crate::listener::{Answer, Listener};
use error::OAuthError;

pub(crate) use metadata::{METADATA_PATH, metadata};

const TOKEN_PATH: &str = "/oauth/token";

/// Answers a request under `/oauth`.
pub(crate) async fn answer(listener: &Listener, mut arrival: Arrival) -> Answer {
    let route = if arrival.path() == TOKEN_PATH {
        TOKEN_PATH
    } else {
        "-"
    };
    let trace_id = arrival.trace_id;
    let outcome = guarded(&trace_id, dispatch(listener, &mut arrival)).await;
    let (response, closes) = match outcome.unwrap_or_else(|_| Err(OAuthError::server_error())) {
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
    let response = arrival.end(response, closes);
    Answer { response, route }
}

/// Everything under `/oauth` that is no endpoint is answered alike (D87).
async fn dispatch(listener: &Listener, arrival: &mut Arrival) -> Result<HttpResponse, OAuthError> {
    head::check(arrival.request.head())?;
    match (arrival.path(), arrival.request.method()) {
        (TOKEN_PATH, &Method::POST) => token::issue(listener, arrival).await,
        (TOKEN_PATH, _) => Err(OAuthError::wrong_method("POST")),
        _ => Err(OAuthError::not_found()),
    }
}
