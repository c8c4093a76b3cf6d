//! A raw connection, for requests that a proper HTTP client would not send.

use std::{fmt::Write as _, io, time::Duration};

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use testkit::{Answer, TestServer, take_head};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::documented;

const PATIENCE: Duration = Duration::from_secs(30);

/// The bytes of a request without a body. Adds `Host`.
pub fn request(method: &str, target: &str, headers: &[(&str, &str)]) -> String {
    let mut text = format!("{method} {target} HTTP/1.1\r\nhost: tests.example\r\n");
    for (name, value) in headers {
        write!(text, "{name}: {value}\r\n").unwrap();
    }
    text + "\r\n"
}

/// The bytes of a request with a body and its `Content-Length`.
pub fn request_with_body(method: &str, target: &str, headers: &[(&str, &str)], body: &str) -> String {
    let length = body.len().to_string();
    let headers = [headers, &[("content-length", length.as_str())]].concat();
    request(method, target, &headers) + body
}

#[derive(Debug)]
pub struct Wire {
    stream: TcpStream,
    unread: Vec<u8>,
}

impl Wire {
    pub async fn connect(base_url: &str) -> Self {
        let wire = Self::try_connect(base_url).await;
        wire.expect("the listener takes a connection")
    }

    pub async fn try_connect(base_url: &str) -> io::Result<Self> {
        let address = base_url.strip_prefix("http://").expect("a plain URL");
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            unread: Vec::new(),
        })
    }

    /// Sends one request on a new connection and reads its answer.
    pub async fn exchange(base_url: &str, request: impl AsRef<[u8]>) -> Answer {
        let mut wire = Self::connect(base_url).await;
        wire.send(request.as_ref()).await;
        let answer = wire.answer().await.expect("an answer");
        documented::sent_raw(base_url, request.as_ref(), &answer);
        answer
    }

    /// Sends one request on a new connection, reads its answer, and asserts that the server then closes the
    /// connection.
    pub async fn last(base_url: &str, request: impl AsRef<[u8]>) -> Answer {
        let mut wire = Self::connect(base_url).await;
        wire.send(request.as_ref()).await;
        let answer = wire.answer().await.expect("an answer");
        documented::sent_raw(base_url, request.as_ref(), &answer);
        assert!(wire.is_closed().await, "{answer:?}");
        answer
    }

    /// Sends any bytes on a new connection, and closes the sending side once an answer starts or none arrives
    /// within half a second. `None` if the connection ends without a complete answer.
    pub async fn tried(base_url: &str, bytes: &[u8]) -> Option<Answer> {
        let mut wire = Self::connect(base_url).await;
        wire.send(bytes).await;
        // The server waits if the bytes announce more than they contain. The answer is read below.
        drop(tokio::time::timeout(Duration::from_millis(500), wire.more()).await);
        // The server may have closed already.
        drop(wire.stream.shutdown().await);
        let answer = wire.answer().await?;
        documented::sent_raw(base_url, bytes, &answer);
        Some(answer)
    }

    /// Starts an import on a back office connection. Its lines follow as chunks.
    pub async fn importing(server: &TestServer, seller: &str) -> Self {
        let bearer = format!("Bearer {}", server.operator_token);
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/x-ndjson"),
            ("transfer-encoding", "chunked"),
        ];
        let mut wire = Self::connect(&server.backoffice_url).await;
        let target = format!("/sellers/{seller}/offers:import");
        wire.send(request("POST", &target, &headers)).await;
        wire
    }

    /// Sends one chunk of a chunked body, as [`Self::send`] does.
    pub async fn send_chunk(&mut self, text: &str) -> bool {
        self.send(format!("{:x}\r\n{text}\r\n", text.len())).await
    }

    /// Sends bytes; false if the server has closed.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        let sent = tokio::time::timeout(PATIENCE, self.stream.write_all(bytes.as_ref())).await;
        sent.expect("the bytes are taken in time").is_ok()
    }

    /// Reads the next answer; `None` if the connection ends before it is complete.
    pub async fn answer(&mut self) -> Option<Answer> {
        let (status, headers) = self.head().await?;
        let length = headers
            .get("content-length")
            .map_or("0", |v| v.to_str().unwrap())
            .parse()
            .unwrap();
        // Answers of this size are not chunked.
        assert!(!headers.contains_key("transfer-encoding"));
        let bytes = self.take(length).await?;
        Some(Answer {
            status,
            headers,
            bytes,
        })
    }

    /// Reads the head of the next answer, an answer to HEAD: no body follows, whatever its headers say.
    pub async fn bare_answer(&mut self) -> Option<Answer> {
        let (status, headers) = self.head().await?;
        Some(Answer {
            status,
            headers,
            bytes: Vec::new(),
        })
    }

    /// Ends the connection with a TCP reset.
    pub fn reset(self) {
        self.stream.set_zero_linger().expect("the option is set");
    }

    /// Whether the server closes without sending anything more.
    pub async fn is_closed(&mut self) -> bool {
        self.unread.is_empty() && !self.more().await
    }

    async fn head(&mut self) -> Option<(u16, HeaderMap)> {
        let (first, fields) = loop {
            match take_head(&mut self.unread) {
                Some(head) => break head,
                None if self.more().await => {}
                None => return None,
            }
        };
        let status = first.split(' ').nth(1).expect("a status");
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            let name: HeaderName = name.parse().unwrap();
            headers.append(name, HeaderValue::from_str(&value).unwrap());
        }
        Some((status.parse().unwrap(), headers))
    }

    async fn take(&mut self, length: usize) -> Option<Vec<u8>> {
        while self.unread.len() < length {
            if !self.more().await {
                return None;
            }
        }
        let rest = self.unread.split_off(length);
        Some(std::mem::replace(&mut self.unread, rest))
    }

    async fn more(&mut self) -> bool {
        let read = tokio::time::timeout(PATIENCE, self.stream.read_buf(&mut self.unread)).await;
        matches!(read.expect("the server answers or closes in time"), Ok(1..))
    }
}
