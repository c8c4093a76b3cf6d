//! The access log: one structured line for each request.

use std::time::Duration;

use actix_web::http::{Method, StatusCode};

use crate::trace_id::TraceId;

/// Routes that monitoring polls, on the listeners that have them; not worth a line while they succeed.
const PROBES: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// Writes a line at a level, always with the same fields.
macro_rules! write_at {
    ($level:ident, $line:expr) => {
        tracing::$level!(
            target: "access",
            listener = $line.listener,
            trace_id = $line.trace_id.as_str(),
            method = $line.method.as_str(),
            route = $line.route,
            status = $line.status.as_u16(),
            duration_ms = milliseconds($line.duration),
            "request",
        )
    };
}

/// The contents of a line. It has no field for a path, a query string or a header: those can carry ids, tokens and personal data, while the
/// route's template cannot.
#[derive(Clone, Copy, Debug)]
pub struct AccessLine<'a> {
    /// The listener, such as `api` or `backoffice`.
    pub listener: &'static str,
    /// The trace id in the response.
    pub trace_id: &'a TraceId,
    pub method: &'a Method,
    /// The route's template, such as `/v1/offers/{id}`; `-` if no route matched.
    pub route: &'a str,
    pub status: StatusCode,
    /// From the request's head to the whole response, without the time to send it.
    pub duration: Duration,
}

impl AccessLine<'_> {
    /// Writes the line with target `access` at level INFO; a successful probe at level DEBUG.
    pub fn write(&self) {
        if PROBES.contains(&self.route) && self.status.is_success() {
            write_at!(debug, self);
        } else {
            write_at!(info, self);
        }
    }
}

/// Milliseconds with three decimals, from whole microseconds, so that no line shows binary rounding errors.
fn milliseconds(duration: Duration) -> f64 {
    let microseconds = (duration.as_secs_f64() * 1_000_000.0).round();
    microseconds / 1_000.0
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing::field::{Field, Visit};
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Metadata, Subscriber};

    use super::*;

    /// Keeps the fields of every event as text.
    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<String>>>);

    impl Visit for Kept {
        fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
            self.0.lock().unwrap().push(format!("{}={value:?}", field.name()));
        }
    }

    impl Subscriber for Kept {
        fn enabled(&self, metadata: &Metadata<'_>) -> bool {
            metadata.target() == "access"
        }
        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }
        fn record(&self, _: &Id, _: &Record<'_>) {}
        fn record_follows_from(&self, _: &Id, _: &Id) {}
        fn event(&self, event: &Event<'_>) {
            self.0.lock().unwrap().push(event.metadata().level().to_string());
            event.record(&mut self.clone());
        }
        fn enter(&self, _: &Id) {}
        fn exit(&self, _: &Id) {}
    }

    /// The recorded fields of a line, its level first.
    fn written(route: &str, status: StatusCode) -> Vec<String> {
        let kept = Kept::default();
        let line = AccessLine {
            listener: "api",
            trace_id: &TraceId::from_random([0xab; 16]),
            method: &Method::GET,
            route,
            status,
            duration: Duration::from_nanos(1_500_499),
        };
        tracing::subscriber::with_default(kept.clone(), || line.write());
        kept.0.lock().unwrap().clone()
    }

    #[test]
    fn a_line_has_all_it_should() {
        let expected = [
            "INFO",
            "message=request",
            "listener=\"api\"",
            "trace_id=\"abababababababababababababababab\"",
            "method=\"GET\"",
            "route=\"/v1/offers/{id}\"",
            "status=200",
            "duration_ms=1.5",
        ];
        assert_eq!(written("/v1/offers/{id}", StatusCode::OK), expected);
    }

    #[test]
    fn probes_are_told_of_where_they_fail() {
        for (route, status, level) in [
            ("/healthz", StatusCode::OK, "DEBUG"),
            ("/readyz", StatusCode::OK, "DEBUG"),
            ("/metrics", StatusCode::OK, "DEBUG"),
            ("/readyz", StatusCode::SERVICE_UNAVAILABLE, "INFO"),
            ("/sellers", StatusCode::OK, "INFO"),
            ("-", StatusCode::NOT_FOUND, "INFO"),
        ] {
            assert_eq!(written(route, status)[0], level, "{route} {status}");
        }
    }
}
