//! A webhook receiver on a loopback address. It records deliveries byte for byte and answers as a test
//! decides.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use testkit::{HttpServer, Received, read_request, response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::{documented, eventually, serving::lock};

/// The answer to a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// This status without a body.
    Status(u16),
    /// This status, after a delay.
    Late(u16, Duration),
    /// This status, once [`Receiver::lets_go`] is called.
    Held(u16),
    /// No answer; the connection stays open.
    Silence,
    /// Closes the connection.
    HangUp,
}

/// A running receiver. It stops with the runtime of its test.
#[derive(Debug, Clone)]
pub struct Receiver {
    /// The URL on which it listens.
    pub url: String,
    server: Arc<HttpServer>,
    state: Arc<Mutex<State>>,
    gate: Arc<Notify>,
}

#[derive(Debug)]
struct State {
    received: Vec<Received>,
    /// Number of deliveries that were checked against the document.
    judged: usize,
    first: VecDeque<Reply>,
    then: Reply,
    /// Attempts that wait for their answer: now, and at most so far.
    open: (usize, usize),
}

impl Receiver {
    /// Starts a receiver that answers 204 to everything.
    pub async fn start() -> Self {
        let state = Arc::new(Mutex::new(State {
            received: Vec::new(),
            judged: 0,
            first: VecDeque::new(),
            then: Reply::Status(204),
            open: (0, 0),
        }));
        let gate = Arc::new(Notify::new());
        let serving = (Arc::clone(&state), Arc::clone(&gate));
        let server = HttpServer::start_raw(move |stream| {
            let (state, gate) = serving.clone();
            async move {
                serve(&state, &gate, stream).await;
            }
        })
        .await;
        Self {
            url: format!("{}/hooks", server.url()),
            server: Arc::new(server),
            state,
            gate,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Sets the answer from now on.
    pub fn answers(&self, reply: Reply) {
        self.state().then = reply;
    }

    /// Sets the next answers. After them, the earlier answer applies again.
    pub fn answers_first(&self, replies: &[Reply]) {
        self.state().first.extend(replies);
    }

    /// Sends the answer that is held, or the next one.
    pub fn lets_go(&self) {
        self.gate.notify_one();
    }

    /// The deliveries so far. Fails the test if one does not match the document.
    pub fn received(&self) -> Vec<Received> {
        let (received, judged) = {
            let mut state = self.state();
            let received = state.received.clone();
            let judged = std::mem::replace(&mut state.judged, received.len());
            (received, judged)
        };
        received.iter().skip(judged).for_each(documented::received);
        received
    }

    /// The number of deliveries so far.
    pub fn count(&self) -> usize {
        self.received().len()
    }

    /// The number of accepted connections, with or without a request.
    pub fn connections(&self) -> usize {
        self.server.connections()
    }

    /// The highest number of attempts that waited for their answers at the same time.
    pub fn most_at_once(&self) -> usize {
        self.state().open.1
    }

    /// Waits for at least this number of deliveries and returns all.
    pub async fn has(&self, deliveries: usize) -> Vec<Received> {
        let enough = async || Some(self.received()).filter(|received| received.len() >= deliveries);
        eventually(&format!("{deliveries} deliveries"), enough).await
    }

    /// Waits for the first delivery of an event.
    pub async fn hears(&self, event: &str) -> Received {
        let is_it = |received: &Received| received.event() == event;
        eventually(event, async || self.received().into_iter().find(is_it)).await
    }
}

async fn serve(state: &Mutex<State>, gate: &Notify, mut stream: TcpStream) -> Option<()> {
    let mut unread = Vec::new();
    loop {
        let received = read_request(&mut stream, &mut unread).await?;
        let reply = {
            let mut state = lock(state);
            state.received.push(received);
            state.open.0 += 1;
            state.open.1 = state.open.1.max(state.open.0);
            state.first.pop_front().unwrap_or(state.then)
        };
        let answered = answer(&mut stream, reply, gate).await;
        lock(state).open.0 -= 1;
        answered?;
    }
}

async fn answer(stream: &mut TcpStream, reply: Reply, gate: &Notify) -> Option<()> {
    let status = match reply {
        Reply::Status(status) => status,
        Reply::Late(status, after) => {
            tokio::time::sleep(after).await;
            status
        }
        Reply::Held(status) => {
            gate.notified().await;
            status
        }
        Reply::Silence => {
            // Until the sender gives up.
            drop(stream.read(&mut [0; 1]).await);
            return None;
        }
        Reply::HangUp => return None,
    };
    stream.write_all(&response(status, [], b"")).await.ok()
}
