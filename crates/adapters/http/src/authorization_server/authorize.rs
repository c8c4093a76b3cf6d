//! `GET /oauth/authorize` (RFC 6749 §4.1.1): clients send the seller's browser here.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderValue, LOCATION};
use oauth::{AuthorizationQuery, AuthorizationRefusal, InvalidClient, Limiter, redirect_url};
use usecases::Failure;
use usecases::authorize::authorize;
use web::Problem;
use web::access_log::LoggedRefusal;
use web::form::{form_decode, raw_pairs};
use web::request::Request;
use web::response;

use super::error::{OAuthError, printable};
use super::limits::{address_subject, count};
use crate::Public;

/// The path of the consent screen.
const CONSENT_PATH: &str = "/panel/consent";

/// Redirects the browser to the consent screen, or back to the client with an error. If no redirect address
/// can be trusted, the error is shown in the browser.
pub(super) async fn answer(public: &Public, request: &Request) -> Result<HttpResponse, OAuthError> {
    let deadline = request.deadline();
    let limiter = (Limiter::AuthorizeByAddress, "authorize_by_address");
    let most = public.settings.authorize_limit_per_ip;
    // `document` counts with programs: a visitor's navigation, though a page can also navigate in a loop.
    let subject = address_subject(request, |destination| destination != "document");
    let now = count(public, limiter, subject, most, deadline).await?;

    let query = read(request.query());
    if let Ok(client_id) = query.client_id() {
        request.record_caller(|caller| caller.client_id = client_id);
    }
    let (applications, sealer) = (public.applications.as_ref(), public.sealer.as_ref());
    let (randomness, issuer) = (public.ports.randomness.as_ref(), &public.ports.service.public_url);
    let asked = authorize(applications, sealer, randomness, &query, now);
    let (location, error) = match deadline.run(asked).await? {
        // Base64url needs no percent-encoding.
        Ok(handle) => (format!("{issuer}{CONSENT_PATH}?request={handle}"), None),
        Err(Failure::Refused(refusal)) => back(refusal, issuer)?,
        Err(Failure::Store(error)) => return Err(error.into()),
    };
    // Redirect addresses are registered as URIs, and the added parameters are percent-encoded.
    let location = HeaderValue::try_from(location)
        .map_err(|error| OAuthError::failed(web::Error::caused(Problem::internal(), error)))?;
    let mut response = response::empty(StatusCode::FOUND, &request.trace_id);
    if let Some(error) = error {
        let reason = None;
        response.extensions_mut().insert(LoggedRefusal { error, reason });
    }
    response.headers_mut().insert(LOCATION, location);
    Ok(response)
}

/// The parameters, decoded like a form (RFC 6749 §4.1.1). A value that cannot be decoded counts as missing.
fn read(query: &str) -> AuthorizationQuery {
    let pairs = raw_pairs(query).map(|(name, value)| {
        let name = form_decode(name).unwrap_or_else(|| name.to_owned());
        (name, form_decode(value).unwrap_or_default())
    });
    AuthorizationQuery::new(pairs.collect())
}

/// Prefix of an error that the seller's browser shows, because it cannot be returned to the client.
const FOR_SELLER: &str = "The application sent an invalid request. Contact its provider.";

/// The URL that returns an error to the client, with our issuer (RFC 9207), and the error's code.
fn back(refusal: AuthorizationRefusal, issuer: &str) -> Result<(String, Option<&'static str>), OAuthError> {
    match refusal {
        AuthorizationRefusal::Client(refusal) => {
            let description = match refusal {
                InvalidClient::Suspended { .. } => {
                    "This application is suspended. Contact its provider.".to_owned()
                }
                _ => format!("{FOR_SELLER} Unknown client_id."),
            };
            Err(OAuthError::no_such_client(refusal, description))
        }
        AuthorizationRefusal::Direct(description) => {
            Err(OAuthError::invalid_request(format!("{FOR_SELLER} {description}")))
        }
        AuthorizationRefusal::Redirected {
            redirect_uri,
            state,
            error,
            description,
        } => {
            let description = printable(&description);
            let mut parameters = vec![("error", error.as_str()), ("error_description", &description)];
            parameters.extend(state.as_deref().map(|state| ("state", state)));
            parameters.push(("iss", issuer));
            Ok((redirect_url(&redirect_uri, &parameters), Some(error.as_str())))
        }
    }
}
