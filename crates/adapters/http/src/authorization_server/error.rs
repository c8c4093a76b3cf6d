//! The error shape of `/oauth`: `{"error", "error_description", "reason", "traceId"}` (contract: Errors,
//! D141).

use std::borrow::Cow;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{ALLOW, HeaderMap, HeaderValue, PRAGMA, RETRY_AFTER, WWW_AUTHENTICATE};
use kernel::{StoreError, TransactionError};
use oauth::{GrantRefusal, InvalidClient, ScopeRefused};
use serde::Serialize;
use usecases::Failure;
use web::access_log::LoggedRefusal;
use web::deadline::Overdue;
use web::error::Panicked;
use web::head::BadHead;
use web::problem::quotable;
use web::{TaskPanicked, TraceId, response};

const MAX_TEXT_LENGTH: usize = 200;

/// The value of `error`, and its usual status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Code(&'static str, StatusCode);

impl Code {
    const INVALID_REQUEST: Self = Self("invalid_request", StatusCode::BAD_REQUEST);
    const INVALID_CLIENT: Self = Self("invalid_client", StatusCode::UNAUTHORIZED);
    const INVALID_GRANT: Self = Self("invalid_grant", StatusCode::BAD_REQUEST);
    const INVALID_SCOPE: Self = Self("invalid_scope", StatusCode::BAD_REQUEST);
    pub(super) const UNSUPPORTED_GRANT_TYPE: Self = Self("unsupported_grant_type", StatusCode::BAD_REQUEST);
    const RATE_LIMITED: Self = Self("rate_limited", StatusCode::TOO_MANY_REQUESTS);
    pub(super) const SERVER_ERROR: Self = Self("server_error", StatusCode::INTERNAL_SERVER_ERROR);

    pub(super) const fn as_str(self) -> &'static str {
        self.0
    }
}

/// An error response, with its headers and log entry.
#[derive(Debug)]
pub(super) struct OAuthError(Box<Inner>);

#[derive(Debug)]
struct Inner {
    code: Code,
    status: StatusCode,
    description: Cow<'static, str>,
    /// The machine-readable cause, if the caller may learn it.
    reason: Option<&'static str>,
    /// The cause for the log; None if it is `reason`.
    logged_reason: Option<&'static str>,
    retry_after: Option<u32>,
    allow: Option<&'static str>,
    closes: bool,
    /// The cause of a 500 that is not logged yet.
    failure: Option<web::Error>,
}

impl OAuthError {
    pub(super) fn new(code: Code, description: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Inner {
            code,
            status: code.1,
            description: description.into(),
            reason: None,
            logged_reason: None,
            retry_after: None,
            allow: None,
            closes: false,
            failure: None,
        }))
    }

    /// 400: the endpoint cannot read the request.
    pub(super) fn invalid_request(description: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::INVALID_REQUEST, description)
    }

    /// 400, after which the connection is closed.
    pub(super) fn closing(description: impl Into<Cow<'static, str>>) -> Self {
        let mut error = Self::invalid_request(description);
        error.0.closes = true;
        error
    }

    /// 401: client authentication failed.
    pub(super) fn invalid_client(description: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::INVALID_CLIENT, description)
    }

    /// 400 for a refused client if the caller is a browser, which cannot authenticate as a client.
    pub(super) fn no_such_client(refusal: InvalidClient, description: String) -> Self {
        let mut error = Self::from(refusal);
        error.0.status = StatusCode::BAD_REQUEST;
        error.0.description = description.into();
        error
    }

    /// 404 under `/oauth` (D87).
    pub(super) fn not_found() -> Self {
        let mut error = Self::invalid_request("Endpoint not found.");
        error.0.status = StatusCode::NOT_FOUND;
        error
    }

    /// 404 on an endpoint with a trailing slash (D6).
    pub(super) fn trailing_slash() -> Self {
        let mut error = Self::not_found();
        error.0.description = "Remove the trailing slash: the endpoint exists without it.".into();
        error
    }

    /// 404 on an endpoint that takes another method (D87).
    pub(super) fn wrong_method(allow: &'static str) -> Self {
        let mut error = Self::not_found();
        error.0.description = format!("This endpoint accepts only {allow}.").into();
        error.0.allow = Some(allow);
        error
    }

    /// 429; retry after this many seconds.
    pub(super) fn too_many(seconds: u32) -> Self {
        let description = format!("Rate limit reached. Retry in {seconds} s.");
        let mut error = Self::new(Code::RATE_LIMITED, description);
        error.0.retry_after = Some(seconds);
        error
    }

    /// 500 with a fixed description.
    pub(super) fn failed(failure: web::Error) -> Self {
        let description = "Internal error. Quote the traceId to support.";
        let mut error = Self::new(Code::SERVER_ERROR, description);
        error.0.retry_after = failure.retry_after();
        error.0.failure = Some(failure);
        error
    }

    pub(super) fn code(&self) -> Code {
        self.0.code
    }

    /// Logs that another client holds the refused code or token, which the caller must not learn.
    pub(super) fn log_another_client(&mut self) {
        if self.0.code == Code::INVALID_GRANT {
            self.0.logged_reason = Some("another_client");
        }
    }

    /// Logs the cause, once.
    pub(super) fn logged(mut self, trace_id: &TraceId, route: &str) -> Self {
        if let Some(failure) = self.0.failure.take() {
            drop(failure.logged(trace_id, route));
        }
        self
    }

    /// Whether to close the connection.
    pub(super) fn closes(&self) -> bool {
        self.0.closes
    }

    /// The body with this trace id.
    pub(super) fn body(&self, trace_id: &TraceId) -> Vec<u8> {
        #[derive(Serialize)]
        struct Body<'a> {
            error: &'static str,
            error_description: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            reason: Option<&'static str>,
            #[serde(rename = "traceId")]
            trace_id: &'a str,
        }
        let body = Body {
            error: self.0.code.as_str(),
            error_description: &printable(&self.0.description),
            reason: self.0.reason,
            trace_id: trace_id.as_str(),
        };
        // Only strings: serialisation cannot fail.
        serde_json::to_vec(&body).unwrap_or_default()
    }

    /// The whole response. A 401 challenges a client that used HTTP Basic or another scheme, for this realm.
    pub(super) fn into_response(self, trace_id: &TraceId, realm: Option<&str>) -> HttpResponse {
        let mut response = response::json(self.0.status, self.body(trace_id), trace_id);
        response.extensions_mut().insert(LoggedRefusal {
            error: self.0.code.as_str(),
            reason: self.0.logged_reason.or(self.0.reason),
        });
        let headers = response.headers_mut();
        set_pragma(headers);
        if let Some(seconds) = self.0.retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(allow) = self.0.allow {
            headers.insert(ALLOW, HeaderValue::from_static(allow));
        }
        if let Some(realm) = realm.filter(|_| self.0.status == StatusCode::UNAUTHORIZED) {
            let challenge = format!("Basic realm=\"{}\"", printable(realm));
            if let Ok(challenge) = HeaderValue::from_str(&challenge) {
                headers.insert(WWW_AUTHENTICATE, challenge);
            }
        }
        response
    }
}

/// `Pragma: no-cache`, which RFC 6749 §5.1 requires beside `Cache-Control`.
pub(super) fn set_pragma(headers: &mut HeaderMap) {
    headers.insert(PRAGMA, HeaderValue::from_static("no-cache"));
}

/// What a description may contain (RFC 6749 §5.2), and a quoted challenge, too. Part of the text may come from the
/// client.
pub(super) fn printable(text: &str) -> String {
    quotable(text).chars().take(MAX_TEXT_LENGTH).collect()
}

impl From<BadHead> for OAuthError {
    fn from(excess: BadHead) -> Self {
        Self::closing(excess.to_string())
    }
}

impl From<InvalidClient> for OAuthError {
    fn from(refusal: InvalidClient) -> Self {
        let mut error = Self::invalid_client(refusal.to_string());
        error.0.reason = refusal.reason();
        error.0.logged_reason = Some(refusal.cause());
        error
    }
}

impl From<GrantRefusal> for OAuthError {
    fn from(refusal: GrantRefusal) -> Self {
        if let GrantRefusal::Client(refusal) = refusal {
            return refusal.into();
        }
        let description = format!("The code or token cannot be used: {refusal}.");
        let mut error = Self::new(Code::INVALID_GRANT, description);
        error.0.reason = refusal.reason();
        error
    }
}

impl From<ScopeRefused> for OAuthError {
    fn from(refusal: ScopeRefused) -> Self {
        Self::new(Code::INVALID_SCOPE, refusal.to_string())
    }
}

impl<R: Into<Self>> From<Failure<R>> for OAuthError {
    fn from(failure: Failure<R>) -> Self {
        match failure {
            Failure::Refused(refusal) => refusal.into(),
            Failure::Store(error) => error.into(),
        }
    }
}

macro_rules! failures {
    ($($failure:ty),+) => {
        $(impl From<$failure> for OAuthError {
            fn from(failure: $failure) -> Self {
                Self::failed(failure.into())
            }
        })+
    };
}

// `Retry-After` is also sent when the outcome stayed unknown: the presented code or token may have been used.
failures!(
    StoreError,
    TransactionError,
    Overdue,
    TaskPanicked,
    Panicked,
    serde_json::Error
);
