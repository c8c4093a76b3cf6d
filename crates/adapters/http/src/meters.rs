//! Counters and durations of requests, by route template, method and status.

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Duration;

use actix_web::http::{Method, StatusCode};
use metrics::{Counter, Histogram, Unit};

use crate::listener::LISTENER;

const REQUESTS: &str = "http_requests_total";
const SECONDS: &str = "http_request_duration_seconds";

/// The meters of one server thread. Looking a meter up by its labels at each request would cost more than the reading
/// of a row; here each is looked up once.
pub(crate) struct Meters(RefCell<HashMap<(&'static str, &'static str, u16), Meter>>);

struct Meter {
    requests: Counter,
    seconds: Histogram,
}

impl Meters {
    pub(crate) fn new() -> Self {
        metrics::describe_counter!(REQUESTS, "Requests that were answered.");
        metrics::describe_histogram!(
            SECONDS,
            Unit::Seconds,
            "From a request's head to its whole response."
        );
        Self(RefCell::default())
    }

    /// Counts a request. `route` is a template or `-`, so that the number of meters is bounded.
    pub(crate) fn count(&self, route: &'static str, method: &Method, status: StatusCode, took: Duration) {
        let method = label(method);
        let mut meters = self.0.borrow_mut();
        let meter = meters
            .entry((route, method, status.as_u16()))
            .or_insert_with(|| Meter::new(route, method, status));
        meter.requests.increment(1);
        meter.seconds.record(took.as_secs_f64());
    }
}

impl Meter {
    fn new(route: &'static str, method: &'static str, status: StatusCode) -> Self {
        let labels = [
            ("listener", LISTENER.to_owned()),
            ("route", route.to_owned()),
            ("method", method.to_owned()),
            ("status", status.as_u16().to_string()),
        ];
        Self {
            requests: metrics::counter!(REQUESTS, &labels),
            seconds: metrics::histogram!(SECONDS, &labels),
        }
    }
}

/// The method, if the contract has it: a client can make others up.
fn label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}
