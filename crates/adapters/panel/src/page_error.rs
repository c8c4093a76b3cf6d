//! Errors of a page, and the page that is shown instead.

use std::borrow::Cow;

use accounts::HasherBusy;
use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderValue, RETRY_AFTER};
use kernel::{RowTaken, ShareTaken, StoreError, TransactionError, error_chain};
use oauth::{ConsentRefusal, Quota};
use web::error::{Cause, log_failure};
use web::{Panicked, TraceId, meters, response};

use crate::Panel;
use crate::frame::Frame;
use crate::next::Next;
use crate::pages::{self, MessagePage};
use crate::texts::{Language, Texts};

/// The response of a page, or the value of one of its steps; otherwise the refusal or failure.
pub(crate) type PageResult<T = HttpResponse> = Result<T, PageError>;

/// A refused or failed request.
#[derive(Debug)]
pub(crate) enum PageError {
    /// The page does not exist, or not for this seller.
    NotFound,
    /// Nobody is signed in. Redirects to the sign-in page, which leads on to `Next`.
    SignIn(Next),
    /// The session of a form has ended. Redirects as `SignIn`, and the page says that nothing was done.
    SignedOut(Next),
    /// The form has no valid CSRF token; most likely it was open for too long. The page leads to `Next`, if that is known.
    StaleForm(Next),
    /// A request that no page of the panel sends.
    Malformed,
    /// As `Malformed`, but the client may still be sending: the connection is closed.
    Unreadable,
    /// Too many attempts from this address, pages of this account, or registrations.
    TooMany(Quota),
    /// The consent request cannot be shown or decided.
    Consent(ConsentRefusal),
    /// The one-time link is invalid, used or expired.
    DeadLink,
    /// The form's one-time number was used with other values. Holds the path of the page with a new number.
    FormUsed(String),
    /// The one-time result was already shown, or never existed.
    ShownBefore,
    /// The maximum number of passwords is already waiting to be compared.
    HasherBusy,
    /// The client has as much under way as it may have.
    Busy,
    /// The store is unavailable.
    Unavailable(Cause),
    /// A bug, or an unknown outcome.
    Failed(Cause),
}

impl PageError {
    /// Logs the cause, counts a refusal by a limit, and makes the response: usually a page with advice.
    pub(crate) fn into_response(
        self,
        panel: &Panel,
        trace_id: &TraceId,
        language: Language,
        route: &str,
    ) -> HttpResponse {
        if let Some(cause) = self.cause() {
            log_failure(trace_id, route, cause);
        }
        if matches!(self, Self::HasherBusy) {
            meters::count_decision("password_hashes", "refused");
        }
        let (status, answer) = match &self {
            Self::SignIn(next) => (StatusCode::SEE_OTHER, pages::see_other(&next.sign_in())),
            Self::SignedOut(next) => {
                let answer = pages::done("session-ended", &next.sign_in());
                (StatusCode::SEE_OTHER, answer)
            }
            error => {
                let (status, title, text) = error.message(language.texts());
                let (link, label) = error.link(language.texts());
                let page = MessagePage {
                    frame: Frame::bare(&panel.ports.service, language, title.to_owned()),
                    text: &text,
                    link: &link,
                    label,
                    trace_id: Some(trace_id.as_str()),
                };
                (status, pages::page(status, &page))
            }
        };
        let mut response = answer.unwrap_or_else(|_| response::empty(status, trace_id));
        let seconds = match self {
            Self::TooMany(quota) => Some(quota.retry_after()),
            Self::Unavailable(_) | Self::HasherBusy | Self::Busy => Some(1),
            _ => None,
        };
        if let Some(seconds) = seconds {
            let headers = response.headers_mut();
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }

    /// Status, title and text of the page.
    fn message(&self, t: &Texts) -> (StatusCode, &'static str, Cow<'static, str>) {
        let t = &t.failures;
        let (status, (title, text)) = match self {
            Self::TooMany(quota) => {
                let (title, text) = (t.too_many)(quota.retry_after());
                return (StatusCode::TOO_MANY_REQUESTS, title, text.into());
            }
            Self::NotFound | Self::SignIn(_) | Self::SignedOut(_) => (StatusCode::NOT_FOUND, t.not_found),
            Self::StaleForm(_) => (StatusCode::FORBIDDEN, t.stale_form),
            Self::Malformed | Self::Unreadable => (StatusCode::BAD_REQUEST, t.malformed),
            Self::Consent(ConsentRefusal::Unknown) => (StatusCode::NOT_FOUND, t.unknown_consent),
            Self::Consent(ConsentRefusal::Expired) => (StatusCode::GONE, t.expired_consent),
            Self::Consent(ConsentRefusal::Decided) => (StatusCode::GONE, t.decided_consent),
            Self::Consent(ConsentRefusal::AnotherViewer) => (StatusCode::FORBIDDEN, t.others_consent),
            Self::DeadLink => (StatusCode::GONE, t.dead_link),
            Self::FormUsed(_) => (StatusCode::CONFLICT, t.form_used),
            Self::ShownBefore => (StatusCode::GONE, t.shown_before),
            // Clients cause these, and an alert does not count them.
            Self::HasherBusy | Self::Busy => (StatusCode::SERVICE_UNAVAILABLE, t.unavailable),
            Self::Unavailable(_) => (StatusCode::INTERNAL_SERVER_ERROR, t.unavailable),
            Self::Failed(_) => (StatusCode::INTERNAL_SERVER_ERROR, t.failed),
        };
        (status, title, text.into())
    }

    /// The target and the label of the page's link.
    fn link(&self, t: &Texts) -> (Cow<'_, str>, &'static str) {
        match self {
            Self::DeadLink => ("/panel/sign-in".into(), t.passwords.back_to_sign_in),
            Self::FormUsed(page) => (page.into(), t.failures.open_anew),
            Self::StaleForm(next) if *next != Next::default() => (next.path().into(), t.failures.open_anew),
            _ => ("/panel/applications".into(), t.failures.start),
        }
    }

    pub(crate) fn failed(cause: impl Into<Cause>) -> Self {
        Self::Failed(cause.into())
    }

    /// Whether it is unknown if the change was committed.
    pub(crate) fn is_unknown(&self) -> bool {
        let Self::Failed(cause) = self else { return false };
        matches!(cause.downcast_ref(), Some(TransactionError::Unknown(_)))
    }

    /// Logs a failure of background work.
    pub(crate) fn log(&self, trace_id: &TraceId, what: &'static str) {
        let cause = self.cause().map(|cause| error_chain(cause.as_ref()));
        let cause = cause.unwrap_or_default();
        tracing::error!(trace_id = trace_id.as_str(), cause, "{what}");
    }

    /// For the log.
    fn cause(&self) -> Option<&Cause> {
        match self {
            Self::Unavailable(cause) | Self::Failed(cause) => Some(cause),
            _ => None,
        }
    }
}

impl From<StoreError> for PageError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(cause) if cause.is::<HasherBusy>() => Self::HasherBusy,
            StoreError::Unavailable(cause) if cause.is::<ShareTaken>() || cause.is::<RowTaken>() => {
                Self::Busy
            }
            StoreError::Unavailable(_) => Self::Unavailable(error.into()),
            other => Self::Failed(other.into()),
        }
    }
}

impl From<Panicked> for PageError {
    fn from(panicked: Panicked) -> Self {
        Self::failed(panicked)
    }
}

impl From<TransactionError> for PageError {
    fn from(error: TransactionError) -> Self {
        match error {
            TransactionError::Store(error) => error.into(),
            unknown @ TransactionError::Unknown(_) => Self::Failed(unknown.into()),
        }
    }
}
