//! One HTTP/1.1 connection (RFC 9112) and the exchanges over it.

use std::{net::IpAddr, sync::Arc};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::Request;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::client::conn::http1::SendRequest;
use hyper::ext::on_informational;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;
use webhooks::{AttemptFailure, Host};

use crate::failure;
use crate::read_limit::{LimitedReader, MAX_BODY, MAX_FRAMES, MAX_HEAD_SIZE, ReadLimit};

/// No sender needs more header fields. The head is limited by its length in bytes.
const MAX_HEADER_FIELDS: usize = 1024;

/// TCP, with TLS or without.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// The other end of a connection, without its IP address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) is_tls: bool,
    pub(crate) host: Host,
    pub(crate) port: u16,
}

/// An open connection. Dropping it closes it, even during an exchange.
pub(crate) struct Connection {
    pub(crate) peer: Peer,
    pub(crate) address: IpAddr,
    requests: SendRequest<Full<Bytes>>,
    limit: Arc<ReadLimit>,
    /// Of the bytes below TLS.
    tls_limit: Arc<ReadLimit>,
    pub(crate) opened_at: Instant,
}

/// A request without an answer.
pub(crate) struct Unanswered {
    pub(crate) failure: AttemptFailure,
    /// Whether any byte of an answer arrived.
    pub(crate) has_read: bool,
}

impl Connection {
    pub(crate) async fn open(
        peer: Peer,
        address: IpAddr,
        stream: Box<dyn Stream>,
        tls_limit: Arc<ReadLimit>,
    ) -> Result<Self, AttemptFailure> {
        let limit = Arc::new(ReadLimit::default());
        // hyper reads before the first request to detect that the connection closes.
        limit.allow_head();
        let (reader, writer) = tokio::io::split(stream);
        let reader = LimitedReader {
            reader,
            limit: Arc::clone(&limit),
            beyond: "the answer's head is longer than 16 KiB",
        };
        let opened = http1::Builder::new()
            .max_buf_size(2 * MAX_HEAD_SIZE)
            .max_headers(MAX_HEADER_FIELDS)
            // Names have no case (RFC 9110 §5.1), but some receivers compare them with the documented
            // spelling.
            .title_case_headers(true)
            .handshake(TokioIo::new(tokio::io::join(reader, writer)))
            .await;
        let (requests, driver) = opened.map_err(|error| failure::of_exchange(&error))?;
        // A pending exchange gets the connection's error too.
        tokio::spawn(async move { drop(driver.await) });
        Ok(Self {
            peer,
            address,
            requests,
            limit,
            tls_limit,
            opened_at: Instant::now(),
        })
    }

    /// Whether another request can be sent: false if the receiver closed the connection or sent unexpected
    /// bytes.
    pub(crate) fn is_ready(&self) -> bool {
        self.requests.is_ready()
    }

    /// Sends a request and reads the head of its answer.
    pub(crate) async fn exchange(
        &mut self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<(u16, Incoming), Unanswered> {
        self.limit.allow_head();
        self.tls_limit.allow_tls();
        let limit = Arc::clone(&self.limit);
        on_informational(&mut request, move |_| limit.count_interim());
        let answer = self.requests.send_request(request).await;
        let failure = match answer {
            _ if self.limit.has_too_many_interim() => {
                AttemptFailure::protocol("more than 10 interim responses")
            }
            Ok(answer) => return Ok((answer.status().as_u16(), answer.into_body())),
            Err(error) => failure::of_exchange(&error),
        };
        Err(Unanswered {
            failure,
            has_read: self.limit.has_read(),
        })
    }

    /// Reads the rest of an answer, up to the limit. Returns whether the connection can be reused.
    pub(crate) async fn finish(&mut self, body: Incoming) -> bool {
        self.limit.allow_body();
        // Of what came with the head, too.
        let mut body = Limited::new(body, MAX_BODY);
        for _ in 0..MAX_FRAMES {
            match body.frame().await {
                Some(Ok(_)) => {}
                Some(Err(_)) => return false,
                None => return self.requests.ready().await.is_ok(),
            }
        }
        false
    }
}
