//! HTTP as carriers get it: no redirects, no proxies from the environment, bounded answers.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use kernel::Clock;
use reqwest::{
    Body, Client, Method, Request, StatusCode,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER},
};
use secrecy::{ExposeSecret, SecretString};
use tracing::Instrument;
use url::Url;

use super::{Failure, spans};

/// How long a connection may take to come about, within the deadline.
const CONNECT: Duration = Duration::from_secs(1);

/// The largest answer that is read, in bytes.
const LARGEST: usize = 1024 * 1024;

/// The longest pause that a carrier can ask for.
const LONGEST_PAUSE: TimeDelta = TimeDelta::hours(24);

/// The one HTTP client of all carriers; connections are kept per host.
#[derive(Debug, Clone)]
pub(crate) struct Http {
    client: Client,
}

/// An answer that is worth reading.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) body: Vec<u8>,
}

impl Http {
    pub(crate) fn new(user_agent: &str, deadline: Duration) -> Result<Self, reqwest::Error> {
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            // Somebody else may install it in this very moment: all the better.
            drop(rustls::crypto::ring::default_provider().install_default());
        }
        let client = Client::builder()
            .user_agent(user_agent)
            .connect_timeout(CONNECT.min(deadline))
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .no_proxy()
            // Whether to try again is decided where the deadline is known.
            .retry(reqwest::retry::never())
            .build()?;
        Ok(Self { client })
    }

    /// Sends a request and reads the answer whole. Statuses that mean the same everywhere are failures already.
    pub(crate) async fn exchange(
        &self,
        mut request: Request,
        clock: &dyn Clock,
    ) -> Result<Response, Failure> {
        let span = spans::exchange(&request);
        spans::pass_on(&span, request.headers_mut());
        let outcome = self.send(request, clock).instrument(span.clone()).await;
        spans::exchanged(&span, &outcome);
        outcome
    }

    async fn send(&self, request: Request, clock: &dyn Clock) -> Result<Response, Failure> {
        let mut response = self.client.execute(request).await?;
        let status = response.status();
        spans::answered(status);
        match status.as_u16() {
            401 => return Err(Failure::Unauthorized),
            429 => return Err(Failure::Throttled(retry_after(response.headers(), clock.now()))),
            code @ (300..=399 | 502..=504) => return Err(Failure::Status(code)),
            _ => {}
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            if body.len().saturating_add(chunk.len()) > LARGEST {
                return Err(Failure::TooLarge);
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Response { status, body })
    }
}

/// `Retry-After` as seconds or as a date (RFC 9110 §10.2.3), from now on.
fn retry_after(headers: &HeaderMap, now: DateTime<Utc>) -> Option<TimeDelta> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let pause = match text.parse::<u32>() {
        Ok(seconds) => TimeDelta::seconds(seconds.into()),
        Err(_) => DateTime::parse_from_rfc2822(text).ok()?.to_utc() - now,
    };
    Some(pause.clamp(TimeDelta::zero(), LONGEST_PAUSE))
}

/// A GET request for JSON.
pub(crate) fn get(url: Url) -> Request {
    let mut request = Request::new(Method::GET, url);
    request
        .headers_mut()
        .insert(ACCEPT, HeaderValue::from_static("application/json"));
    request
}

/// A POST request.
pub(crate) fn post(url: Url, content_type: &'static str, body: impl Into<Body>) -> Request {
    let mut request = Request::new(Method::POST, url);
    request
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    *request.body_mut() = Some(body.into());
    request
}

/// A header's value that no log shows; none where the secret holds what a header cannot carry.
pub(crate) fn secret_header(prefix: &str, secret: &SecretString) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("{prefix}{}", secret.expose_secret())).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pause(text: &str) -> Option<i64> {
        let now = DateTime::parse_from_rfc3339("2026-01-06T12:00:00Z")
            .unwrap()
            .to_utc();
        let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_str(text).unwrap())]);
        retry_after(&headers, now).map(|pause| pause.num_seconds())
    }

    #[test]
    fn a_pause_is_told_in_seconds_or_by_a_date() {
        assert_eq!(pause("120"), Some(120));
        assert_eq!(pause("Tue, 06 Jan 2026 12:05:00 GMT"), Some(300));
        assert_eq!(pause("Tue, 06 Jan 2026 11:00:00 GMT"), Some(0));
        assert_eq!(pause("4000000000"), Some(86_400));
        assert_eq!(pause("-5"), None);
        assert_eq!(pause("soon"), None);
    }

    #[test]
    fn secrets_do_not_show() {
        let value = secret_header("Bearer ", &SecretString::from("hush")).unwrap();
        assert_eq!(format!("{value:?}"), "Sensitive");
        assert!(secret_header("", &SecretString::from("two\nlines")).is_none());
    }
}
