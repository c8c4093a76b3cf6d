//! The tracing span of a request, the parent of all spans of its work.
//!
//! If no exporter is configured, a span is neither registered nor allocated.

use std::collections::HashMap;

use actix_web::http::header::{HeaderMap, HeaderName};
use actix_web::http::{Method, StatusCode};
use kernel::SPANS;
use opentelemetry::Context;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::TraceContextExt;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use tracing::field::{Empty, display};
use tracing::instrument::{Instrument, Instrumented};
use tracing::{Level, Span};
use tracing_opentelemetry::OpenTelemetrySpanExt;

use crate::head::only;
use crate::meters::label;
use crate::trace_id::TraceId;

/// The caller's span (W3C Trace Context §3.2). `tracestate` is neither read nor forwarded.
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The span of one request. Clones share it.
#[derive(Clone, Debug)]
pub struct RequestSpan(Span);

impl RequestSpan {
    /// Starts the span of a request to a listener such as `api`: in the trace that its `traceparent` names if
    /// the peer is trusted, else in a new one. `is_trusted` is called only if needed.
    pub fn begin(
        listener: &'static str,
        headers: &HeaderMap,
        trace_id: &TraceId,
        is_trusted: impl FnOnce() -> bool,
    ) -> Self {
        let span = tracing::info_span!(
            target: SPANS,
            parent: None,
            "request",
            otel.kind = "server",
            otel.status_code = Empty,
            http.request.method = Empty,
            http.route = Empty,
            http.response.status_code = Empty,
            listener,
            x_trace_id = trace_id.as_str(),
            client_id = Empty,
        );
        if !span.is_disabled()
            && is_trusted()
            && let Some(caller) = caller(headers)
        {
            // Cannot fail: nothing has entered the span yet.
            drop(span.set_parent(caller));
        }
        Self(span)
    }

    /// Runs the request's work in the span.
    pub fn instrument<F: Future>(&self, work: F) -> Instrumented<F> {
        work.instrument(self.0.clone())
    }

    /// Records the application of the request.
    pub(crate) fn record_client(&self, client_id: impl std::fmt::Display) {
        self.0.record("client_id", display(client_id));
    }

    /// Ends the span even if work of the request goes on; `last` runs in it first.
    pub fn end(&self, method: &Method, route: &str, status: StatusCode, last: impl FnOnce()) {
        self.0.in_scope(last);
        if self.0.is_disabled() {
            return;
        }
        let context = self.0.context();
        let span = context.span();
        // Unknown methods and missing routes are named by OpenTelemetry's conventions.
        let (method, name) = match label(method) {
            "other" => ("_OTHER", "HTTP"),
            method => (method, method),
        };
        if route == "-" {
            span.update_name(name);
        } else {
            span.update_name(format!("{name} {route}"));
            self.0.record("http.route", route);
        }
        self.0.record("http.request.method", method);
        self.0
            .record("http.response.status_code", i64::from(status.as_u16()));
        if status.is_server_error() {
            self.0.record("otel.status_code", "ERROR");
        }
        span.end();
    }
}

/// The context of the caller's span; empty if `traceparent` is invalid.
fn caller(headers: &HeaderMap) -> Option<Context> {
    let sent = only(headers, TRACEPARENT)?.to_str().ok()?;
    let alone = HashMap::from([(TRACEPARENT.to_string(), sent.to_owned())]);
    Some(TraceContextPropagator::new().extract_with_context(&Context::new(), &alone))
}

/// The current span; disabled if spans are not recorded.
pub(crate) fn current() -> Span {
    if tracing::span_enabled!(target: SPANS, Level::INFO) {
        Span::current()
    } else {
        Span::none()
    }
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    #[test]
    fn without_a_subscriber_no_span_is_made() {
        let mut headers = HeaderMap::new();
        let traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        headers.insert(TRACEPARENT, HeaderValue::from_static(traceparent));
        let id = TraceId::from_random([1; 16]);
        let span = RequestSpan::begin("api", &headers, &id, || panic!("nobody needs to know"));
        assert!(span.0.is_disabled() && current().is_none());
        let mut ended = false;
        span.end(&Method::GET, "/v1/me", StatusCode::OK, || ended = true);
        assert!(ended);
    }
}
