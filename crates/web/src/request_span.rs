//! The span of a request: what a trace tells of it, and what all that is done for it hangs under.
//!
//! Where nobody traces, a span is nothing at all: it is neither registered nor allocated.

use actix_web::http::header::HeaderMap;
use actix_web::http::{Method, StatusCode};
use opentelemetry::Context;
use opentelemetry::trace::TraceContextExt;
use tracing::field::{Empty, display};
use tracing::instrument::{Instrument, Instrumented};
use tracing::{Level, Span};
use tracing_opentelemetry::OpenTelemetrySpanExt;

use crate::meters::label;
use crate::trace_id::TraceId;
use crate::traceparent::{self, Unvouched};

/// The target of everything that goes to traces and not to the log.
pub const SPANS: &str = "spans";

/// The span of one request. Clones are the same span.
#[derive(Clone, Debug)]
pub struct RequestSpan(Span);

impl RequestSpan {
    /// The span of a request that has just come in at a listener such as `api`, in the caller's trace where its `traceparent`
    /// names one. `vouched` tells whether the peer's word counts for whether the trace is recorded; it is asked only if need be.
    pub fn begin(
        listener: &'static str,
        headers: &HeaderMap,
        trace_id: &TraceId,
        vouched: impl FnOnce() -> bool,
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
            && let Some(caller) = traceparent::of(headers)
        {
            let context = Context::new().with_remote_span_context(caller);
            let context = if vouched() {
                context
            } else {
                context.with_value(Unvouched)
            };
            // It cannot fail: nobody has entered the span yet.
            drop(span.set_parent(context));
        }
        Self(span)
    }

    /// Does the request's work in the span.
    pub fn around<F: Future>(&self, work: F) -> Instrumented<F> {
        work.instrument(self.0.clone())
    }

    /// Says or does something in the span.
    pub fn within<T>(&self, say: impl FnOnce() -> T) -> T {
        self.0.in_scope(say)
    }

    /// Notes for which application the request came.
    pub fn record_client(&self, client_id: impl std::fmt::Display) {
        self.0.record("client_id", display(client_id));
    }

    /// Ends the span, whatever goes on in the request's name; `last` is said in it before.
    pub fn end(&self, method: &Method, route: &str, status: StatusCode, last: impl FnOnce()) {
        self.within(last);
        if self.0.is_disabled() {
            return;
        }
        let context = self.0.context();
        let span = context.span();
        // A method that nobody knows, and the absence of a route, are written as OpenTelemetry's conventions have it.
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

/// Whose work is done here; nobody's where nobody traces.
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
    fn where_nobody_traces_nothing_is_asked_and_nothing_made() {
        let mut headers = HeaderMap::new();
        let traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        headers.insert(traceparent::TRACEPARENT, HeaderValue::from_static(traceparent));
        let id = TraceId::from_random([1; 16]);
        let span = RequestSpan::begin("api", &headers, &id, || panic!("nobody needs to know"));
        assert!(span.0.is_disabled() && current().is_none());
        let mut said = false;
        span.end(&Method::GET, "/v1/me", StatusCode::OK, || said = true);
        assert!(said);
    }
}
