//! A recording HTTP proxy between two programs. It can disturb requests as a test decides.

use std::sync::{Arc, Mutex};

use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderValue};
use serde_json::Value;
use testkit::{Answer, Client, HttpServer, Received, response};
use tokio::sync::Notify;

use crate::{eventually, serving::lock};

/// What the proxy does with a request.
#[derive(Debug, Clone)]
pub enum Disturbance {
    /// Does not forward it; answers with this status, `Retry-After` and body.
    Instead(u16, u32, Value),
    /// Forwards it, then closes the connection before the answer.
    Lost,
    /// Forwards it, but never sends the answer.
    Silence,
    /// Forwards it when the test notifies.
    Delayed(Arc<Notify>),
    /// Forwards it, and replaces the first text by the second one in the answer's body.
    Edited(&'static str, &'static str),
    /// Forwards it, and answers 200 with a page in HTML.
    Page,
}

/// A request and its answer.
#[derive(Debug, Clone)]
pub struct Exchange {
    pub method: String,
    /// The path with the query.
    pub target: String,
    /// The whole request.
    pub request: Received,
    /// The answer, also if the proxy withheld it. `None` if there is none yet, or the target was unreachable.
    pub answer: Option<Answer>,
}

impl Exchange {
    /// Whether it has this method and a path that contains `part`.
    pub fn is(&self, method: &str, part: &str) -> bool {
        self.method == method && self.target.contains(part)
    }

    /// The answer; panics if there is none.
    #[track_caller]
    pub fn answered(&self) -> &Answer {
        self.answer
            .as_ref()
            .unwrap_or_else(|| panic!("no answer to {self:?}"))
    }
}

/// A running proxy. It stops with the runtime of its test.
#[derive(Debug, Clone)]
pub struct RecordingProxy {
    /// The URL on which it listens.
    pub url: String,
    target: String,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    exchanges: Vec<Exchange>,
    /// Each applies to the first request that matches.
    disturbances: Vec<(String, String, Disturbance)>,
}

impl RecordingProxy {
    /// Starts a proxy in front of `target`, a URL without a path.
    pub async fn start(target: &str) -> Self {
        let mut proxy = Self {
            url: String::new(),
            target: target.to_owned(),
            state: Arc::default(),
        };
        let serving = proxy.clone();
        let server = HttpServer::start(move |request| serving.clone().answer(request)).await;
        proxy.url = server.url();
        proxy
    }

    /// Disturbs the next request with this method and a path that contains `part`.
    pub fn disturb(&self, method: &str, part: &str, disturbance: Disturbance) {
        let entry = (method.to_owned(), part.to_owned(), disturbance);
        lock(&self.state).disturbances.push(entry);
    }

    /// The requests so far with this method and a path that contains `part`, in order.
    pub fn exchanges(&self, method: &str, part: &str) -> Vec<Exchange> {
        let all = lock(&self.state).exchanges.clone();
        all.into_iter()
            .filter(|exchange| exchange.is(method, part))
            .collect()
    }

    /// Like [`Self::exchanges`], once the `count`th of them has its answer.
    pub async fn has(&self, count: usize, method: &str, part: &str) -> Vec<Exchange> {
        eventually(&format!("{method} …{part}… {count} times"), async || {
            let exchanges = self.exchanges(method, part);
            let is_there = exchanges
                .get(count - 1)
                .is_some_and(|exchange| exchange.answer.is_some());
            is_there.then_some(exchanges)
        })
        .await
    }

    /// Sends a request again, byte for byte except `changes` to the body.
    pub async fn repeat(&self, exchange: &Exchange, changes: impl FnOnce(&mut Vec<u8>)) -> Answer {
        let mut request = exchange.request.clone();
        changes(&mut request.body);
        let answer = self.forward(&exchange.method, &exchange.target, &request).await;
        answer.expect("the target answers")
    }

    async fn answer(self, request: Received) -> Option<Vec<u8>> {
        let mut line = request.request_line.split(' ');
        let (method, target) = (line.next()?.to_owned(), line.next()?.to_owned());
        let exchange = Exchange {
            method,
            target,
            request,
            answer: None,
        };
        let (number, disturbance) = {
            let mut state = lock(&self.state);
            let mut disturbances = state.disturbances.iter();
            let fits = disturbances.position(|(method, part, _)| exchange.is(method, part));
            let disturbance = fits.map(|fits| state.disturbances.remove(fits).2);
            state.exchanges.push(exchange.clone());
            (state.exchanges.len() - 1, disturbance)
        };
        if let Some(Disturbance::Delayed(gate)) = &disturbance {
            gate.notified().await;
        }
        let mut answer = if let Some(Disturbance::Instead(status, retry_after, body)) = &disturbance {
            substitute(*status, *retry_after, body)
        } else {
            self.forward(&exchange.method, &exchange.target, &exchange.request)
                .await?
        };
        if let Some(Disturbance::Edited(from, to)) = &disturbance {
            let body = String::from_utf8_lossy(&answer.bytes).replace(from, to);
            answer.bytes = body.into_bytes();
        }
        lock(&self.state).exchanges[number].answer = Some(answer.clone());
        match disturbance {
            Some(Disturbance::Lost) => None,
            // Until the client gives up.
            Some(Disturbance::Silence) => std::future::pending().await,
            Some(Disturbance::Page) => {
                let headers = [("content-type", "text/html"), ("connection", "close")];
                Some(response(200, headers, b"<html>"))
            }
            _ => Some(bytes_of(&answer)),
        }
    }

    async fn forward(&self, method: &str, target: &str, request: &Received) -> Option<Answer> {
        let method = Method::from_bytes(method.as_bytes()).ok()?;
        let mut onward = Client::new()
            .request(method, &format!("{}{target}", self.target))
            .without("user-agent");
        let of_this_connection = ["host", "connection", "content-length"];
        for (name, value) in &request.headers {
            if !of_this_connection.contains(&name.as_str()) {
                onward = onward.header(name, value);
            }
        }
        if !request.body.is_empty() {
            onward = onward.body(request.body.clone());
        }
        onward.try_send().await.ok()
    }
}

fn substitute(status: u16, retry_after: u32, body: &Value) -> Answer {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    headers.insert("retry-after", retry_after.into());
    Answer {
        status,
        headers,
        bytes: body.to_string().into_bytes(),
    }
}

fn bytes_of(answer: &Answer) -> Vec<u8> {
    let of_this_connection = ["connection", "content-length", "transfer-encoding"];
    let headers = answer.headers.iter().map(|(name, value)| {
        let value = value.to_str().expect("a header in ASCII");
        (name.as_str(), value)
    });
    let headers = headers.filter(|(name, _)| !of_this_connection.contains(name));
    let headers = headers.chain([("connection", "close")]);
    response(answer.status, headers, &answer.bytes)
}
