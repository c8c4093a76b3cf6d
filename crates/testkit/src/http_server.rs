//! HTTP servers on loopback addresses: the requests that they receive, and answers that a test writes byte by
//! byte.

use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Instant;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, ToSocketAddrs};
use tokio::process::Command;
use tokio::task::JoinHandle;

/// A request as a server received it.
#[derive(Debug, Clone)]
pub struct Received {
    /// When its last byte arrived.
    pub at: Instant,
    /// Method, target and version.
    pub request_line: String,
    /// Names in lower case, with values.
    pub headers: Vec<(String, String)>,
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

    /// Path and query.
    pub fn target(&self) -> &str {
        self.request_line.split(' ').nth(1).expect("a target")
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("the body is JSON")
    }

    /// The event type in a delivery's body.
    pub fn event(&self) -> String {
        let event = self
            .json()
            .get("event")
            .and_then(Value::as_str)
            .map(str::to_owned);
        event.expect("an event")
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

/// A listener that counts its connections. It stops with the runtime of its test.
#[derive(Debug)]
pub struct HttpServer {
    pub address: SocketAddr,
    connections: Arc<AtomicUsize>,
    listening: JoinHandle<()>,
}

impl HttpServer {
    /// Answers one request per connection; `None` closes the connection without an answer.
    pub async fn start<F>(answer: impl Fn(Received) -> F + Clone + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Option<Vec<u8>>> + Send + 'static,
    {
        Self::start_raw(move |mut stream| {
            let answer = answer.clone();
            async move {
                if let Some(request) = read_request(&mut stream, &mut Vec::new()).await
                    && let Some(bytes) = answer(request).await
                {
                    // In some tests the client disconnects first.
                    drop(stream.write_all(&bytes).await);
                }
            }
        })
        .await
    }

    /// `handle` gets each connection.
    pub async fn start_raw<F>(handle: impl Fn(TcpStream) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::start_at("127.0.0.1:0", handle).await
    }

    pub async fn start_at<F>(
        address: impl ToSocketAddrs,
        handle: impl Fn(TcpStream) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind(address).await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        let listening = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, SeqCst);
                tokio::spawn(handle(stream));
            }
        });
        Self {
            address,
            connections,
            listening,
        }
    }

    /// The URL without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The number of accepted connections, with or without a request.
    pub fn connections(&self) -> usize {
        self.connections.load(SeqCst)
    }

    pub async fn stop(self) {
        self.listening.abort();
        // The task was aborted, so it returns an error.
        drop(self.listening.await);
    }
}

/// Sends the same answer to every request of a connection.
pub async fn answer_all(mut stream: impl AsyncRead + AsyncWrite + Unpin, answer: &[u8]) {
    let mut unread = Vec::new();
    while read_request(&mut stream, &mut unread).await.is_some() {
        if stream.write_all(answer).await.is_err() {
            return;
        }
    }
}

/// Reads the next request of a connection; `None` if the connection ends.
pub async fn read_request(stream: &mut (impl AsyncRead + Unpin), unread: &mut Vec<u8>) -> Option<Received> {
    let (request_line, headers) = loop {
        match take_head(unread) {
            Some(head) => break head,
            None => read_more(stream, unread).await?,
        }
    };
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.map_or(0, |(_, length)| length.parse().expect("a length"));
    while unread.len() < length {
        read_more(stream, unread).await?;
    }
    let rest = unread.split_off(length);
    Some(Received {
        at: Instant::now(),
        request_line,
        headers,
        body: std::mem::replace(unread, rest),
    })
}

/// Takes a message's first line and its headers from the bytes so far. `None` if the head is not complete.
pub fn take_head(unread: &mut Vec<u8>) -> Option<(String, Vec<(String, String)>)> {
    let end = unread.windows(4).position(|four| four == b"\r\n\r\n")?;
    let rest = unread.split_off(end + 4);
    let head = String::from_utf8(std::mem::replace(unread, rest)).expect("a head in ASCII");
    let mut lines = head.trim_end().split("\r\n");
    let first = lines.next()?.to_owned();
    let headers = lines.map(|line| line.split_once(':').expect("a header"));
    let headers = headers.map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()));
    Some((first, headers.collect()))
}

async fn read_more(stream: &mut (impl AsyncRead + Unpin), unread: &mut Vec<u8>) -> Option<()> {
    (stream.read_buf(unread).await.ok()? > 0).then_some(())
}

/// The bytes of an answer with these headers.
pub fn response<'a>(
    status: u16,
    headers: impl IntoIterator<Item = (&'a str, &'a str)>,
    body: &[u8],
) -> Vec<u8> {
    let headers = headers
        .into_iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"));
    let length = (status != 204).then(|| format!("content-length: {}\r\n", body.len()));
    let lines: String = headers.chain(length).collect();
    let head = format!("HTTP/1.1 {status} Stub\r\n{lines}\r\n");
    [head.as_bytes(), body].concat()
}
