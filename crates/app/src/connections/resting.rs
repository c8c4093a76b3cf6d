//! Connections that rest, and hold next to nothing meanwhile.
//!
//! The HTTP library keeps two buffers of 8 KiB for a connection as long as it serves it, though most connections idle most of
//! the time. So a [`GuardedStream`](super::guarded_stream::GuardedStream) on which nothing has happened for a while leaves its
//! [`Transport`] on a [`Shelf`] and seems to end: the library lets go of it with all that it held. Whoever had it served finds
//! the transport there, waits for the first bytes of the next request ([`rest`]), and has the library begin anew with them. To
//! the client nothing has happened.

use std::{
    cell::Cell,
    future::poll_fn,
    io,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, ready},
};

use metrics::Gauge;
use tokio::{
    io::{AsyncRead as _, AsyncWrite as _, ReadBuf},
    time::{sleep_until, timeout},
};

use super::{DISCONNECT_TIMEOUT, course::Course, intake::Intake, stopping::Stopping, transport::Transport};

/// How much is read at once of what ends a rest. It is on the stack only while it is read.
const PIECE: usize = 2 * 1024;

/// Where a stream leaves its transport when its connection is to rest.
#[derive(Clone, Default)]
pub(super) struct Shelf(Rc<Cell<Option<Transport>>>);

impl Shelf {
    pub(super) fn leave(&self, transport: Transport) {
        self.0.set(Some(transport));
    }

    pub(super) fn take(&self) -> Option<Transport> {
        self.0.take()
    }
}

/// A connection that rests, for as long as it is counted as one.
struct Counted<'a>(&'a Gauge);

impl<'a> Counted<'a> {
    fn by(gauge: &'a Gauge) -> Self {
        gauge.increment(1);
        Self(gauge)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.decrement(1);
    }
}

/// Waits until something comes, and answers it with what it came by; none where the connection has ended meanwhile: because the
/// client has closed it, because it has idled for too long, or because the program stops.
pub(super) async fn rest(
    mut transport: Transport,
    course: &Course,
    stopping: &Stopping,
    resting: &Gauge,
) -> io::Result<Option<(Transport, Intake)>> {
    if let Some(until) = course.rests_until() {
        let _counted = Counted::by(resting);
        let came = tokio::select! {
            biased;
            came = poll_fn(|cx| poll_first(&mut transport, cx)) => came?,
            () = sleep_until(until) => None,
            () = stopping.ended() => None,
        };
        if let Some(came) = came {
            return Ok(Some((transport, came)));
        }
    }
    // As the library does it. Whether the client takes notice is its own affair.
    let closed = timeout(
        DISCONNECT_TIMEOUT,
        poll_fn(|cx| Pin::new(&mut transport).poll_shutdown(cx)),
    );
    drop(closed.await);
    Ok(None)
}

/// The first bytes; none where the client has closed.
fn poll_first(transport: &mut Transport, cx: &mut Context<'_>) -> Poll<io::Result<Option<Intake>>> {
    let mut piece = [0; PIECE];
    let mut piece = ReadBuf::new(&mut piece);
    ready!(Pin::new(transport).poll_read(cx, &mut piece))?;
    if piece.filled().is_empty() {
        return Poll::Ready(Ok(None));
    }
    let mut intake = Intake::new();
    intake.keep(piece.filled());
    Poll::Ready(Ok(Some(intake)))
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpStream,
        time::Instant,
    };

    use super::*;
    use crate::connections::{intake::BodyLength, transport::tests::pair};

    /// A connection that rests, its client, and the end of the program.
    async fn resting(keep_alive: Duration) -> (Transport, TcpStream, Course, Arc<Stopping>) {
        let (transport, client) = pair().await;
        let course = Course::new(keep_alive, Duration::from_secs(1));
        course.request_begins(BodyLength::Known(0));
        course.request_ends(false);
        course.answer_ends();
        (transport, client, course, Arc::default())
    }

    async fn is_closed(mut client: TcpStream) -> bool {
        client.read(&mut [0; 8]).await.unwrap() == 0
    }

    #[tokio::test]
    async fn the_first_bytes_end_a_rest_and_are_kept() {
        let (transport, mut client, course, stopping) = resting(Duration::from_mins(1)).await;
        let resting = Gauge::noop();
        let begun = async {
            tokio::task::yield_now().await;
            client.write_all(b"GET /").await.unwrap();
        };
        let (rested, ()) = tokio::join!(rest(transport, &course, &stopping, &resting), begun);
        let (_, mut intake) = rested.unwrap().expect("the connection goes on");
        assert_eq!(&intake.take(100)[..], b"GET /");
    }

    #[tokio::test]
    async fn a_rest_ends_with_the_time_to_idle_and_no_sooner() {
        let (transport, client, course, stopping) = resting(Duration::from_millis(200)).await;
        let began = Instant::now();
        assert!(
            rest(transport, &course, &stopping, &Gauge::noop())
                .await
                .unwrap()
                .is_none()
        );
        assert!(began.elapsed() >= Duration::from_millis(150));
        assert!(is_closed(client).await);
    }

    #[tokio::test]
    async fn a_rest_ends_with_the_client_and_with_the_program() {
        let (transport, client, course, stopping) = resting(Duration::from_mins(1)).await;
        drop(client);
        assert!(
            rest(transport, &course, &stopping, &Gauge::noop())
                .await
                .unwrap()
                .is_none()
        );

        let (transport, client, course, stopping) = resting(Duration::from_mins(1)).await;
        stopping.end();
        assert!(
            rest(transport, &course, &stopping, &Gauge::noop())
                .await
                .unwrap()
                .is_none()
        );
        assert!(is_closed(client).await);
    }
}
