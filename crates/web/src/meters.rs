//! Request counters and durations, by listener, route template, method and status; refusals by application.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;
use std::time::Duration;

use actix_web::http::{Method, StatusCode};
use metrics::{Counter, Histogram};
use oauth::ClientId;
use parking_lot::Mutex;

/// The applications whose refusals have a counter of their own, in this process: the first so many.
static NAMED: LazyLock<Mutex<HashSet<ClientId>>> = LazyLock::new(Mutex::default);
const MOST_NAMED: usize = 200;

/// The meters of one listener in one server thread. Looking a meter up by its labels at each request would
/// cost more than reading a row, so each is looked up once.
pub struct RequestMeters {
    listener: &'static str,
    known: RefCell<HashMap<(&'static str, &'static str, u16), Meter>>,
    /// By named application and status.
    refusals: RefCell<HashMap<(Option<ClientId>, u16), Counter>>,
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
            refusals: RefCell::default(),
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

    /// Counts an answer to an application, if it is a refusal for its credentials, scopes or limits.
    pub(crate) fn count_refusal(&self, client_id: ClientId, status: StatusCode) {
        if !matches!(status.as_u16(), 401 | 403 | 429) {
            return;
        }
        let mut known = self.refusals.borrow_mut();
        if let Some(counter) = known.get(&(Some(client_id), status.as_u16())) {
            counter.increment(1);
            return;
        }
        let mut named = NAMED.lock();
        let is_named = named.contains(&client_id) || named.len() < MOST_NAMED && named.insert(client_id);
        let client_id = is_named.then_some(client_id);
        let counter = known.entry((client_id, status.as_u16())).or_insert_with(|| {
            let client_id = client_id.map_or_else(|| "other".to_owned(), |client_id| client_id.to_string());
            metrics::counter!("application_refusals_total", "client_id" => client_id, "status" => status.as_u16().to_string())
        });
        counter.increment(1);
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
