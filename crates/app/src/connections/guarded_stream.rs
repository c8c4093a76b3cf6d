//! A connection that ends by itself when its time is over, or when the program stops and there is nothing to answer, that hands
//! on one request at a time, and that goes to rest when it idles.

use std::{
    future::Future as _,
    io::{self, ErrorKind, IoSlice},
    pin::Pin,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep_until},
};
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::{course::Course, intake::Intake, resting::Shelf, stopping::Stopping, transport::Transport};

/// What a client is told whose head was too slow, as the HTTP library does for a connection's first head.
const TOO_SLOW: &[u8] = b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// How much is read ahead at once.
const PIECE: usize = 4 * 1024;

/// How often it is looked whether the connection idles. It goes to rest when it did so twice with nothing in between, so after once
/// to twice this long. That is longer than the HTTP library waits for a client to close ([`super::DISCONNECT_TIMEOUT`]): what it has
/// refused to read on never rests.
pub(super) const LOOKS_EVERY: Duration = Duration::from_millis(1_250);

/// The stream. Whoever serves it polls it for reading whenever anything wakes the connection's task.
pub(crate) struct GuardedStream {
    stream: Transport,
    course: Rc<Course>,
    intake: Intake,
    /// Wakes the task at the end of the time that the connection has, or earlier: it is put off only when it rings.
    alarm: Option<Pin<Box<Sleep>>>,
    /// Whether it has rung since somebody looked.
    rang: bool,
    /// Whether the connection idled when it rang last, and nothing was read since.
    idled: bool,
    /// Where the transport is left when the connection goes to rest.
    shelf: Shelf,
    stopping: Arc<Stopping>,
    ending: Pin<Box<WaitForCancellationFutureOwned>>,
    /// Whom `ending` wakes.
    told: Option<Waker>,
    /// Whether bytes may be left that were not sent yet.
    unsent: bool,
}

impl GuardedStream {
    /// A stream of which so much has come already.
    pub(super) fn new(
        (stream, intake): (Transport, Intake),
        course: &Rc<Course>,
        stopping: &Arc<Stopping>,
        shelf: &Shelf,
    ) -> Self {
        Self {
            stream,
            course: Rc::clone(course),
            intake,
            alarm: None,
            rang: false,
            idled: false,
            shelf: shelf.clone(),
            ending: Box::pin(stopping.ended()),
            stopping: Arc::clone(stopping),
            told: None,
            unsent: false,
        }
    }

    pub(crate) const fn course(&self) -> &Rc<Course> {
        &self.course
    }

    /// Whether the connection's time is over. If not, the task will be woken when it may be.
    fn is_overdue(&mut self, cx: &mut Context<'_>) -> bool {
        let until = self.course.until();
        let alarm = self
            .alarm
            .get_or_insert_with(|| Box::pin(sleep_until(next_look(until))));
        if let Some(until) = until.filter(|until| alarm.deadline() > *until) {
            alarm.as_mut().reset(until);
        }
        while alarm.as_mut().poll(cx).is_ready() {
            if until.is_some_and(|until| until <= Instant::now()) {
                return true;
            }
            self.rang = true;
            alarm.as_mut().reset(next_look(until));
        }
        false
    }

    /// Whether the connection goes to rest, after which there is none here.
    fn goes_to_rest(&mut self) -> bool {
        if !std::mem::take(&mut self.rang) {
            return false;
        }
        let idles = self.course.rests_until().is_some() && !self.unsent && self.intake.is_idle();
        if idles && self.idled {
            self.shelf
                .leave(std::mem::replace(&mut self.stream, Transport::Gone));
            return true;
        }
        self.idled = idles;
        false
    }

    /// Whether the program ends its connections. If not, the task will be woken when it does.
    fn is_ending(&mut self, cx: &mut Context<'_>) -> bool {
        // Asking again takes a lock that all connections share, and only another waker makes it necessary.
        if !self.told.as_ref().is_some_and(|told| told.will_wake(cx.waker())) {
            if self.ending.as_mut().poll(cx).is_ready() {
                return true;
            }
            self.told = Some(cx.waker().clone());
        }
        self.stopping.is_ending()
    }

    fn time_out(&mut self, cx: &mut Context<'_>) -> io::Error {
        if self.course.is_at_a_head() && !self.unsent {
            // It is a courtesy: the connection ends whether or not it can be sent.
            drop(Pin::new(&mut self.stream).poll_write(cx, TOO_SLOW));
            drop(Pin::new(&mut self.stream).poll_flush(cx));
        }
        io::Error::new(ErrorKind::TimedOut, "the client was too slow")
    }
}

impl AsyncRead for GuardedStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let read = this.read(cx, buffer);
        if read.is_ready() {
            this.idled = false;
            return read;
        }
        if this.is_overdue(cx) {
            return Poll::Ready(Err(this.time_out(cx)));
        }
        // To the one who reads, an end without a byte is as if the client had closed.
        if (this.is_ending(cx) && this.course.is_idle()) || this.goes_to_rest() {
            return Poll::Ready(Ok(()));
        }
        Poll::Pending
    }
}

/// When to look again, at the latest at the end of the time that there is.
fn next_look(until: Option<Instant>) -> Instant {
    let look = Instant::now() + LOOKS_EVERY;
    until.map_or(look, |until| until.min(look))
}

impl GuardedStream {
    /// Hands on what may be: the rest of a request, or the next one once the one before it is answered.
    fn read(&mut self, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.course.body() {
            Some(length) => self.intake.body(length),
            None => self.intake.goes_on(),
        }
        if !self.course.is_at_a_request() && !self.course.is_closing() && !self.unsent {
            self.intake.next();
        }
        if self.intake.is_over() {
            return Poll::Ready(Ok(()));
        }
        if self.intake.is_shut() {
            return self.read_ahead(cx);
        }
        let kept = self.intake.take(buffer.remaining());
        if kept.is_empty() {
            return self.read_on(cx, buffer);
        }
        self.course.bytes_came();
        buffer.put_slice(&kept);
        Poll::Ready(Ok(()))
    }

    /// Reads from the client, and keeps back what lies behind the request.
    fn read_on(&mut self, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        std::task::ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        let came = buffer.filled().get(before..).unwrap_or_default();
        if came.is_empty() {
            self.intake.end();
            return Poll::Ready(Ok(()));
        }
        self.course.bytes_came();
        let admitted = self.intake.admit(came);
        self.intake.keep(came.get(admitted..).unwrap_or_default());
        buffer.set_filled(before.saturating_add(admitted));
        Poll::Ready(Ok(()))
    }

    /// Reads while nothing may be handed on, and so learns of the client's going. Behind the last answer all is thrown away.
    fn read_ahead(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut piece = [0; PIECE];
        while self.intake.has_room() {
            let mut piece = ReadBuf::new(&mut piece);
            match Pin::new(&mut self.stream).poll_read(cx, &mut piece)? {
                Poll::Pending => break,
                Poll::Ready(()) if piece.filled().is_empty() => self.intake.end(),
                Poll::Ready(()) => self.intake.keep(piece.filled()),
            }
            if self.course.is_closing() {
                self.intake.discard();
            }
        }
        if self.intake.is_over() {
            return Poll::Ready(Ok(()));
        }
        if self.intake.pauses() {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// What a write has come to, but for one that waits beyond the connection's time.
    fn written(&mut self, cx: &mut Context<'_>, outcome: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        self.unsent = true;
        if outcome.is_pending() && self.is_overdue(cx) {
            return Poll::Ready(Err(self.time_out(cx)));
        }
        outcome
    }
}

impl AsyncWrite for GuardedStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let outcome = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.written(cx, outcome)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let outcome = Pin::new(&mut this.stream).poll_write_vectored(cx, bytes);
        this.written(cx, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.stream).poll_flush(cx);
        if flushed.is_pending() && this.is_overdue(cx) {
            return Poll::Ready(Err(this.time_out(cx)));
        }
        // The HTTP library flushes once all that it had to send was taken. TLS may have some of it left then.
        let was_unsent = std::mem::replace(&mut this.unsent, flushed.is_pending());
        if was_unsent && flushed.is_ready() && this.intake.is_waiting() {
            // What came behind the request that is answered now.
            cx.waker().wake_by_ref();
        }
        flushed
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::{io::AsyncWriteExt as _, net::TcpStream, time::advance};

    use super::*;
    use crate::connections::{intake::BodyLength, transport::tests::pair};

    const MINUTE: Duration = Duration::from_mins(1);

    /// A stream and its client, what is known of it, and where its transport goes.
    async fn stream() -> (GuardedStream, TcpStream, Rc<Course>, Shelf) {
        let (transport, client) = pair().await;
        let (course, shelf) = (Rc::new(Course::new(MINUTE, MINUTE)), Shelf::default());
        let begun = (transport, Intake::new());
        let stream = GuardedStream::new(begun, &course, &Arc::default(), &shelf);
        (stream, client, course, shelf)
    }

    /// Asks for bytes; none where there are none for now.
    async fn read(stream: &mut GuardedStream) -> Option<Vec<u8>> {
        let mut bytes = [0; 64];
        let mut bytes = ReadBuf::new(&mut bytes);
        let read = poll_fn(|cx| Poll::Ready(Pin::new(&mut *stream).poll_read(cx, &mut bytes))).await;
        read.is_ready().then(|| bytes.filled().to_vec())
    }

    /// Whether the stream seems to end within a few looks.
    async fn ends(stream: &mut GuardedStream) -> bool {
        for _ in 0..5 {
            if let Some(bytes) = read(stream).await {
                return bytes.is_empty();
            }
            advance(LOOKS_EVERY).await;
        }
        false
    }

    fn answered(course: &Course) {
        course.request_begins(BodyLength::Known(0));
        course.request_ends(false);
        course.answer_ends();
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_rests_after_two_looks_without_anything_between() {
        let (mut stream, mut client, course, shelf) = stream().await;
        answered(&course);
        assert_eq!(read(&mut stream).await, None);
        for _ in 0..3 {
            advance(LOOKS_EVERY).await;
            assert_eq!(read(&mut stream).await, None, "it may have idled for a moment");
            client.write_all(b"GET /").await.unwrap();
            stream.stream_readable().await;
            assert_eq!(read(&mut stream).await.unwrap(), b"GET /");
            answered(&course);
        }
        assert!(shelf.take().is_none());
        assert!(ends(&mut stream).await);
        assert!(shelf.take().is_some());
        stream.flush().await.unwrap();
        stream.shutdown().await.unwrap();
        client.try_write(b"GET /").expect("to the client it is open");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_under_way_does_not_rest() {
        let (mut new, _client, _course, shelf) = stream().await;
        assert!(!ends(&mut new).await);
        assert!(shelf.take().is_none());

        let (mut answering, _client, course, shelf) = stream().await;
        course.request_begins(BodyLength::Known(0));
        course.request_ends(false);
        assert!(!ends(&mut answering).await, "the answer is not over");
        assert!(shelf.take().is_none());

        let (mut unsent, _client, course, shelf) = stream().await;
        answered(&course);
        unsent.write_all(b"HTTP/1.1").await.unwrap();
        assert!(!ends(&mut unsent).await, "the answer was not flushed");
        unsent.flush().await.unwrap();
        assert!(ends(&mut unsent).await);
        assert!(shelf.take().is_some());

        let (mut unread, _client, course, shelf) = stream().await;
        course.request_begins(BodyLength::Known(8));
        course.request_ends(false);
        course.answer_ends();
        assert!(!ends(&mut unread).await, "the request is not over");
        assert!(shelf.take().is_none());
    }

    impl GuardedStream {
        async fn stream_readable(&self) {
            if let Transport::Plain(stream) = &self.stream {
                stream.readable().await.unwrap();
            }
        }
    }
}
