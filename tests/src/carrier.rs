//! A carrier on a loopback address: the look-up of InPost's tracking service, with answers that a test sets.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
};

use serde_json::json;

use crate::{Received, receiver::serve};

/// The answer about a parcel. Other parcels are unknown.
#[derive(Debug, Clone)]
pub enum Says {
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
    known: HashMap<String, Says>,
    asked: Vec<Received>,
}

impl CarrierStub {
    pub async fn start() -> Self {
        let state = Arc::<Mutex<State>>::default();
        let serving = Arc::clone(&state);
        let url = serve(move |request| answer(Arc::clone(&serving), request)).await;
        Self { url, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Sets the answer about a parcel.
    pub fn says(&self, number: &str, answer: Says) {
        self.state().known.insert(number.to_owned(), answer);
    }

    /// The number of look-ups of a parcel so far.
    pub fn asked(&self, number: &str) -> usize {
        let state = self.state();
        let asked = state.asked.iter();
        asked
            .filter(|request| request.request_line.contains(number))
            .count()
    }

    /// A header of the first look-up of a parcel; `name` is in lower case.
    pub fn header(&self, number: &str, name: &str) -> Option<String> {
        let state = self.state();
        let mut asked = state.asked.iter();
        let request = asked.find(|request| request.request_line.contains(number))?;
        let mut lines = request.headers.iter();
        lines
            .find(|(other, _)| other == name)
            .map(|(_, value)| value.clone())
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().expect("the state is whole")
}

async fn answer(state: Arc<Mutex<State>>, request: Received) -> Option<Vec<u8>> {
    let path = request.request_line.split(' ').nth(1)?;
    let number = path.rsplit('/').next()?.split('?').next()?.to_owned();
    let said = {
        let mut state = lock(&state);
        state.asked.push(request);
        state.known.get(&number).cloned()
    };
    let (status, body) = match said {
        None => (
            "404 Not Found",
            json!({"status": 404, "error": "resource_not_found"}),
        ),
        Some(Says::Failure) => ("500 Internal Server Error", json!({"error": "internal"})),
        Some(Says::State(state)) => ("200 OK", json!({"tracking_number": number, "status": state})),
        Some(Says::Delivered(at)) => {
            let detail = json!({"status": "delivered", "origin_status": "DOR", "datetime": at});
            let body =
                json!({"tracking_number": number, "status": "delivered", "tracking_details": [detail]});
            ("200 OK", body)
        }
        Some(Says::Silence) => std::future::pending().await,
    };
    let body = body.to_string();
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n");
    Some(format!("{head}content-length: {}\r\n\r\n{body}", body.len()).into_bytes())
}
