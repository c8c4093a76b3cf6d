//! The error shape of `/v1` and the back office: `{"traceId", "errors": […]}` (contract: Errors).

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt::Display;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{ALLOW, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use bytes::Bytes;
use kernel::BrokenRules;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use crate::access_log::LoggedRefusal;
use crate::code::Code;
use crate::response;
use crate::trace_id::TraceId;

/// The most entries of status 400 that one response carries (D14).
pub const MAX_ENTRIES: usize = 20;

/// `Retry-After` in seconds while the first request with a key runs (D49).
const IN_PROGRESS_RETRY_AFTER: u32 = 2;

/// `Retry-After` in seconds while the database is unavailable (D16).
const UNAVAILABLE_RETRY_AFTER: u32 = 1;

/// The reason of a 500 that too many requests cause, and no failure of the service.
pub(crate) const BUSY_ROW: &str = "too many requests at once for the same offer, order or application";

/// A refusal, ready to be rendered: its entries, all of one status, and its headers.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    status: StatusCode,
    entries: Vec<Entry>,
    headers: Vec<(HeaderName, String)>,
    /// The cause for the log alone.
    reason: Option<&'static str>,
}

impl Problem {
    /// A refusal with one entry.
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self::from(Entry::new(code, message))
    }

    /// A refusal with these violations: the entries of status 400 if there are any, otherwise those of status
    /// 422, otherwise those with the first one's status; in order, and of status 400 at most [`MAX_ENTRIES`]
    /// (D14).
    ///
    /// Without entries, which is a bug, [`Problem::internal`].
    pub fn of(entries: impl IntoIterator<Item = Entry>) -> Self {
        let mut entries: Vec<Entry> = entries.into_iter().collect();
        let present = |status| entries.iter().map(Entry::status).find(|found| *found == status);
        let Some(status) = present(StatusCode::BAD_REQUEST)
            .or_else(|| present(StatusCode::UNPROCESSABLE_ENTITY))
            .or_else(|| entries.first().map(Entry::status))
        else {
            return Self::internal();
        };
        entries.retain(|entry| entry.status() == status);
        if status == StatusCode::BAD_REQUEST {
            entries.truncate(MAX_ENTRIES);
        }
        Self::with(status, entries)
    }

    const fn with(status: StatusCode, entries: Vec<Entry>) -> Self {
        Self {
            status,
            entries,
            headers: Vec::new(),
            reason: None,
        }
    }

    /// 401 with the challenge of RFC 6750 §3; `realm` names the service, `token` the kind of token.
    pub fn unauthorized(realm: &str, token: &str) -> Self {
        let challenge = format!("Bearer realm=\"{}\", error=\"invalid_token\"", quotable(realm));
        let placeholder = token.to_uppercase().replace(' ', "_");
        let message = format!("Send one valid {token}: Authorization: Bearer <{placeholder}>.");
        Self::new(Code::Unauthorized, message).with_header(WWW_AUTHENTICATE, challenge)
    }

    /// 403 with the challenge of RFC 6750 §3.1; `scope` is the scope that the token lacks.
    pub fn insufficient_scope(scope: &str, realm: &str) -> Self {
        let (realm, named) = (quotable(realm), quotable(scope));
        let challenge = format!("Bearer realm=\"{realm}\", error=\"insufficient_scope\", scope=\"{named}\"");
        let message = format!("This operation needs the scope {scope}, which the token does not have.");
        Self::new(Code::InsufficientScope, message).with_header(WWW_AUTHENTICATE, challenge)
    }

    /// 404: no such resource, or one of another seller.
    pub fn not_found() -> Self {
        Self::new(Code::NotFound, "Resource not found.")
    }

    /// 404: the interface has no such path.
    pub fn no_such_path() -> Self {
        Self::new(Code::NotFound, "No such path: compare it with the documentation.")
    }

    /// 404 on a path that exists without its trailing slash (D6).
    pub fn trailing_slash() -> Self {
        Self::new(
            Code::NotFound,
            "Remove the trailing slash: the path exists without it.",
        )
    }

    /// 404 on a path that exists: the contract has no 405 (D4). `allow` lists the path's methods.
    pub fn wrong_method(allow: String) -> Self {
        let message = format!("Method not supported on this path. Supported: {allow}.");
        Self::new(Code::NotFound, message).with_header(ALLOW, allow)
    }

    /// 429; `retry_after` in seconds (contract: Limits).
    pub fn rate_limited(retry_after: u32) -> Self {
        let message = format!("Rate limit reached. Retry in {retry_after} s.");
        Self::new(Code::RateLimited, message).retry_after(retry_after)
    }

    /// 429: the requests of the seller or of the application use up its share of the database.
    pub fn too_many_at_once() -> Self {
        let message =
            "Too many requests of this seller or application at once: send fewer at a time. Retry in 1 s.";
        Self::new(Code::RateLimited, message).retry_after(1)
    }

    /// 409: the first request with this idempotency key is still running.
    pub fn key_in_progress() -> Self {
        let message = "The first request with this Idempotency-Key is still running. Retry in a moment.";
        Self::new(Code::IdempotencyInProgress, message).retry_after(IN_PROGRESS_RETRY_AFTER)
    }

    /// 422: the idempotency key was used with another request.
    pub fn key_reused() -> Self {
        let message = "This Idempotency-Key was used for another request: with another method, path or body, or by another \
                       client: a seller's applications share one key space, and so do operators. A repeat needs the first \
                       request's bytes, a new task a new key.";
        Self::new(Code::IdempotencyKeyReused, message)
    }

    /// 500 with a fixed message. The code that meets the cause logs it under the trace id.
    pub fn internal() -> Self {
        Self::new(
            Code::InternalError,
            "Internal error. Quote the traceId to support.",
        )
    }

    /// 500 while the database is unavailable: [`Problem::internal`] with `Retry-After` (D16).
    pub fn unavailable() -> Self {
        Self::internal().retry_after(UNAVAILABLE_RETRY_AFTER)
    }

    /// 500 beyond the queue for an offer, order or application (D142), with a reason for the log.
    pub fn busy_row() -> Self {
        Self::unavailable().because(Some(BUSY_ROW))
    }

    /// The same with `Retry-After`, in seconds.
    #[must_use]
    pub fn retry_after(self, seconds: u32) -> Self {
        self.with_header(RETRY_AFTER, seconds.to_string())
    }

    /// The same with this header.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The same with a cause for the log alone.
    #[must_use]
    pub fn because(self, reason: Option<&'static str>) -> Self {
        Self { reason, ..self }
    }

    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// The entries, in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The body with this trace id.
    pub fn body(&self, trace_id: &TraceId) -> Bytes {
        #[derive(serde::Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Body<'a> {
            trace_id: &'a str,
            errors: &'a [Entry],
        }
        let body = Body {
            trace_id: trace_id.as_str(),
            errors: &self.entries,
        };
        // Only strings and JSON values: serialisation cannot fail.
        serde_json::to_vec(&body).unwrap_or_default().into()
    }

    /// The whole response: body, `Content-Type`, `Cache-Control`, `X-Trace-Id`, and the refusal's headers.
    pub fn into_response(self, trace_id: &TraceId) -> HttpResponse {
        let mut response = response::json(self.status, self.body(trace_id), trace_id);
        let headers = response.headers_mut();
        for (name, text) in self.headers {
            if let Ok(value) = HeaderValue::try_from(text) {
                headers.insert(name, value);
            }
        }
        if let Some(first) = self.entries.first() {
            response.extensions_mut().insert(LoggedRefusal {
                error: first.code.as_str(),
                reason: self.reason,
            });
        }
        response
    }
}

impl From<Entry> for Problem {
    fn from(entry: Entry) -> Self {
        Self::with(entry.status(), vec![entry])
    }
}

impl<R: Display> From<BrokenRules<R>> for Problem {
    fn from(broken: BrokenRules<R>) -> Self {
        let entry = |(path, rule): (&str, &R)| Entry::validation(path.to_owned(), to_sentence(rule));
        Self::of(broken.iter().map(entry))
    }
}

/// Removes characters that a quoted string in a challenge cannot contain without an escape (RFC 9110 §5.6.4), nor
/// `error_description` at all (RFC 6749 §5.2).
pub fn quotable(text: &str) -> String {
    text.chars()
        .filter(|c| matches!(c, ' '..='~') && !matches!(c, '"' | '\\'))
        .collect()
}

/// `{code, message, userMessage?, path?, …}` (contract: Errors). `path` is a field, such as `price.amount` or
/// `item_ids[2]`, or the name of a header or query parameter (D14).
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    code: Code,
    message: Cow<'static, str>,
    path: Option<Cow<'static, str>>,
    more: Vec<(&'static str, Value)>,
}

impl Entry {
    /// An entry about the request as a whole. The code determines the `userMessage`.
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            message: message.into(),
            path: None,
            more: Vec::new(),
        }
    }

    /// A `validation_error` at a field, header or query parameter.
    pub fn validation(path: impl Into<Cow<'static, str>>, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::ValidationError, message).at(path)
    }

    /// A `validation_error` without a path: about the body or the request as a whole.
    pub fn whole(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::ValidationError, message)
    }

    /// The offer is in another state than `If-Match` names.
    pub fn other_state() -> Self {
        let message = "The offer is not in the state that the tag names. Read it again.";
        Self::new(Code::PreconditionFailed, message)
    }

    /// The same at this path.
    #[must_use]
    pub fn at(self, path: impl Into<Cow<'static, str>>) -> Self {
        Self {
            path: Some(path.into()),
            ..self
        }
    }

    /// The same with one more member, such as the `item_ids` of `multi_seller_order` (D39). Members follow
    /// the four common ones, in the order added.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.more.push((name, value.into()));
        self
    }

    pub const fn code(&self) -> Code {
        self.code
    }

    /// The status of a response with this entry.
    pub const fn status(&self) -> StatusCode {
        self.code.status()
    }

    /// The message for developers.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The path, if the entry is not about the whole request.
    pub fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("code", self.code.as_str())?;
        map.serialize_entry("message", &self.message)?;
        if let Some(user_message) = self.code.user_message() {
            map.serialize_entry("userMessage", user_message)?;
        }
        if let Some(path) = &self.path {
            map.serialize_entry("path", path)?;
        }
        for (name, value) in &self.more {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// "must be a UUID" as "Must be a UUID.": turns the domain's reasons into messages.
pub fn to_sentence(phrase: &(impl Display + ?Sized)) -> String {
    let phrase = phrase.to_string();
    let mut letters = phrase.chars();
    match letters.next() {
        Some(first) => format!("{}{}.", first.to_uppercase(), letters.as_str()),
        None => String::new(),
    }
}
