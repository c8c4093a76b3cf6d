//! A keep-alive connection.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context as _, bail};
use serde_json::Value;
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::Response;
use super::response::Head;

/// The receive buffer's size at first, in bytes; a response of an offer fits well.
const BUFFER: usize = 4 * 1024;
/// How many bytes of a file are sent at a time.
const CHUNK: usize = 64 * 1024;

/// A connection that carries one request at a time.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    /// Connects without Nagle's delay.
    pub(crate) async fn open(server: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(server)
            .await
            .with_context(|| format!("no connection to {server}"))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: vec![0; BUFFER],
        })
    }

    /// Sends a request as it is, head and body, and receives the whole response.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> anyhow::Result<Response<'_>> {
        self.stream
            .write_all(request)
            .await
            .context("the request was not sent")?;
        self.receive().await
    }

    /// Sends a JSON request and gives status and body of the response.
    pub(crate) async fn json(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> anyhow::Result<(u16, Value)> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let mut request = head(method, path, headers, "application/json", body.len());
        request.extend_from_slice(body.as_bytes());
        let response = self.exchange(&request).await?;
        Ok((response.status, json_of(response)?))
    }

    /// Sends a file as the body, bit by bit, and gives status and body of the JSON response.
    pub(crate) async fn upload(
        &mut self,
        path: &str,
        headers: &[(&str, &str)],
        content_type: &str,
        file: &Path,
    ) -> anyhow::Result<(u16, Value)> {
        let mut file = File::open(file).await?;
        let length = usize::try_from(file.metadata().await?.len())?;
        self.stream
            .write_all(&head("POST", path, headers, content_type, length))
            .await?;
        let mut chunk = vec![0; CHUNK];
        loop {
            let count = file.read(&mut chunk).await?;
            let Some(read) = chunk.get(..count).filter(|read| !read.is_empty()) else {
                break;
            };
            // A server that refuses early says why before it stops reading.
            if self.stream.write_all(read).await.is_err() {
                break;
            }
        }
        let response = self.receive().await?;
        Ok((response.status, json_of(response)?))
    }

    async fn receive(&mut self) -> anyhow::Result<Response<'_>> {
        let mut filled = 0;
        let head = loop {
            filled += self.fill(filled).await?;
            if let Some(head) = Head::parse(self.buffer.get(..filled).unwrap_or_default())? {
                break head;
            }
        };
        let end = head.length + head.body;
        if self.buffer.len() < end {
            self.buffer.resize(end, 0);
        }
        while filled < end {
            filled += self.fill(filled).await?;
        }
        if filled > end {
            bail!("the server sent more than one response");
        }
        let body = self.buffer.get(head.length..end).unwrap_or_default();
        Ok(Response {
            status: head.status,
            body,
        })
    }

    /// Receives something behind the first `filled` bytes of the buffer.
    async fn fill(&mut self, filled: usize) -> anyhow::Result<usize> {
        if filled == self.buffer.len() {
            self.buffer.resize(2 * filled, 0);
        }
        let space = self.buffer.get_mut(filled..).unwrap_or_default();
        match self.stream.read(space).await.context("no response")? {
            0 => bail!("the server closed the connection"),
            count => Ok(count),
        }
    }
}

fn head(method: &str, path: &str, headers: &[(&str, &str)], content_type: &str, length: usize) -> Vec<u8> {
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: bench\r\nUser-Agent: Bench/1.0\r\n");
    // Writing into a string does not fail.
    for (name, value) in headers {
        let _ = write!(head, "{name}: {value}\r\n");
    }
    if length > 0 {
        let _ = write!(head, "Content-Type: {content_type}\r\n");
    }
    let _ = write!(head, "Content-Length: {length}\r\n\r\n");
    head.into_bytes()
}

fn json_of(response: Response<'_>) -> anyhow::Result<Value> {
    if response.body.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(response.body).with_context(|| {
        format!(
            "status {} with a body that is no JSON: {}",
            response.status,
            response.excerpt()
        )
    })
}
