//! The error shape of `/oauth`: `{"error", "error_description", "reason", "traceId"}` (contract: Errors,
//! D141).

use std::borrow::Cow;
use std::collections::BTreeMap;

use actix_web::HttpResponse;
use actix_web::body::BoxBody;
use actix_web::http::StatusCode;
use actix_web::http::header::{ALLOW, HeaderValue, WWW_AUTHENTICATE};
use kernel::{StoreError, TransactionError};
use oauth::{GrantRefusal, InvalidClient, ScopeRefused};
use usecases::Failure;
use web::access_log::LoggedRefusal;
use web::problem::quotable;
use web::{Entry, Error, Panicked, Problem, TraceId};

const MAX_TEXT_LENGTH: usize = 200;

/// The value of `error`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Code(&'static str);

impl Code {
    const INVALID_REQUEST: Self = Self("invalid_request");
    const INVALID_CLIENT: Self = Self("invalid_client");
    const INVALID_GRANT: Self = Self("invalid_grant");
    const INVALID_SCOPE: Self = Self("invalid_scope");
    pub(super) const UNSUPPORTED_GRANT_TYPE: Self = Self("unsupported_grant_type");
    const RATE_LIMITED: Self = Self("rate_limited");
    pub(super) const SERVER_ERROR: Self = Self("server_error");

    pub(super) const fn as_str(self) -> &'static str {
        self.0
    }
}

/// An error response, with its headers and log entry.
#[derive(Debug)]
pub(super) struct OAuthError {
    code: Code,
    /// The machine-readable cause, if the caller may learn it.
    reason: Option<&'static str>,
    /// The cause for the log; None if it is `reason`.
    logged_reason: Option<&'static str>,
    /// Its message is the description.
    error: Error,
}

impl OAuthError {
    fn of(code: Code, error: impl Into<Error>) -> Self {
        Self {
            code,
            reason: None,
            logged_reason: None,
            error: error.into(),
        }
    }

    /// 400
    pub(super) fn new(code: Code, description: impl Into<Cow<'static, str>>) -> Self {
        Self::of(code, Problem::from(Entry::whole(description)))
    }

    /// 400: the endpoint cannot read the request.
    pub(super) fn invalid_request(description: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::INVALID_REQUEST, description)
    }

    /// 400, after which the connection is closed.
    pub(super) fn closing(description: impl Into<Cow<'static, str>>) -> Self {
        Self::of(Code::INVALID_REQUEST, Error::closing(description))
    }

    /// 401: client authentication failed.
    pub(super) fn invalid_client(description: impl Into<Cow<'static, str>>) -> Self {
        let problem = Problem::new(web::Code::Unauthorized, description);
        Self::of(Code::INVALID_CLIENT, problem)
    }

    /// 400 for a refused client if the caller is a browser, which cannot authenticate as a client.
    pub(super) fn no_such_client(refusal: InvalidClient, description: String) -> Self {
        Self {
            error: Problem::from(Entry::whole(description)).into(),
            ..Self::from(refusal)
        }
    }

    /// 404 under `/oauth` (D6, D87).
    pub(super) fn not_found(description: &'static str) -> Self {
        let problem = Problem::new(web::Code::NotFound, description);
        Self::of(Code::INVALID_REQUEST, problem)
    }

    /// 404 on an endpoint that takes another method (D87).
    pub(super) fn wrong_method(allow: &str) -> Self {
        let description = format!("This endpoint accepts only {allow}.");
        let problem = Problem::new(web::Code::NotFound, description);
        Self::of(Code::INVALID_REQUEST, problem.with_header(ALLOW, allow))
    }

    /// 429; retry after this many seconds.
    pub(super) fn too_many(seconds: u32) -> Self {
        Self::of(Code::RATE_LIMITED, Problem::rate_limited(seconds))
    }

    /// 500 with a fixed description; 429 if the seller's own requests use up its share of the database.
    pub(super) fn failed(failure: Error) -> Self {
        let code = match failure.problem().status() {
            StatusCode::TOO_MANY_REQUESTS => Code::RATE_LIMITED,
            _ => Code::SERVER_ERROR,
        };
        Self::of(code, failure)
    }

    pub(super) fn code(&self) -> Code {
        self.code
    }

    /// Logs that another client holds the refused code or token, which the caller must not learn.
    pub(super) fn log_another_client(&mut self) {
        if self.code == Code::INVALID_GRANT {
            self.logged_reason = Some("another_client");
        }
    }

    /// Logs the cause, once.
    pub(super) fn logged(mut self, trace_id: &TraceId, route: &str) -> Self {
        self.error = self.error.logged(trace_id, route);
        self
    }

    /// The body with this trace id.
    fn body(&self, trace_id: &TraceId) -> Vec<u8> {
        let entry = self.error.problem().entries().first();
        let description = printable(entry.map_or("", Entry::message));
        let mut body = BTreeMap::from([
            ("error", self.code.as_str()),
            ("error_description", &description),
            ("traceId", trace_id.as_str()),
        ]);
        body.extend(self.reason.map(|reason| ("reason", reason)));
        // Only strings: serialisation cannot fail.
        serde_json::to_vec(&body).unwrap_or_default()
    }

    /// The whole response, and whether the connection is closed after it. A 401 challenges a client that used
    /// HTTP Basic or another scheme, for this realm.
    pub(super) fn into_response(self, trace_id: &TraceId, realm: Option<&str>) -> (HttpResponse, bool) {
        let body = BoxBody::new(self.body(trace_id));
        let (response, closes) = self.error.into_response(trace_id);
        let mut response = response.set_body(body);
        let logged = response.extensions_mut().remove::<LoggedRefusal>();
        let reason = logged.and_then(|logged| logged.reason);
        response.extensions_mut().insert(LoggedRefusal {
            error: self.code.as_str(),
            reason: self.logged_reason.or(self.reason).or(reason),
        });
        let realm = realm.filter(|_| response.status() == StatusCode::UNAUTHORIZED);
        if let Some(realm) = realm {
            let challenge = format!("Basic realm=\"{}\"", printable(realm));
            if let Ok(challenge) = HeaderValue::from_str(&challenge) {
                response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
            }
        }
        (response, closes)
    }
}

/// What a description may contain (RFC 6749 §5.2), and a quoted challenge, too. Part of the text may come from the
/// client.
pub(super) fn printable(text: &str) -> String {
    quotable(text).chars().take(MAX_TEXT_LENGTH).collect()
}

impl From<InvalidClient> for OAuthError {
    fn from(refusal: InvalidClient) -> Self {
        let mut error = Self::invalid_client(refusal.to_string());
        error.reason = refusal.reason();
        error.logged_reason = Some(refusal.cause());
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
        error.reason = refusal.reason();
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
failures!(StoreError, TransactionError, Panicked, serde_json::Error);

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderMap;

    use super::*;

    #[test]
    fn a_seller_whose_places_are_all_taken_gets_429() {
        let failure = StoreError::Unavailable(kernel::ShareTaken.into());
        assert_eq!(OAuthError::failed(failure.into()).code(), Code::RATE_LIMITED);
    }

    #[test]
    fn the_log_has_the_reason_of_a_failure() {
        let failure = StoreError::Unavailable(kernel::RowTaken.into());
        let (response, _) = OAuthError::failed(failure.into())
            .into_response(&TraceId::of(&HeaderMap::new(), || [0; 16]), None);
        let logged = response.extensions().get::<LoggedRefusal>().copied().unwrap();
        assert!(
            logged
                .reason
                .is_some_and(|reason| reason.starts_with("too many requests at once"))
        );
    }
}
