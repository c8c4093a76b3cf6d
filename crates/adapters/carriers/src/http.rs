//! The HTTP client of all carriers: no redirects, no proxies from the environment, limited answers, a span
//! per exchange.

use std::{error::Error, sync::Arc, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use kernel::{Clock, SPANS, error_chain};
use orders::Carrier;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Body, Client, Method, Request, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use tracing::{Instrument as _, Span, field::Empty};
use url::Url;

use crate::{CarrierSettings, SetupError, apis::LookupFailure};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// Largest answer body in bytes.
const MAX_BODY: usize = 1024 * 1024;

/// The longest `Retry-After` that is honoured.
const MAX_RETRY_AFTER: TimeDelta = TimeDelta::hours(24);

/// Shared by all carriers.
#[derive(Clone)]
pub(crate) struct Http {
    client: Client,
    pub(crate) clock: Arc<dyn Clock>,
    /// The deadline of one look-up.
    pub(crate) deadline: Duration,
}

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) body: Vec<u8>,
}

impl Http {
    pub(crate) fn new(
        settings: &CarrierSettings,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let tls = outgoing_tls::client_config(None)?;
        let client = Client::builder()
            .tls_backend_preconfigured(tls)
            .user_agent(&settings.user_agent)
            .connect_timeout(CONNECT_TIMEOUT.min(settings.deadline))
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .no_proxy()
            // `CarrierClient` retries, since it knows the deadline.
            .retry(reqwest::retry::never())
            .build()?;
        Ok(Self {
            client,
            clock,
            deadline: settings.deadline,
        })
    }

    /// Sends a request and reads the whole answer. Statuses with the same meaning for every carrier become
    /// failures.
    pub(crate) async fn exchange(&self, request: Request) -> Result<Response, LookupFailure> {
        let span = tracing::info_span!(
            target: SPANS,
            "carrier request",
            otel.name = request.method().as_str(),
            otel.kind = "client",
            otel.status_code = Empty,
            http.request.method = request.method().as_str(),
            server.address = request.url().host_str().unwrap_or_default(),
            http.response.status_code = Empty,
        );
        let outcome = self.send(request).instrument(span.clone()).await;
        if outcome.is_err() {
            span.record("otel.status_code", "ERROR");
        }
        outcome
    }

    async fn send(&self, request: Request) -> Result<Response, LookupFailure> {
        let mut response = self.client.execute(request).await?;
        let status = response.status();
        Span::current().record("http.response.status_code", i64::from(status.as_u16()));
        match status.as_u16() {
            401 => return Err(LookupFailure::Unauthorized),
            429 => {
                let pause = retry_after(response.headers(), self.clock.now());
                return Err(LookupFailure::Throttled(pause));
            }
            code @ (300..=399 | 502..=504) => return Err(LookupFailure::Status(code)),
            _ => {}
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            if body.len().saturating_add(chunk.len()) > MAX_BODY {
                return Err(LookupFailure::TooLarge);
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Response { status, body })
    }
}

/// Parses `Retry-After`, seconds or a date (RFC 9110 §10.2.3), as a duration from now; none unless that is in the future.
fn retry_after(headers: &HeaderMap, now: DateTime<Utc>) -> Option<TimeDelta> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let pause = match text.parse::<u32>() {
        Ok(seconds) => TimeDelta::seconds(seconds.into()),
        Err(_) => DateTime::parse_from_rfc2822(text).ok()?.to_utc() - now,
    };
    (pause > TimeDelta::zero()).then(|| pause.min(MAX_RETRY_AFTER))
}

impl From<reqwest::Error> for LookupFailure {
    fn from(error: reqwest::Error) -> Self {
        // The URL contains the tracking number.
        let error = error.without_url();
        match (error.is_timeout(), error.is_connect()) {
            (true, true) => Self::ConnectTimeout,
            (true, false) => Self::Timeout,
            (false, true) => Self::Connect(error_chain(&error)),
            (false, false) => Self::Broken(error_chain(&error)),
        }
    }
}

/// A GET request for JSON.
pub(crate) fn get(url: Url) -> Request {
    let mut request = Request::new(Method::GET, url);
    request
        .headers_mut()
        .insert(ACCEPT, HeaderValue::from_static("application/json"));
    request
}

pub(crate) fn post(url: Url, content_type: &'static str, body: impl Into<Body>) -> Request {
    let mut request = Request::new(Method::POST, url);
    request
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    *request.body_mut() = Some(body.into());
    request
}

/// A URL with further path segments, percent-encoded.
pub(crate) fn join(base: &Url, segments: &[&str]) -> Url {
    let mut url = base.clone();
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(segments);
    }
    url
}

/// A header value that `Debug` hides; none if a header cannot contain these characters.
pub(crate) fn sensitive(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// A configured secret as a header value.
pub(crate) fn secret_header(
    carrier: Carrier,
    prefix: &str,
    secret: &SecretString,
) -> Result<HeaderValue, SetupError> {
    let value = sensitive(&format!("{prefix}{}", secret.expose_secret()));
    value.ok_or(SetupError::Credentials(carrier))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        for (text, seconds) in [
            ("120", Some(120)),
            ("Tue, 06 Jan 2026 12:05:00 GMT", Some(300)),
            ("Tue, 06 Jan 2026 11:00:00 GMT", None),
            ("0", None),
            ("4000000000", Some(86_400)),
            ("-5", None),
            ("soon", None),
        ] {
            let now = parse::instant("2026-01-06T12:00:00Z").unwrap();
            let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(text))]);
            let pause = retry_after(&headers, now).map(|pause| pause.num_seconds());
            assert_eq!(pause, seconds, "{text}");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        assert_eq!(format!("{:?}", sensitive("hush").unwrap()), "Sensitive");
        assert!(sensitive("two\nlines").is_none());
    }
}
