//! Connections of which a server reads little ahead.
//!
//! actix-http decodes every request that has arrived, up to 128 KiB, before it answers the first. Each takes 7 KB then, and their decoding
//! keeps the thread for milliseconds. So most of what a client pipelines stays in the socket until the answer before it is sent.

use std::{
    cell::Cell,
    io::{self, IoSlice},
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, Waker, ready},
};

use actix_web::{
    body::{BodySize, BoxBody, MessageBody},
    dev::{Payload, ServiceRequest},
    error::PayloadError,
    web::Bytes,
};
use futures_util::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes that are read before what has arrived is decoded, and bytes that are read beyond a request while it is answered. Most requests end
/// within them, so one that is refused without a look at its body does not end its connection.
const AHEAD: usize = 4096;

/// What a connection's server may read before the next step of the request that it answers.
pub(super) struct Gate {
    left: Cell<usize>,
    /// The server, if it waits for that step.
    server: Cell<Option<Waker>>,
}

impl Gate {
    fn allow(&self, bytes: usize) {
        self.left.set(bytes);
        if let Some(server) = self.server.take() {
            server.wake();
        }
    }
}

/// Without a request that is answered, there is no limit.
impl Default for Gate {
    fn default() -> Self {
        let (left, server) = (Cell::new(usize::MAX), Cell::default());
        Self { left, server }
    }
}

/// A connection that yields some [`AHEAD`] bytes whenever its server is polled, within what its gate allows.
pub(super) struct Turns<T> {
    connection: T,
    gate: Rc<Gate>,
    /// Bytes since the server was last told to wait.
    yielded: usize,
}

impl<T> Turns<T> {
    pub(super) fn new(connection: T) -> Self {
        Self {
            connection,
            gate: Rc::default(),
            yielded: 0,
        }
    }

    pub(super) fn gate(&self) -> Rc<Gate> {
        Rc::clone(&self.gate)
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Turns<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let left = this.gate.left.get();
        if left == 0 {
            this.yielded = 0;
            this.gate.server.set(Some(cx.waker().clone()));
            return Poll::Pending;
        }
        if this.yielded >= AHEAD {
            this.yielded = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let most = left.min(AHEAD).min(buffer.remaining());
        let mut bytes = ReadBuf::new(buffer.initialize_unfilled_to(most));
        let read = Pin::new(&mut this.connection).poll_read(cx, &mut bytes);
        let length = bytes.filled().len();
        if read.is_pending() {
            this.yielded = 0;
        }
        ready!(read)?;
        buffer.advance(length);
        this.yielded += length;
        if left != usize::MAX {
            this.gate.left.set(left - length);
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Turns<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.connection).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.connection).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.connection.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_shutdown(cx)
    }
}

/// The turn of a request, from its head to the end of its response.
pub(super) struct Turn(Rc<Gate>);

impl Turn {
    pub(super) fn of(request: &ServiceRequest) -> Self {
        let gate = request.conn_data::<Rc<Gate>>().map(Rc::clone);
        let gate = gate.unwrap_or_default();
        gate.allow(AHEAD);
        Self(gate)
    }

    /// The request's body: whenever it is asked for, more may be read.
    pub(super) fn reading(&self, payload: Payload) -> Payload {
        let gate = Rc::clone(&self.0);
        match payload {
            Payload::None => payload,
            payload => Payload::Stream {
                payload: Box::pin(Reading { payload, gate }),
            },
        }
    }

    /// The response's body, which ends the turn.
    pub(super) fn until_sent(self, body: BoxBody) -> BoxBody {
        BoxBody::new(Sending { body, _turn: self })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.allow(usize::MAX);
    }
}

struct Reading {
    payload: Payload,
    gate: Rc<Gate>,
}

impl Stream for Reading {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.gate.allow(AHEAD);
        Pin::new(&mut self.payload).poll_next(cx)
    }
}

struct Sending {
    body: BoxBody,
    _turn: Turn,
}

impl MessageBody for Sending {
    type Error = <BoxBody as MessageBody>::Error;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Pin::new(&mut self.body).poll_next(cx)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

    use super::*;

    /// The number of bytes that the server reads when it is polled, until it has to wait.
    fn read(connection: &mut Turns<DuplexStream>) -> usize {
        let mut bytes = Vec::new();
        while connection.read_buf(&mut bytes).now_or_never().is_some() {}
        bytes.len()
    }

    #[tokio::test]
    async fn little_is_read_at_a_poll_and_less_while_a_request_is_answered() {
        let (mut client, server) = duplex(1 << 16);
        let mut connection = Turns::new(server);
        client.write_all(&vec![b'a'; 4 * AHEAD + 1]).await.unwrap();
        assert_eq!(read(&mut connection), AHEAD);
        connection.gate.allow(AHEAD);
        let while_answered = [
            read(&mut connection),
            read(&mut connection),
            read(&mut connection),
        ];
        assert_eq!(while_answered, [AHEAD, 0, 0]);
        connection.gate.allow(usize::MAX);
        assert_eq!(read(&mut connection), AHEAD);
        assert_eq!(read(&mut connection), AHEAD);
        assert_eq!(read(&mut connection), 1);
    }

    #[tokio::test]
    async fn the_end_of_a_connection_is_seen_while_a_request_is_answered() {
        let (client, server) = duplex(1 << 16);
        let mut connection = Turns::new(server);
        connection.gate.allow(AHEAD);
        assert_eq!(read(&mut connection), 0);
        drop(client);
        let mut bytes = Vec::new();
        let end = connection.read_buf(&mut bytes).now_or_never();
        assert_eq!(end.unwrap().unwrap(), 0);
    }
}
