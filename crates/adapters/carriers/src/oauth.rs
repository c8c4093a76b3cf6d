//! Access tokens by OAuth client credentials (RFC 6749 §4.4).

use base64::{Engine, engine::general_purpose::STANDARD};
use chrono::{DateTime, TimeDelta, Utc};
use reqwest::{Request, StatusCode, header::AUTHORIZATION};
use secrecy::ExposeSecret;
use serde_json::Value;
use url::form_urlencoded;

use crate::http::{post, secret_header, sensitive};
use crate::tokens::{Expiry, Token, TokenSource};
use crate::{Account, SetupError, parse};

const FORM: &str = "application/x-www-form-urlencoded";

/// Fetches tokens with a client's id and secret.
pub(crate) struct ClientCredentials;

impl ClientCredentials {
    /// Sends the credentials as HTTP Basic.
    pub(crate) fn basic(account: &Account) -> Result<Request, SetupError> {
        let (id, secret) = (&account.login, &account.secret);
        let encoded = STANDARD.encode(format!("{}:{}", id.expose_secret(), secret.expose_secret()));
        let header = secret_header(account.carrier, "Basic ", &encoded.into())?;
        let mut request = post(account.token_url.clone(), FORM, "grant_type=client_credentials");
        request.headers_mut().insert(AUTHORIZATION, header);
        Ok(request)
    }

    /// Sends the credentials in the form.
    pub(crate) fn form(account: &Account) -> Request {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("grant_type", "client_credentials")
            .append_pair("client_id", account.login.expose_secret())
            .append_pair("client_secret", account.secret.expose_secret());
        post(account.token_url.clone(), FORM, form.finish())
    }
}

impl TokenSource for ClientCredentials {
    fn is_rejection(&self, status: StatusCode, body: &[u8]) -> bool {
        let error = parse::object(body)
            .ok()
            .and_then(|body| parse::text(&body, "/error"));
        status == StatusCode::BAD_REQUEST
            && matches!(
                error.as_deref(),
                Some("invalid_client" | "unauthorized_client" | "invalid_grant")
            )
    }

    fn read(&self, body: &[u8], now: DateTime<Utc>) -> Option<Token> {
        let body = parse::object(body).ok()?;
        let token = parse::text(&body, "/access_token").filter(|token| !token.is_empty())?;
        Some(Token {
            header: sensitive(&format!("Bearer {token}"))?,
            expiry: expiry(&body, now),
        })
    }
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
