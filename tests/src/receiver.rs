//! A webhook receiver on a loopback address. It records deliveries byte for byte and answers as a test tells it to.

use std::{
    collections::VecDeque,
    process::Stdio,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    process::Command,
};

use crate::{
    Received, documented, eventually, hex,
    stub_server::{lock, read, response},
};

/// The answer to a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// This status without a body.
    Status(u16),
    /// This status, after a delay.
    Late(u16, Duration),
    /// A redirect to the receiver itself, which would accept the delivery.
    Redirect,
    /// No answer; the connection stays open.
    Silence,
    /// Closes the connection.
    HangUp,
}

impl Received {
    /// The event type in the body.
    pub fn event(&self) -> String {
        self.json()["event"].as_str().expect("an event").to_owned()
    }

    pub fn delivery(&self) -> &str {
        self.header("x-delivery-id")
    }

    /// Asserts that the signature is the one that OpenSSL computes for the received bytes and the secret.
    pub async fn is_signed_by(&self, secret: &str) {
        assert_eq!(self.header("x-signature"), signature(secret, &self.body).await);
    }
}

/// The contract's signature, by `openssl dgst`.
pub async fn signature(secret: &str, body: &[u8]) -> String {
    let mut openssl = Command::new("openssl")
        .args(["dgst", "-sha256", "-hmac", secret, "-binary"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("openssl is installed");
    let mut stdin = openssl.stdin.take().expect("stdin is piped");
    stdin.write_all(body).await.expect("openssl reads");
    drop(stdin);
    let output = openssl.wait_with_output().await.expect("openssl ends");
    assert_eq!(output.stdout.len(), 32, "{output:?}");
    format!("sha256={}", hex(&output.stdout))
}

/// A running receiver. It stops with the runtime of its test.
#[derive(Debug, Clone)]
pub struct Receiver {
    /// The URL on which it listens.
    pub url: String,
    state: Arc<Mutex<State>>,
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
    /// Accepted connections, with or without a request.
    connections: usize,
}

impl Receiver {
    /// Starts a receiver that answers 204 to everything.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let receiver = Self {
            url: format!("http://{address}/hooks"),
            state: Arc::new(Mutex::new(State {
                received: Vec::new(),
                judged: 0,
                first: VecDeque::new(),
                then: Reply::Status(204),
                open: (0, 0),
                connections: 0,
            })),
        };
        let serving = receiver.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let serving = serving.clone();
                serving.state().connections += 1;
                tokio::spawn(async move { serving.serve(stream).await });
            }
        });
        receiver
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
        self.state().connections
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

    async fn serve(&self, mut stream: TcpStream) -> Option<()> {
        let mut unread = Vec::new();
        loop {
            let received = read(&mut stream, &mut unread).await?;
            let reply = {
                let mut state = self.state();
                state.received.push(received);
                state.open.0 += 1;
                state.open.1 = state.open.1.max(state.open.0);
                state.first.pop_front().unwrap_or(state.then)
            };
            let answered = self.answer(&mut stream, reply).await;
            self.state().open.0 -= 1;
            answered?;
        }
    }

    async fn answer(&self, stream: &mut TcpStream, reply: Reply) -> Option<()> {
        let (status, location) = match reply {
            Reply::Status(status) => (status, None),
            Reply::Late(status, after) => {
                tokio::time::sleep(after).await;
                (status, None)
            }
            Reply::Redirect => (307, Some(("location", self.url.as_str()))),
            Reply::Silence => {
                // Until the sender gives up.
                drop(stream.read(&mut [0; 1]).await);
                return None;
            }
            Reply::HangUp => return None,
        };
        let answer = response(status, location, b"");
        stream.write_all(&answer).await.ok()
    }
}
