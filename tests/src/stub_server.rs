//! HTTP servers of tests on loopback ports: they read requests byte for byte and answer as a test decides.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

/// A request as it was received.
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
}

/// Locks the state that a server shares with its test, even after a failed assertion.
pub(crate) fn lock<S>(state: &Mutex<S>) -> MutexGuard<'_, S> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
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

/// The bytes of an answer with these headers.
pub(crate) fn response<'a>(
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

/// Reads the next request of a connection; `None` if the connection ends.
pub(crate) async fn read(stream: &mut TcpStream, unread: &mut Vec<u8>) -> Option<Received> {
    let (request_line, headers) = loop {
        match take_head(unread) {
            Some(head) => break head,
            None => more(stream, unread).await?,
        }
    };
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

/// Takes a message's first line and its headers from the bytes so far. `None` if the head is not complete.
pub(crate) fn take_head(unread: &mut Vec<u8>) -> Option<(String, Vec<(String, String)>)> {
    let end = unread.windows(4).position(|four| four == b"\r\n\r\n")?;
    let rest = unread.split_off(end + 4);
    let head = String::from_utf8(std::mem::replace(unread, rest)).expect("a head in ASCII");
    let mut lines = head.trim_end().split("\r\n");
    let first = lines.next()?.to_owned();
    let headers = lines.map(|line| line.split_once(':').expect("a header"));
    let headers = headers.map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()));
    Some((first, headers.collect()))
}

async fn more(stream: &mut TcpStream, unread: &mut Vec<u8>) -> Option<()> {
    (stream.read_buf(unread).await.ok()? > 0).then_some(())
}
