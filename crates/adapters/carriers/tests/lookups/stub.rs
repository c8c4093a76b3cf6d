//! A small HTTP server whose answers a test sets, invalid ones included.

use std::{
    collections::{HashMap, VecDeque},
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinHandle,
};

/// A request that the stub received.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) method: String,
    /// Path and query.
    pub(crate) target: String,
    /// Names in lower case.
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: String,
}

#[derive(Debug, Clone)]
pub(crate) enum Reply {
    Http {
        status: u16,
        headers: Vec<(&'static str, String)>,
        body: String,
    },
    /// Announces more bytes than it sends.
    Truncated(String),
    /// Reads the request and never answers.
    Silence,
}

impl Reply {
    pub(crate) fn new(status: u16, body: impl Into<String>) -> Self {
        Self::Http {
            status,
            headers: Vec::new(),
            body: body.into(),
        }
    }

    pub(crate) fn with(self, name: &'static str, value: impl Into<String>) -> Self {
        match self {
            Self::Http {
                status,
                mut headers,
                body,
            } => {
                headers.push((name, value.into()));
                Self::Http {
                    status,
                    headers,
                    body,
                }
            }
            other => other,
        }
    }
}

/// The path of token requests; all other paths are tracking.
pub(crate) const TOKEN_PATH: &str = "/token";

#[derive(Default)]
struct Script {
    replies: VecDeque<Reply>,
    seen: Vec<Seen>,
    busy: usize,
    most_busy: usize,
}

/// A listener on a separate port. Dropping it stops it.
pub(crate) struct Stub {
    pub(crate) address: SocketAddr,
    tracking: Arc<Mutex<Script>>,
    tokens: Arc<Mutex<Script>>,
    /// Each tracking answer needs a permit.
    gate: Arc<Semaphore>,
    listening: JoinHandle<()>,
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Stub {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let tracking = Arc::<Mutex<Script>>::default();
        let tokens = Arc::<Mutex<Script>>::default();
        let gate = Arc::new(Semaphore::new(Semaphore::MAX_PERMITS));
        let parts = (Arc::clone(&tracking), Arc::clone(&tokens), Arc::clone(&gate));
        let listening = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (tracking, tokens, gate) = parts.clone();
                tokio::spawn(async move { serve(stream, &tracking, &tokens, &gate).await });
            }
        });
        Self {
            address,
            tracking,
            tokens,
            gate,
            listening,
        }
    }

    /// Sets the tracking answers, in order. The last one is repeated.
    pub(crate) fn says(&self, replies: impl IntoIterator<Item = Reply>) {
        self.tracking.lock().unwrap().replies = replies.into_iter().collect();
    }

    /// Sets the answers to token requests, in order. The last one is repeated.
    pub(crate) fn gives(&self, replies: impl IntoIterator<Item = Reply>) {
        self.tokens.lock().unwrap().replies = replies.into_iter().collect();
    }

    /// The tracking requests so far.
    pub(crate) fn asked(&self) -> Vec<Seen> {
        self.tracking.lock().unwrap().seen.clone()
    }

    /// The token requests so far.
    pub(crate) fn token_requests(&self) -> Vec<Seen> {
        self.tokens.lock().unwrap().seen.clone()
    }

    /// Clears the recorded requests.
    pub(crate) fn forget(&self) {
        self.tracking.lock().unwrap().seen.clear();
        self.tokens.lock().unwrap().seen.clear();
    }

    /// Delays all tracking answers until [`Stub::open`].
    pub(crate) fn hold(&self) {
        self.gate.forget_permits(Semaphore::MAX_PERMITS);
    }

    pub(crate) fn open(&self) {
        self.gate.add_permits(Semaphore::MAX_PERMITS);
    }

    /// The highest number of concurrent tracking requests.
    pub(crate) fn most_at_a_time(&self) -> usize {
        self.tracking.lock().unwrap().most_busy
    }
}

async fn serve(stream: TcpStream, tracking: &Mutex<Script>, tokens: &Mutex<Script>, gate: &Semaphore) {
    let mut stream = BufReader::new(stream);
    let Some(seen) = request(&mut stream).await else {
        return;
    };
    let is_token = seen.target == TOKEN_PATH;
    let script = if is_token { tokens } else { tracking };
    let reply = {
        let mut script = script.lock().unwrap();
        script.seen.push(seen);
        script.busy += 1;
        script.most_busy = script.most_busy.max(script.busy);
        if script.replies.len() > 1 {
            script.replies.pop_front()
        } else {
            script.replies.front().cloned()
        }
    };
    if !is_token {
        gate.acquire().await.unwrap().forget();
    }
    script.lock().unwrap().busy -= 1;
    let bytes = match reply.unwrap_or_else(|| Reply::new(500, "nothing to say")) {
        Reply::Http {
            status,
            headers,
            body,
        } => {
            let headers = headers
                .iter()
                .map(|(name, value)| [name, ": ", value, "\r\n"].concat());
            let headers = headers.collect::<Vec<_>>().concat();
            let length = body.len();
            format!(
                "HTTP/1.1 {status} X\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
            )
        }
        Reply::Truncated(body) => {
            let length = body.len() + 100;
            format!("HTTP/1.1 200 X\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
        }
        Reply::Silence => std::future::pending().await,
    };
    // In some tests the client disconnects.
    let _ = stream.write_all(bytes.as_bytes()).await;
    let _ = stream.shutdown().await;
}

async fn request(stream: &mut BufReader<TcpStream>) -> Option<Seen> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    let mut lines = head.lines();
    let mut start = lines.next().unwrap().split(' ');
    let (method, target) = (start.next().unwrap().to_owned(), start.next().unwrap().to_owned());
    let headers: HashMap<String, String> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length = headers
        .get("content-length")
        .map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(Seen {
        method,
        target,
        headers,
        body: String::from_utf8(body).unwrap(),
    })
}
