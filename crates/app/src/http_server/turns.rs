//! Connections of which a server reads one request at a time.
//!
//! actix-http decodes every request that has arrived, up to 128 KiB, before it answers the first. Each takes 7 KB then, and their decoding
//! keeps the thread for milliseconds. So what a client pipelines stays in the socket until the answer before it is sent.

use std::{
    cell::Cell,
    io::{self, IoSlice},
    mem,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, Waker, ready},
};

use actix_web::{
    body::{BodySize, BoxBody, MessageBody},
    dev::{Payload, ServiceRequest},
    error::PayloadError,
    web::{Buf as _, Bytes, BytesMut},
};
use futures_util::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The most that is read of a connection while its server may not have it: enough to notice its end.
const AHEAD: usize = 1024;

/// Whether a connection's server may read: it waits for a request, or for more of a request's body.
#[derive(Default)]
pub(super) struct Gate {
    is_closed: Cell<bool>,
    /// The server, if something waits for it behind the gate.
    server: Cell<Option<Waker>>,
}

impl Gate {
    fn close(&self) {
        self.is_closed.set(true);
    }

    fn open(&self) {
        self.is_closed.set(false);
        if let Some(server) = self.server.take() {
            server.wake();
        }
    }
}

/// A connection that yields at most one request whenever its server is polled.
pub(super) struct Turns<T> {
    connection: T,
    gate: Rc<Gate>,
    /// What was read and not yielded.
    ahead: BytesMut,
    /// Whether the line that is being yielded is empty so far: another line feed ends a head.
    is_empty_line: bool,
    /// Whether a head was just yielded.
    has_yielded: bool,
}

impl<T> Turns<T> {
    pub(super) fn new(connection: T) -> Self {
        Self {
            connection,
            gate: Rc::default(),
            ahead: BytesMut::new(),
            is_empty_line: false,
            has_yielded: false,
        }
    }

    pub(super) fn gate(&self) -> Rc<Gate> {
        Rc::clone(&self.gate)
    }

    /// The length of what may be yielded at once: up to the first empty line, which ends a head.
    fn yielded(&mut self, bytes: &[u8]) -> usize {
        for (at, byte) in bytes.iter().enumerate() {
            match byte {
                b'\n' if self.is_empty_line => {
                    self.has_yielded = true;
                    // Further empty lines go with it: one at a time, each would have the server look at all of them again.
                    let rest = bytes.iter().skip(at);
                    return at + rest.take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
                }
                b'\n' => self.is_empty_line = true,
                b'\r' => {}
                _ => self.is_empty_line = false,
            }
        }
        bytes.len()
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Turns<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let has_yielded = mem::take(&mut this.has_yielded);
        if has_yielded || this.gate.is_closed.get() {
            if this.ahead.is_empty() {
                let mut bytes = [0; AHEAD];
                let mut bytes = ReadBuf::new(&mut bytes);
                ready!(Pin::new(&mut this.connection).poll_read(cx, &mut bytes))?;
                if bytes.filled().is_empty() {
                    return Poll::Ready(Ok(()));
                }
                this.ahead.extend_from_slice(bytes.filled());
            }
            if has_yielded {
                cx.waker().wake_by_ref();
            } else {
                this.gate.server.set(Some(cx.waker().clone()));
            }
            return Poll::Pending;
        }
        if this.ahead.is_empty() {
            let before = buffer.filled().len();
            ready!(Pin::new(&mut this.connection).poll_read(cx, buffer))?;
            let read = buffer.filled().get(before..).unwrap_or_default();
            let length = this.yielded(read);
            let rest = read.get(length..).unwrap_or_default();
            this.ahead = BytesMut::from(rest);
            buffer.set_filled(before + length);
        } else {
            let mut ahead = mem::take(&mut this.ahead);
            let fits = ahead.len().min(buffer.remaining());
            let length = this.yielded(ahead.get(..fits).unwrap_or_default());
            buffer.put_slice(ahead.get(..length).unwrap_or_default());
            ahead.advance(length);
            if !ahead.is_empty() {
                this.ahead = ahead;
            }
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

/// The turn of a request, from its head to the end of its response: its connection's gate is closed.
pub(super) struct Turn(Rc<Gate>);

impl Turn {
    pub(super) fn of(request: &ServiceRequest) -> Self {
        let gate = request.conn_data::<Rc<Gate>>().map(Rc::clone);
        let gate = gate.unwrap_or_default();
        gate.close();
        Self(gate)
    }

    /// The request's body. The gate is open while a piece of it is waited for.
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
        self.0.close();
        BoxBody::new(Sending { body, _turn: self })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.open();
    }
}

struct Reading {
    payload: Payload,
    gate: Rc<Gate>,
}

impl Stream for Reading {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.gate.open();
        let piece = ready!(Pin::new(&mut self.payload).poll_next(cx));
        self.gate.close();
        Poll::Ready(piece)
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

    /// What the server reads when it is polled; `None` if it has to wait.
    fn read(connection: &mut Turns<DuplexStream>) -> Option<String> {
        let mut bytes = Vec::new();
        let read = connection.read_buf(&mut bytes).now_or_never()?;
        assert_eq!(read.unwrap(), bytes.len());
        Some(String::from_utf8(bytes).unwrap())
    }

    #[tokio::test]
    async fn one_request_is_read_at_a_poll_and_none_while_another_is_answered() {
        let (mut client, server) = duplex(1 << 16);
        let mut connection = Turns::new(server);
        let sent = [
            "GET /1 HTTP/1.1\r\nhost: a\r\n\r\n",
            "GET /2 HTTP/1.1\n\n\r\n\n",
            "GET /3",
        ];
        client.write_all(sent.concat().as_bytes()).await.unwrap();
        assert_eq!(read(&mut connection).as_deref(), Some(sent[0]));
        assert_eq!(read(&mut connection), None);
        connection.gate.close();
        assert_eq!(read(&mut connection), None);
        assert_eq!(read(&mut connection), None);
        connection.gate.open();
        for part in &sent[1..] {
            assert_eq!(read(&mut connection).as_deref(), Some(*part));
            if part.ends_with('\n') {
                assert_eq!(read(&mut connection), None);
            }
        }
    }

    #[tokio::test]
    async fn the_end_of_a_connection_is_seen_while_a_request_is_answered() {
        let (client, server) = duplex(1 << 16);
        let mut connection = Turns::new(server);
        connection.gate.close();
        assert_eq!(read(&mut connection), None);
        drop(client);
        assert_eq!(read(&mut connection).as_deref(), Some(""));
    }
}
