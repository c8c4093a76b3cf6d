//! Request counters and durations, by listener, route template, method and status.

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Duration;

use actix_web::http::{Method, StatusCode};
use metrics::{Counter, Histogram};

/// The meters of one listener in one server thread. Looking a meter up by its labels at each request would
/// cost more than reading a row, so each is looked up once.
pub struct RequestMeters {
    listener: &'static str,
    known: RefCell<HashMap<(&'static str, &'static str, u16), Meter>>,
}

struct Meter {
    requests: Counter,
    seconds: Histogram,
}

impl RequestMeters {
    /// Meters of a listener, such as `api` or `backoffice`.
    pub fn new(listener: &'static str) -> Self {
        Self {
            listener,
            known: RefCell::default(),
        }
    }

    /// Counts a request and its duration, from its head to its whole response. `route` is a template or `-`,
    /// so the number of meters is bounded.
    pub fn count(&self, route: &'static str, method: &Method, status: StatusCode, took: Duration) {
        let method = label(method);
        let mut known = self.known.borrow_mut();
        let meter = known
            .entry((route, method, status.as_u16()))
            .or_insert_with(|| self.meter(route, method, status));
        meter.requests.increment(1);
        meter.seconds.record(took.as_secs_f64());
    }

    fn meter(&self, route: &'static str, method: &'static str, status: StatusCode) -> Meter {
        let labels = [
            ("listener", self.listener.to_owned()),
            ("route", route.to_owned()),
            ("method", method.to_owned()),
            ("status", status.as_u16().to_string()),
        ];
        Meter {
            requests: metrics::counter!("http_requests_total", &labels),
            seconds: metrics::histogram!("http_request_duration_seconds", &labels),
        }
    }
}

/// Counts a decision of a rate limit.
pub fn count_decision(limit: &'static str, decision: &'static str) {
    metrics::counter!("rate_limit_decisions_total", "limit" => limit, "decision" => decision).increment(1);
}

/// The method if some route has it, otherwise `other`, because a client can invent methods.
pub(crate) fn label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}
