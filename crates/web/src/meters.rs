//! Request counters and durations, by listener, route template, method and status; refusals by application.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use actix_web::http::{Method, StatusCode};
use metrics::{Counter, Histogram};
use oauth::{ClientId, Quota};
use parking_lot::Mutex;

/// The applications whose refusals have a counter of their own, in this process: the first [`MAX_NAMED`] with [`OFTEN`]
/// refusals within [`WINDOW`]; later ones share one. A single refusal is normal: tokens expire.
static NAMED: LazyLock<Mutex<Named>> = LazyLock::new(Mutex::default);
const MAX_NAMED: usize = 200;
/// A thirtieth of its alert's threshold: each process counts for itself.
const OFTEN: u32 = 20;
const WINDOW: Duration = Duration::from_mins(15);

#[derive(Default)]
struct Named {
    named: HashSet<ClientId>,
    /// The refusals of others in this quarter of an hour.
    counted: HashMap<ClientId, u32>,
    began_at: Option<Instant>,
}

impl Named {
    /// Counts a refusal. Returns the label that it is counted under: the application's id if it is refused often,
    /// `unnamed` if others took the last name.
    fn label(&mut self, client_id: ClientId, now: Instant) -> String {
        if !self.named.contains(&client_id) {
            if self.began_at.is_none_or(|begun| now - begun >= WINDOW) {
                self.counted.clear();
                self.began_at = Some(now);
            }
            let refusals = self.counted.entry(client_id).or_default();
            *refusals += 1;
            if *refusals < OFTEN {
                return "other".to_owned();
            }
            if self.named.len() >= MAX_NAMED {
                return "unnamed".to_owned();
            }
            self.named.insert(client_id);
        }
        client_id.to_string()
    }
}

/// The meters of one listener in one server thread. Looking a meter up by its labels at each request would
/// cost more than reading a row, so each is looked up once.
pub struct RequestMeters {
    listener: &'static str,
    known: RefCell<HashMap<Key, Meter>>,
}

/// Route, method, status, and whether it is refused: see [`RequestMeters::count`].
type Key = (&'static str, &'static str, u16, bool);

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

    /// Counts a request and its duration, from its head to its whole response, less its [own wait](usecases::own_wait). `route` is a template or `-`,
    /// so the number of meters is bounded. `is_refused`: a 5xx that wakes nobody,
    /// since too many requests of a seller are its cause.
    pub fn count(
        &self,
        route: &'static str,
        method: &Method,
        status: StatusCode,
        is_refused: bool,
        took: Duration,
    ) {
        let method = label(method);
        let mut known = self.known.borrow_mut();
        let meter = known
            .entry((route, method, status.as_u16(), is_refused))
            .or_insert_with(|| self.meter(route, method, status, is_refused));
        meter.requests.increment(1);
        meter.seconds.record(took.as_secs_f64());
    }

    fn meter(
        &self,
        route: &'static str,
        method: &'static str,
        status: StatusCode,
        is_refused: bool,
    ) -> Meter {
        let mut labels = vec![
            ("listener", self.listener.to_owned()),
            ("route", route.to_owned()),
            ("method", method.to_owned()),
            ("status", status.as_u16().to_string()),
        ];
        let seconds = metrics::histogram!("http_request_duration_seconds", &labels);
        if is_refused {
            labels.push(("refused", "row".to_owned()));
        }
        Meter {
            requests: metrics::counter!("http_requests_total", &labels),
            seconds,
        }
    }
}

/// Counts an answer to an application, if it is a refusal for its credentials, scopes or limits. Refusals are few, so
/// their counter is looked up each time.
pub(crate) fn count_refusal(client_id: ClientId, status: StatusCode) {
    if !matches!(status.as_u16(), 401 | 403 | 429) {
        return;
    }
    let labels = [
        ("client_id", NAMED.lock().label(client_id, Instant::now())),
        ("status", status.as_u16().to_string()),
    ];
    metrics::counter!("application_refusals_total", &labels).increment(1);
}

/// Counts a decision of a rate limit.
pub fn count_decision(limit: &'static str, decision: &'static str) {
    metrics::counter!("rate_limit_decisions_total", "limit" => limit, "decision" => decision).increment(1);
}

/// Whether a quota admits the request; also counts the decision.
pub fn admits(limit: &'static str, quota: &Quota) -> bool {
    let admits = quota.admits();
    count_decision(limit, if admits { "admitted" } else { "refused" });
    admits
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

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn who_is_refused_often_is_named_however_many_were_refused_once() {
        let (mut named, now) = (Named::default(), Instant::now());
        let window = |n: u32| now + WINDOW * n;
        let client = |n: u128| ClientId::from(Uuid::from_u128(n));
        for n in 1..1_000 {
            assert_eq!(named.label(client(n), now), "other");
        }
        let mut last = |n, at, times: u32| {
            (0..times)
                .map(|_| named.label(client(n), at))
                .last()
                .unwrap_or_default()
        };
        assert_eq!(last(0, window(1), 19), "other");
        assert_eq!(last(0, window(1), 1), client(0).to_string());
        // Fewer in each are not often.
        assert_eq!(last(1, window(2), 19), "other");
        assert_eq!(last(1, window(3), 19), "other");
        for n in 0..200 {
            last(2_000 + n, window(4), 20);
        }
        assert_eq!(last(3_000, window(5), 19), "other");
        assert_eq!(last(3_000, window(5), 1), "unnamed");
        assert_eq!(last(0, window(9), 1), client(0).to_string());
    }
}
