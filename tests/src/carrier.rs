//! A carrier on a loopback address: the look-up of InPost's tracking service, with answers that a test sets.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use testkit::{HttpServer, Received, ServerOptions, response};
use tokio::time::sleep;

use crate::serving::lock;

/// The answer about a parcel. Other parcels are unknown.
#[derive(Debug, Clone)]
pub enum StubAnswer {
    /// Delivered at this instant (RFC 3339).
    Delivered(&'static str),
    /// In this InPost state.
    State(&'static str),
    /// No answer, ever.
    Silence,
    /// Status 500.
    Failure,
}

/// A running carrier. It stops with the runtime of its test.
#[derive(Debug, Clone)]
pub struct CarrierStub {
    /// The base URL.
    pub url: String,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    known: HashMap<String, StubAnswer>,
    delay: Duration,
    /// Request lines.
    asked: Vec<String>,
}

impl CarrierStub {
    pub async fn start() -> Self {
        let state = Arc::<Mutex<State>>::default();
        let serving = Arc::clone(&state);
        let server = HttpServer::start(move |request| answer(Arc::clone(&serving), request)).await;
        let url = server.url();
        Self { url, state }
    }

    /// Sets the answer about a parcel.
    pub fn answers(&self, number: &str, answer: StubAnswer) {
        lock(&self.state).known.insert(number.to_owned(), answer);
    }

    /// From now on each answer takes this long.
    pub fn takes(&self, time: Duration) {
        lock(&self.state).delay = time;
    }

    /// The number of look-ups so far.
    pub fn look_ups(&self) -> usize {
        lock(&self.state).asked.len()
    }

    /// The number of look-ups of a parcel so far.
    pub fn look_ups_of(&self, number: &str) -> usize {
        let asked = &lock(&self.state).asked;
        asked.iter().filter(|request| request.contains(number)).count()
    }
}

/// Settings under which the program queries InPost at this address.
pub fn inpost_at(options: ServerOptions, url: &str) -> ServerOptions {
    let options = options.set("SELLER_API__CARRIERS__INPOST__ENABLED", true);
    options.set("SELLER_API__CARRIERS__INPOST__BASE_URL", url)
}

async fn answer(state: Arc<Mutex<State>>, request: Received) -> Option<Vec<u8>> {
    let number = request.target().rsplit('/').next()?.split('?').next()?.to_owned();
    let (set, delay) = {
        let mut state = lock(&state);
        state.asked.push(request.request_line);
        (state.known.get(&number).cloned(), state.delay)
    };
    sleep(delay).await;
    let (status, body) = match set {
        // In the words of InPost and of DHL.
        None => (
            404,
            json!({"status": 404, "error": "resource_not_found", "title": "No result found"}),
        ),
        Some(StubAnswer::Failure) => (500, json!({"error": "internal"})),
        Some(StubAnswer::State(state)) => (200, json!({"tracking_number": number, "status": state})),
        Some(StubAnswer::Delivered(at)) => {
            let detail = json!({"status": "delivered", "origin_status": "DOR", "datetime": at});
            let body =
                json!({"tracking_number": number, "status": "delivered", "tracking_details": [detail]});
            (200, body)
        }
        Some(StubAnswer::Silence) => std::future::pending().await,
    };
    let headers = [("content-type", "application/json"), ("connection", "close")];
    Some(response(status, headers, body.to_string().as_bytes()))
}
