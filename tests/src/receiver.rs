//! A webhook receiver on a loopback address. It records deliveries byte for byte and answers as a test tells it to.

use std::{
    collections::VecDeque,
    process::Stdio,
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    process::Command,
};

use crate::{documented, eventually};

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

/// A delivery as it was received.
#[derive(Debug, Clone)]
pub struct Received {
    /// When its last byte arrived.
    pub at: Instant,
    /// Method, target and version.
    pub request_line: String,
    /// Names in lower case, with values.
    pub headers: Vec<(String, String)>,
    /// The signed bytes.
    pub body: Vec<u8>,
}

impl Received {
    /// The value of a header; panics unless there is exactly one line.
    #[track_caller]
    pub fn header(&self, name: &str) -> &str {
        let mut lines = self.headers.iter().filter(|(other, _)| other == name);
        let line = lines
            .next()
            .unwrap_or_else(|| panic!("no `{name}`: {:?}", self.headers));
        assert!(lines.next().is_none(), "`{name}` is there more than once");
        &line.1
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("the body is JSON")
    }

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
    let hex = output.stdout.iter().map(|byte| format!("{byte:02x}"));
    format!("sha256={}", hex.collect::<String>())
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
        self.state.lock().expect("the state is whole")
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
        let (new, count) = {
            let mut state = self.state();
            let count = state.received.len();
            let judged = std::mem::replace(&mut state.judged, count);
            (state.received[judged..].to_vec(), count)
        };
        new.iter().for_each(documented::received);
        count
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
        eventually(&format!("{deliveries} deliveries"), async || {
            (self.count() >= deliveries).then(|| self.received())
        })
        .await
    }

    /// Waits for the first delivery of an event.
    pub async fn hears(&self, event: &str) -> Received {
        eventually(event, async || {
            self.received()
                .into_iter()
                .find(|received| received.event() == event)
        })
        .await
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
        let (status, more) = match reply {
            Reply::Status(status) => (status, String::new()),
            Reply::Late(status, after) => {
                tokio::time::sleep(after).await;
                (status, String::new())
            }
            Reply::Redirect => (307, format!("location: {}\r\n", self.url)),
            Reply::Silence => {
                // Until the sender gives up.
                drop(stream.read(&mut [0; 1]).await);
                return None;
            }
            Reply::HangUp => return None,
        };
        let answer = format!("HTTP/1.1 {status} Told\r\n{more}content-length: 0\r\n\r\n");
        let answer = if status == 204 {
            "HTTP/1.1 204 Told\r\n\r\n".to_owned()
        } else {
            answer
        };
        stream.write_all(answer.as_bytes()).await.ok()
    }
}

/// Serves HTTP on a loopback port, one request per connection. `None` closes it without an answer. Returns the URL.
pub(crate) async fn serve<F>(answer: impl Fn(Received) -> F + Clone + Send + Sync + 'static) -> String
where
    F: Future<Output = Option<Vec<u8>>> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let answer = answer.clone();
            tokio::spawn(async move {
                let request = read(&mut stream, &mut Vec::new()).await?;
                let bytes = answer(request).await?;
                stream.write_all(&bytes).await.ok()
            });
        }
    });
    url
}

/// Reads the next request of a connection; `None` if the connection ends.
pub(crate) async fn read(stream: &mut TcpStream, unread: &mut Vec<u8>) -> Option<Received> {
    let end = loop {
        if let Some(end) = unread.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        more(stream, unread).await?;
    };
    let rest = unread.split_off(end);
    let head = String::from_utf8(std::mem::replace(unread, rest)).expect("a head in ASCII");
    let mut lines = head.trim_end().split("\r\n");
    let request_line = lines.next()?.to_owned();
    let headers = lines
        .map(|line| line.split_once(": ").expect("a header"))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect::<Vec<_>>();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.map_or(0, |(_, length)| length.parse().expect("a length"));
    while unread.len() < length {
        more(stream, unread).await?;
    }
    let rest = unread.split_off(length);
    Some(Received {
        at: Instant::now(),
        request_line,
        headers,
        body: std::mem::replace(unread, rest),
    })
}

async fn more(stream: &mut TcpStream, unread: &mut Vec<u8>) -> Option<()> {
    (stream.read_buf(unread).await.ok()? > 0).then_some(())
}
