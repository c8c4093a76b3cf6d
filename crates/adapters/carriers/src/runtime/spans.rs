//! Spans of what carriers are asked, and the header by which a carrier can take part in the trace. No number of a parcel, no
//! path and no credential is in them.

use opentelemetry::{Context, trace::TraceContextExt as _};
use orders::{Carrier, Lookup};
use reqwest::{
    Request, StatusCode,
    header::{HeaderMap, HeaderName, HeaderValue},
};
use tracing::{Level, Span, field::Empty};

use super::Failure;

/// The target of everything that goes to traces and not to the log.
const SPANS: &str = "spans";

/// W3C Trace Context §3.2.
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The span of a look-up, waiting and second tries included.
pub(crate) fn look_up(carrier: Carrier) -> Span {
    tracing::info_span!(
        target: SPANS,
        "carrier",
        otel.name = format!("carrier {}", carrier.as_str()),
        otel.status_code = Empty,
        carrier = carrier.as_str(),
        outcome = Empty,
    )
}

/// Notes what came of a look-up.
pub(crate) fn looked_up(span: &Span, lookup: &Lookup) {
    let outcome = match lookup {
        Lookup::Found(_) => "found",
        Lookup::NotFound => "not_found",
        Lookup::Unavailable(_) => "unavailable",
    };
    span.record("outcome", outcome);
    if outcome == "unavailable" {
        span.record("otel.status_code", "ERROR");
    }
}

/// The span of one exchange.
pub(crate) fn exchange(request: &Request) -> Span {
    tracing::info_span!(
        target: SPANS,
        "carrier request",
        otel.name = request.method().as_str(),
        otel.kind = "client",
        otel.status_code = Empty,
        http.request.method = request.method().as_str(),
        server.address = request.url().host_str().unwrap_or_default(),
        http.response.status_code = Empty,
    )
}

/// Lets the carrier know in which trace, and under which span, it is asked.
pub(crate) fn pass_on(span: &Span, headers: &mut HeaderMap) {
    if span.is_disabled() {
        return;
    }
    let value = span.in_scope(|| {
        Context::map_current(|context| {
            let span = context.span();
            let context = span.span_context();
            let (trace, span) = (context.trace_id(), context.span_id());
            let sampled = u8::from(context.is_sampled());
            context
                .is_valid()
                .then(|| format!("00-{trace}-{span}-0{sampled}"))
        })
    });
    if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
        headers.insert(TRACEPARENT, value);
    }
}

/// Notes the status of the exchange in which this is called.
pub(crate) fn answered(status: StatusCode) {
    current().record("http.response.status_code", i64::from(status.as_u16()));
}

/// Notes that an exchange has failed.
pub(crate) fn exchanged<T>(span: &Span, outcome: &Result<T, Failure>) {
    if outcome.is_err() {
        span.record("otel.status_code", "ERROR");
    }
}

/// For whom something is done here; nobody where nobody traces.
pub(crate) fn current() -> Span {
    if tracing::span_enabled!(target: SPANS, Level::INFO) {
        Span::current()
    } else {
        Span::none()
    }
}
