//! Tokens by OAuth client credentials (RFC 6749 §4.4).

use base64::{Engine, engine::general_purpose::STANDARD};
use chrono::{DateTime, TimeDelta, Utc};
use orders::Carrier;
use reqwest::{
    Request, StatusCode,
    header::{AUTHORIZATION, HeaderValue},
};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use url::{Url, form_urlencoded};

use super::{Token, TokenSource, post, secret_header, tokens::Life};
use crate::{OauthSettings, SetupError, apis::address, reading::json};

/// A client that gets tokens with its id and secret.
pub(crate) struct ClientCredentials {
    url: Url,
    /// Where the carrier takes the credentials in the header.
    authorization: Option<HeaderValue>,
    body: SecretString,
}

impl ClientCredentials {
    /// The credentials go as HTTP Basic.
    pub(crate) fn basic(carrier: Carrier, settings: &OauthSettings) -> Result<Self, SetupError> {
        let pair = format!(
            "{}:{}",
            settings.client_id.expose_secret(),
            settings.client_secret.expose_secret()
        );
        let encoded = SecretString::from(STANDARD.encode(pair));
        let header = secret_header("Basic ", &encoded).ok_or(SetupError::Credentials(carrier))?;
        Ok(Self {
            url: address(carrier, &settings.token_url)?,
            authorization: Some(header),
            body: SecretString::from("grant_type=client_credentials"),
        })
    }

    /// The credentials go in the form.
    pub(crate) fn form(carrier: Carrier, settings: &OauthSettings) -> Result<Self, SetupError> {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("grant_type", "client_credentials")
            .append_pair("client_id", settings.client_id.expose_secret())
            .append_pair("client_secret", settings.client_secret.expose_secret());
        Ok(Self {
            url: address(carrier, &settings.token_url)?,
            authorization: None,
            body: SecretString::from(form.finish()),
        })
    }
}

impl TokenSource for ClientCredentials {
    fn request(&self) -> Request {
        let body = self.body.expose_secret().to_owned();
        let mut request = post(self.url.clone(), "application/x-www-form-urlencoded", body);
        if let Some(header) = &self.authorization {
            request.headers_mut().insert(AUTHORIZATION, header.clone());
        }
        request
    }

    fn is_refusal(&self, status: StatusCode, body: &[u8]) -> bool {
        let error = json::read(body).ok().and_then(|body| json::text(&body, "/error"));
        status == StatusCode::BAD_REQUEST
            && matches!(
                error.as_deref(),
                Some("invalid_client" | "unauthorized_client" | "invalid_grant")
            )
    }

    fn read(&self, body: &[u8], now: DateTime<Utc>) -> Option<Token> {
        let body = json::read(body).ok()?;
        let token = SecretString::from(json::text(&body, "/access_token").filter(|token| !token.is_empty())?);
        Some(Token {
            header: secret_header("Bearer ", &token)?,
            life: life(&body, now),
        })
    }
}

/// When the token ends: `expires_in` seconds after `issued_at` (milliseconds of the epoch; UPS), else from now on. A
/// carrier's clock that disagrees with ours beyond use is not believed.
fn life(body: &Value, now: DateTime<Utc>) -> Option<Life> {
    let lasts = TimeDelta::try_seconds(json::integer(body, "/expires_in")?)?;
    let from_now = now.checked_add_signed(lasts)?;
    let issued = json::integer(body, "/issued_at").and_then(DateTime::from_timestamp_millis);
    let from_issue = issued.and_then(|issued| issued.checked_add_signed(lasts));
    let ends_at = from_issue
        .filter(|end| (now..=from_now).contains(end))
        .unwrap_or(from_now);
    (ends_at > now).then(|| Life::until(ends_at, now))
}
