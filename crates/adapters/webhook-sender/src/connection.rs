//! One HTTP/1.1 connection (RFC 9112) and what is exchanged over it.
//!
//! Nobody but the attempt at hand drives a connection: without an attempt nothing is read, and an attempt that is dropped
//! takes the connection's socket with it.

use std::{
    future::poll_fn,
    io,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{
    Request,
    body::Incoming,
    client::conn::http1::{self, SendRequest},
    ext::on_informational,
};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::Instant,
};
use tokio_rustls::client::TlsStream;
use webhooks::Failure;

use crate::{
    allowance::{Allowance, Counted, HEAD_MAX},
    failure,
};

/// More header fields than anybody sends; the head's length in bytes is what bounds it.
const FIELDS_MAX: usize = 1024;

type Driver = http1::Connection<TokioIo<Counted<Stream>>, Full<Bytes>>;

/// An open connection.
pub(crate) struct Connection {
    requests: SendRequest<Full<Bytes>>,
    /// None once the connection has ended.
    driver: Option<Driver>,
    allowance: Arc<Allowance>,
    opened: Instant,
}

/// A request that got no answer.
pub(crate) struct Unanswered {
    pub failure: Failure,
    /// True when the receiver said nothing at all.
    pub unheard: bool,
}

impl Connection {
    pub(crate) async fn open(stream: Stream) -> Result<Self, Failure> {
        let allowance = Arc::new(Allowance::default());
        // Without it, the first look at the connection would be its end.
        allowance.await_head();
        let stream = TokioIo::new(Counted::new(stream, Arc::clone(&allowance)));
        let shaken = http1::Builder::new()
            .max_buf_size(2 * HEAD_MAX)
            .max_headers(FIELDS_MAX)
            .handshake(stream)
            .await;
        let (requests, driver) = shaken.map_err(|error| failure::of_exchange(&error))?;
        Ok(Self {
            requests,
            driver: Some(driver),
            allowance,
            opened: Instant::now(),
        })
    }

    /// When it was opened.
    pub(crate) fn opened(&self) -> Instant {
        self.opened
    }

    /// Sends a request and reads the head of its answer.
    pub(crate) async fn exchange(
        &mut self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<(u16, Incoming), Unanswered> {
        self.allowance.await_head();
        let allowance = Arc::clone(&self.allowance);
        on_informational(&mut request, move |_| allowance.skip_interim());
        let answer = self.requests.send_request(request);
        let answer = drive(&mut self.driver, answer).await;
        if self.allowance.too_many_interim() {
            return Err(self.unanswered(Failure::protocol("more than 10 interim answers")));
        }
        match answer {
            Ok(answer) => Ok((answer.status().as_u16(), answer.into_body())),
            Err(error) => Err(self.unanswered(failure::of_exchange(&error))),
        }
    }

    fn unanswered(&self, failure: Failure) -> Unanswered {
        Unanswered {
            failure,
            unheard: !self.allowance.heard(),
        }
    }

    /// Reads the rest of an answer, up to what is read of it. True when the connection is fit for another request.
    pub(crate) async fn finish(&mut self, mut body: Incoming) -> bool {
        self.allowance.await_body();
        while let Some(frame) = drive(&mut self.driver, body.frame()).await {
            if frame.is_err() {
                return false;
            }
        }
        drive(&mut self.driver, self.requests.ready()).await.is_ok()
    }

    /// False once the receiver has closed the connection, or sent what nobody asked for.
    pub(crate) fn is_open(&mut self) -> bool {
        advance(&mut self.driver, &mut Context::from_waker(Waker::noop()));
        self.driver.is_some() && self.requests.is_ready()
    }
}

/// Awaits `work`, and meanwhile moves the connection on which it depends.
async fn drive<F: Future>(driver: &mut Option<Driver>, work: F) -> F::Output {
    let mut work = pin!(work);
    poll_fn(|cx| {
        advance(driver, cx);
        work.as_mut().poll(cx)
    })
    .await
}

/// Errors of the connection are those of the request at hand, which is told of them.
fn advance(driver: &mut Option<Driver>, cx: &mut Context<'_>) {
    if driver
        .as_mut()
        .is_some_and(|driver| Pin::new(driver).poll(cx).is_ready())
    {
        *driver = None;
    }
}

/// What a connection runs over.
pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// Hands a call on to whichever stream there is.
macro_rules! either {
    ($stream:expr, $inner:ident => $call:expr) => {
        match $stream {
            Stream::Plain($inner) => $call,
            Stream::Tls($inner) => $call,
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        either!(self.get_mut(), inner => Pin::new(inner).poll_read(cx, buf))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        either!(self.get_mut(), inner => Pin::new(inner).poll_write(cx, buf))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self.get_mut(), inner => Pin::new(inner).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self.get_mut(), inner => Pin::new(inner).poll_shutdown(cx))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        either!(self.get_mut(), inner => Pin::new(inner).poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        either!(self, inner => inner.is_write_vectored())
    }
}
