//! Access tokens by OAuth client credentials (RFC 6749 §4.4).

use base64::{Engine, engine::general_purpose::STANDARD};
use chrono::{DateTime, TimeDelta, Utc};
use reqwest::{Request, StatusCode, header::AUTHORIZATION};
use secrecy::ExposeSecret;
use serde_json::Value;
use url::form_urlencoded;

use crate::apis::LookupFailure;
use crate::http::{Response, post, secret_header, sensitive};
use crate::tokens::{Expiry, Token};
use crate::{Account, SetupError, parse};

const FORM: &str = "application/x-www-form-urlencoded";

/// A token request that sends the client's id and secret as HTTP Basic.
pub(crate) fn basic(account: &Account) -> Result<Request, SetupError> {
    let (id, secret) = (&account.login, &account.secret);
    let encoded = STANDARD.encode(format!("{}:{}", id.expose_secret(), secret.expose_secret()));
    let header = secret_header(account.carrier, "Basic ", &encoded.into())?;
    let mut request = post(account.token_url.clone(), FORM, "grant_type=client_credentials");
    request.headers_mut().insert(AUTHORIZATION, header);
    Ok(request)
}

/// One that sends them in the form.
pub(crate) fn form(account: &Account) -> Request {
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair("grant_type", "client_credentials")
        .append_pair("client_id", account.login.expose_secret())
        .append_pair("client_secret", account.secret.expose_secret());
    post(account.token_url.clone(), FORM, form.finish())
}

/// Rejected credentials have status 400 (RFC 6749 §5.2), or 401, which never arrives here.
pub(crate) fn token(answer: &Response, now: DateTime<Utc>) -> Result<Option<Token>, LookupFailure> {
    let body = parse::object(&answer.body).unwrap_or_default();
    if answer.status == StatusCode::BAD_REQUEST
        && let Some("invalid_client" | "unauthorized_client" | "invalid_grant") =
            parse::text(&body, "/error").as_deref()
    {
        return Err(LookupFailure::Credentials);
    }
    let token = parse::text(&body, "/access_token").filter(|token| !token.is_empty());
    let header = token.and_then(|token| sensitive(&format!("Bearer {token}")));
    let expiry = expiry(&body, now);
    Ok(header.map(|header| Token { header, expiry }))
}

/// `expires_in` seconds after `issued_at` (milliseconds since the epoch; UPS), else from now. `issued_at` is
/// ignored if it is in the future or implies that the token has expired: the carrier's clock is wrong.
fn expiry(body: &Value, now: DateTime<Utc>) -> Option<Expiry> {
    let lasts = TimeDelta::try_seconds(parse::integer(body, "/expires_in")?)?;
    let from_now = now.checked_add_signed(lasts)?;
    let issued = parse::integer(body, "/issued_at").and_then(DateTime::from_timestamp_millis);
    let from_issue = issued.and_then(|issued| issued.checked_add_signed(lasts));
    let expires_at = from_issue
        .filter(|at| (now..=from_now).contains(at))
        .unwrap_or(from_now);
    (expires_at > now).then(|| Expiry::at(expires_at, now))
}
