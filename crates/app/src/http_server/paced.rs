//! Connections of which a server reads one request at a time.
//!
//! actix-http decodes every request that has arrived, up to 128 KiB, before it answers the first. Each takes
//! 7 KB then, and their decoding keeps the thread for milliseconds. So what a client pipelines stays in the
//! socket until the answer before it is sent.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker, ready};
use std::time::Duration;
use std::{io, mem};

use actix_web::dev::{Payload, ServiceRequest};
use actix_web::error::PayloadError;
use actix_web::http::header::CONTENT_LENGTH;
use actix_web::web::{Buf as _, Bytes, BytesMut};
use actix_web::{HttpMessage as _, HttpResponse};
use futures_util::Stream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};
use web::response;
use web::tasks::wake_after_others;

/// The most that is read of a connection while its server may not have it: enough to notice its end.
const AHEAD: usize = 4096;

/// Bytes of a head; a longer one ends the connection. The pipeline refuses shorter ones too, with an answer.
const HEAD: usize = 64 * 1024;

/// Up to this many bytes of a body that nobody reads are drained, so that a refusal does not end the
/// connection.
const SMALL: usize = 4096;

/// How many bytes of chunks may come beyond [`CHUNK_OF_A_BYTE`] for each byte of their data: only extensions, trailers and
/// zeros before the lengths have more.
const AROUND_CHUNKS: usize = 64 * 1024;

/// The bytes of the smallest chunk.
const CHUNK_OF_A_BYTE: usize = "1\r\na\r\n".len();

/// A chunk with less data is small: reading it costs as much as hundreds of bytes.
const SMALL_CHUNK: usize = 64;

/// How many bytes are yielded at once while chunks are small: others would wait for more than a thousand of them.
const OF_SMALL_CHUNKS: usize = 512;

/// How many bytes of an unread body are thrown away. Then the connection ends, and its client may lose the answer.
const MOST_THROWN_AWAY: usize = 1024 * 1024;

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Awaits {
    #[default]
    Head,
    /// The answer. Nobody asks for the body.
    Answer,
    Body,
}

/// What a connection's server may read.
#[derive(Default)]
pub(super) struct ReadGate {
    awaits: Cell<Awaits>,
    /// The most that is left of the head or body.
    left: Cell<usize>,
    /// Whether the last chunk of the body was small.
    has_small_chunks: Cell<bool>,
    /// Whether all that had arrived was read.
    is_all_read: Cell<bool>,
    /// Whether nothing more is read: the connection's end was, or a head is overdue.
    has_ended: Cell<bool>,
    /// Whether what comes is thrown away, after a body that was not read.
    is_thrown_away: Cell<bool>,
    /// The server, if something waits for it behind the gate.
    server: Cell<Option<Waker>>,
}

impl ReadGate {
    fn open(&self, awaits: Awaits) {
        self.awaits.set(awaits);
        if let Some(server) = self.server.take() {
            wake_after_others(&server);
        }
    }

    fn throw_away(&self) {
        self.is_thrown_away.set(true);
        self.left.set(MOST_THROWN_AWAY);
    }

    fn allowed(&self) -> usize {
        match self.left.get() {
            left if left > SMALL && self.awaits.get() == Awaits::Answer => 0,
            left => left,
        }
    }
}

/// The end of a pause, in which others have their turn. The server may ask again meanwhile: it does so as long
/// as bytes come of a body that is thrown away.
struct Pause {
    is_over: AtomicBool,
    server: Waker,
}

impl Pause {
    fn begin(server: &Waker) -> Arc<Self> {
        let pause = Arc::new(Self {
            is_over: AtomicBool::new(false),
            server: server.clone(),
        });
        wake_after_others(&Arc::clone(&pause).into());
        pause
    }
}

impl Wake for Pause {
    fn wake(self: Arc<Self>) {
        self.is_over.store(true, Ordering::Relaxed);
        self.server.wake_by_ref();
    }
}

/// A connection that yields at most one head, or some KiB of a body, between two pauses.
pub(super) struct Paced<T> {
    connection: T,
    pub(super) gate: Rc<ReadGate>,
    /// What was read and not yielded.
    ahead: BytesMut,
    /// Whether the line so far is empty; `None` before a head, where empty lines are skipped.
    is_empty_line: Option<bool>,
    /// Whether something was yielded since the last pause.
    has_yielded: bool,
    pause: Option<Arc<Pause>>,
    head_timeout: Duration,
    /// By when a head that has begun must be complete.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<T> Paced<T> {
    pub(super) fn new(connection: T, head_timeout: Duration) -> Self {
        let gate = Rc::<ReadGate>::default();
        gate.left.set(HEAD);
        Self {
            connection,
            gate,
            ahead: BytesMut::new(),
            is_empty_line: None,
            has_yielded: false,
            pause: None,
            head_timeout,
            deadline: None,
        }
    }

    /// The length of what may be yielded at once: up to the first empty line, which ends a head.
    fn yielded(&mut self, bytes: &[u8]) -> usize {
        let gate = &self.gate;
        if gate.is_thrown_away.get() {
            self.has_yielded = true;
            gate.left.update(|left| left.saturating_sub(bytes.len()));
            return bytes.len();
        }
        if gate.awaits.get() == Awaits::Head && gate.left.get() == HEAD {
            // Not the last line of a body before it.
            self.is_empty_line = None;
        }
        let at_once = if gate.has_small_chunks.get() {
            OF_SMALL_CHUNKS
        } else {
            usize::MAX
        };
        let allowed = bytes.get(..gate.allowed().min(at_once)).unwrap_or(bytes);
        let mut length = 0;
        for byte in allowed {
            length += 1;
            self.is_empty_line = match (byte, self.is_empty_line) {
                (b'\n', Some(true)) => {
                    self.is_empty_line = None;
                    if gate.awaits.get() == Awaits::Head && gate.left.get() <= HEAD {
                        gate.awaits.set(Awaits::Answer);
                        gate.left.set(length);
                    }
                    break;
                }
                (b'\n', Some(false)) => Some(true),
                (b'\r' | b'\n', unchanged) => unchanged,
                _ => Some(false),
            };
        }
        self.has_yielded = true;
        gate.left.update(|left| left - length);
        length
    }

    /// Whether a head has begun that is too long or takes too long.
    fn is_overdue(&mut self, cx: &mut Context<'_>) -> bool {
        let left = self.gate.left.get();
        if self.gate.awaits.get() != Awaits::Head || left >= HEAD {
            self.deadline = None;
            return false;
        }
        let timeout = self.head_timeout;
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep(timeout)));
        left == 0 || deadline.as_mut().poll(cx).is_ready()
    }
}

impl<T: AsyncRead + Unpin> Paced<T> {
    /// Reads what has arrived; nothing at the connection's end.
    fn poll_arrived(&mut self, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.connection).poll_read(cx, buffer);
        let is_all_read = buffer.filled().len() == before;
        self.gate.is_all_read.set(is_all_read);
        self.gate.has_ended.set(is_all_read && polled.is_ready());
        polled
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Paced<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.pause.take_if(|pause| pause.is_over.load(Ordering::Relaxed));
        let has_yielded = mem::take(&mut this.has_yielded);
        if this.is_overdue(cx) {
            this.gate.has_ended.set(true);
            return Poll::Ready(Ok(()));
        }
        if this.pause.is_some() {
            return Poll::Pending;
        }
        if has_yielded || this.gate.allowed() == 0 {
            // What is thrown away comes in large pieces, so that few turns end it.
            if this.ahead.is_empty() && !this.gate.is_thrown_away.get() {
                let mut bytes = [0; AHEAD];
                let mut bytes = ReadBuf::new(&mut bytes);
                ready!(this.poll_arrived(cx, &mut bytes))?;
                if bytes.filled().is_empty() {
                    return Poll::Ready(Ok(()));
                }
                this.ahead.extend_from_slice(bytes.filled());
            }
            if has_yielded {
                this.pause = Some(Pause::begin(cx.waker()));
            } else {
                this.gate.server.set(Some(cx.waker().clone()));
            }
            return Poll::Pending;
        }
        if this.ahead.is_empty() {
            let before = buffer.filled().len();
            ready!(this.poll_arrived(cx, buffer))?;
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

impl<T: AsyncWrite + Unpin> AsyncWrite for Paced<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.connection).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_shutdown(cx)
    }
}

/// An exchange, from a request's head to the end of its response: its connection's gate is closed.
pub(super) struct Exchange(Rc<ReadGate>);

impl Exchange {
    /// Begins with a request. The gate is open while a piece of its body is waited for.
    pub(super) fn of(request: &mut ServiceRequest) -> (Self, Payload) {
        let gate = request.conn_data::<Rc<ReadGate>>().cloned().unwrap_or_default();
        gate.awaits.set(Awaits::Answer);
        gate.is_thrown_away.set(false);
        gate.has_small_chunks.set(false);
        let payload: Payload = match request.take_payload() {
            Payload::None => {
                gate.left.set(0);
                Payload::None
            }
            payload => {
                let length = request.headers().get(CONTENT_LENGTH);
                let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
                gate.left.set(length.unwrap_or(AROUND_CHUNKS));
                let (gate, is_chunked) = (Rc::clone(&gate), length.is_none());
                Payload::Stream {
                    payload: Box::pin(Reading {
                        payload,
                        gate,
                        is_chunked,
                    }),
                }
            }
        };
        (Self(gate), payload)
    }

    /// Lets the server read what has arrived of the body.
    pub(super) async fn body_may_come(&self) {
        self.0.is_all_read.set(false);
        let reading = |cx: &mut Context<'_>| {
            if self.0.is_all_read.get() || self.0.has_ended.get() || self.0.allowed() == 0 {
                return Poll::Ready(());
            }
            wake_after_others(cx.waker());
            Poll::Pending
        };
        poll_fn(reading).await;
    }

    /// The response, which ends the exchange when it is sent.
    pub(super) fn until_sent(self, response: HttpResponse) -> HttpResponse {
        self.0.awaits.set(Awaits::Answer);
        response::keep_payload(response, self)
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if self.0.left.get() == 0 {
            self.0.left.set(HEAD);
        } else {
            // The server closes the connection.
            self.0.throw_away();
        }
        self.0.open(Awaits::Head);
    }
}

struct Reading {
    payload: Payload,
    gate: Rc<ReadGate>,
    is_chunked: bool,
}

impl Stream for Reading {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let piece = Pin::new(&mut self.payload).poll_next(cx);
        match &piece {
            // All that was read is decoded, and the body has not ended: the connection must.
            Poll::Pending if self.is_chunked && self.gate.left.get() == 0 => {
                self.gate.throw_away();
                return Poll::Ready(Some(Err(PayloadError::Overflow)));
            }
            Poll::Pending => self.gate.open(Awaits::Body),
            Poll::Ready(None) => self.gate.left.set(0),
            Poll::Ready(Some(piece)) => {
                self.gate.awaits.set(Awaits::Answer);
                // The end of chunks is known when they are read.
                if let (Ok(data), true) = (piece, self.is_chunked) {
                    self.gate.has_small_chunks.set(data.len() < SMALL_CHUNK);
                    self.gate
                        .left
                        .update(|left| left.saturating_add(CHUNK_OF_A_BYTE * data.len()));
                }
            }
        }
        piece
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use futures_util::{FutureExt as _, StreamExt as _, stream};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
    use tokio::task::yield_now;

    use super::*;

    /// What the server of these tests reads at most.
    const PIECE: usize = 8 * 1024;

    /// What the server reads when it is polled; `None` if it has to wait.
    fn read(connection: &mut Paced<DuplexStream>) -> Option<String> {
        let mut bytes = Vec::with_capacity(PIECE);
        let read = connection.read_buf(&mut bytes).now_or_never()?;
        assert_eq!(read.unwrap(), bytes.len());
        Some(String::from_utf8(bytes).unwrap())
    }

    #[tokio::test]
    async fn one_request_is_read_at_a_poll_and_none_while_another_is_answered() {
        let (mut client, server) = duplex(1 << 16);
        let mut connection = Paced::new(server, Duration::MAX);
        let sent = [
            "GET /1 HTTP/1.1\r\nhost: a\r\n\r\n",
            "GET /2 HTTP/1.1\n\n",
            "\r\n\nGET /3",
        ];
        client.write_all(sent.concat().as_bytes()).await.unwrap();
        for part in sent {
            assert_eq!(read(&mut connection).as_deref(), Some(part));
            assert_eq!(read(&mut connection), None);
            assert_eq!(read(&mut connection), None);
            yield_now().await;
            connection.gate.left.set(HEAD);
            connection.gate.open(Awaits::Head);
        }
    }

    #[tokio::test]
    async fn an_empty_line_behind_a_body_is_no_head() {
        let (mut client, server) = duplex(1 << 16);
        let mut connection = Paced::new(server, Duration::MAX);
        let sent = [
            "POST /1 HTTP/1.1\r\ncontent-length: 2\r\n\r\n",
            "x\n",
            "\r\nGET /2 HTTP/1.1\r\n\r\n",
        ];
        client.write_all(sent.concat().as_bytes()).await.unwrap();
        for (part, next, awaits) in [
            (sent[0], 2, Awaits::Answer),
            (sent[1], HEAD, Awaits::Head),
            (sent[2], 0, Awaits::Answer),
        ] {
            assert_eq!(read(&mut connection).as_deref(), Some(part));
            assert_eq!(read(&mut connection), None);
            yield_now().await;
            connection.gate.left.set(next);
            connection.gate.open(awaits);
        }
    }

    /// However often the server asks for more of a body that it throws away.
    #[tokio::test]
    async fn others_have_their_turn_after_each_piece_of_a_body() {
        let (mut client, server) = duplex(1 << 16);
        let mut connection = Paced::new(server, Duration::MAX);
        connection.gate.throw_away();
        client.write_all(&vec![b'\n'; 1 << 15]).await.unwrap();
        let mut pieces = 0;
        while let Some(piece) = read(&mut connection) {
            assert_eq!(piece.len(), PIECE);
            for _ in 0..10 {
                assert_eq!(read(&mut connection), None);
            }
            pieces += 1;
            yield_now().await;
        }
        assert_eq!(pieces, 4);
    }

    #[tokio::test]
    async fn fewer_bytes_are_read_at_once_while_chunks_are_small() {
        let (mut client, server) = duplex(1 << 16);
        let mut connection = Paced::new(server, Duration::MAX);
        let gate = Rc::clone(&connection.gate);
        client.write_all(&vec![b'x'; 1 << 15]).await.unwrap();
        for (length, is_small) in [(2, true), (SMALL_CHUNK, false)] {
            let data = Ok(Bytes::from(vec![b'a'; length]));
            let mut reading = Reading {
                payload: stream::once(ready(data)).boxed_local().into(),
                gate: Rc::clone(&gate),
                is_chunked: true,
            };
            reading.next().await.unwrap().unwrap();
            gate.open(Awaits::Body);
            let piece = read(&mut connection).unwrap();
            assert_eq!(piece.len() <= OF_SMALL_CHUNKS, is_small);
            assert_eq!(read(&mut connection), None);
            yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_connection_ends_when_much_of_a_body_was_thrown_away() {
        let (mut client, server) = duplex(2 * MOST_THROWN_AWAY);
        let mut connection = Paced::new(server, Duration::MAX);
        connection.gate.throw_away();
        client.write_all(&vec![b'x'; 2 * MOST_THROWN_AWAY]).await.unwrap();
        let mut thrown_away = 0;
        loop {
            match read(&mut connection) {
                Some(piece) if piece.is_empty() => break,
                Some(piece) => thrown_away += piece.len(),
                None => yield_now().await,
            }
        }
        assert_eq!(thrown_away, MOST_THROWN_AWAY);
    }

    #[tokio::test]
    async fn the_end_of_a_connection_is_seen_while_a_request_is_answered() {
        let (client, server) = duplex(1 << 16);
        let mut connection = Paced::new(server, Duration::MAX);
        connection.gate.left.set(0);
        connection.gate.awaits.set(Awaits::Answer);
        assert_eq!(read(&mut connection), None);
        drop(client);
        assert_eq!(read(&mut connection).as_deref(), Some(""));
    }
}
