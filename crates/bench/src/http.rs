//! A cheap keep-alive HTTP connection: the load generator shares the cores with the program that it measures.

use std::fmt::Arguments;
use std::io::Write as _;
use std::net::SocketAddr;

use anyhow::{Context as _, bail, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Initial size of the receive buffer; a response with one offer fits.
const BUFFER: usize = 4 * 1024;
/// More header lines than any of the product's messages has.
const MOST_HEADERS: usize = 48;

/// A response, borrowed from its connection's buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Response<'a> {
    pub(crate) status: u16,
    pub(crate) body: &'a [u8],
}

impl<'a> Response<'a> {
    /// Returns the body if the status is `status`.
    pub(crate) fn expect(self, status: u16) -> anyhow::Result<&'a [u8]> {
        let body = self.body.get(..300).unwrap_or(self.body);
        ensure!(
            self.status == status,
            "a request was answered {}: {}",
            self.status,
            String::from_utf8_lossy(body)
        );
        Ok(self.body)
    }
}

/// Replaces `into` by a whole request: request line and headers of `head`, then the headers that all requests
/// share, then the body.
pub(crate) fn compose(into: &mut Vec<u8>, head: Arguments<'_>, body: &str) -> anyhow::Result<()> {
    into.clear();
    write!(
        into,
        "{head}\r\nHost: bench\r\nUser-Agent: Bench/1.0\r\nAccept: application/json\r\n"
    )?;
    if !body.is_empty() {
        write!(into, "Content-Length: {}\r\n", body.len())?;
    }
    write!(into, "\r\n{body}")?;
    Ok(())
}

/// A connection that carries one request at a time.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    pub(crate) async fn open(server: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(server)
            .await
            .with_context(|| format!("no connection to {server}"))?;
        stream.set_nodelay(true)?;
        let buffer = vec![0; BUFFER];
        Ok(Self { stream, buffer })
    }

    /// Sends a whole request and receives the whole response.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> anyhow::Result<Response<'_>> {
        self.stream
            .write_all(request)
            .await
            .context("the request was not sent")?;
        let mut filled = 0;
        let head = loop {
            filled += self.fill(filled).await?;
            if let Some(head) = Head::of_response(self.buffer.get(..filled).unwrap_or_default())? {
                break head;
            }
        };
        if self.buffer.len() < head.end {
            self.buffer.resize(head.end, 0);
        }
        while filled < head.end {
            filled += self.fill(filled).await?;
        }
        ensure!(filled == head.end, "the server sent more than one response");
        Ok(Response {
            status: head.status,
            body: self.buffer.get(head.body..head.end).unwrap_or_default(),
        })
    }

    /// Sends a GET without further headers.
    pub(crate) async fn get(&mut self, path: &str) -> anyhow::Result<Response<'_>> {
        let mut request = Vec::new();
        compose(&mut request, format_args!("GET {path} HTTP/1.1"), "")?;
        self.exchange(&request).await
    }

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

/// The end of a message's head and of its body, and a response's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) body: usize,
    pub(crate) end: usize,
}

impl Head {
    /// Parses a response's head; `None` while it is incomplete.
    fn of_response(received: &[u8]) -> anyhow::Result<Option<Self>> {
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        let parsed = response.parse(received).context("the response is not HTTP")?;
        let httparse::Status::Complete(body) = parsed else {
            return Ok(None);
        };
        Ok(Some(Self {
            status: response.code.unwrap_or_default(),
            body,
            end: body + content_length(response.headers)?,
        }))
    }

    /// Parses a request's head; `None` while it is incomplete.
    pub(crate) fn of_request(received: &[u8]) -> anyhow::Result<Option<Self>> {
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        let parsed = request.parse(received).context("the request is not HTTP")?;
        let httparse::Status::Complete(body) = parsed else {
            return Ok(None);
        };
        let end = body + content_length(request.headers)?;
        Ok(Some(Self { status: 0, body, end }))
    }
}

fn content_length(headers: &[httparse::Header<'_>]) -> anyhow::Result<usize> {
    let mut all = headers.iter();
    let header = all.find(|header| header.name.eq_ignore_ascii_case("content-length"));
    let value = header.context("a message has no Content-Length")?.value;
    let value = std::str::from_utf8(value).context("Content-Length is not text")?;
    value.parse().context("Content-Length is not a number")
}
