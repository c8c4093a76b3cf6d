//! Limits the bytes read of an answer. Reading fails at the limit.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

/// Maximum length of an answer's head in bytes, including interim responses (D94).
pub(crate) const MAX_HEAD_SIZE: usize = 16 * 1024;

/// Bytes of a body that are read (D52).
pub(crate) const MAX_BODY: usize = 16 * 1024;
/// Frames of it that are read: chunks of single bytes cost far more than one of all.
pub(crate) const MAX_FRAMES: u32 = 64;

/// Bytes of TLS that carry one exchange, the handshake of a new connection included. Session tickets and records
/// without content are bytes that no limit of HTTP sees.
const MAX_TLS: usize = 256 * 1024;

/// Number of interim responses (1xx) that are skipped (D94).
const MAX_INTERIM_RESPONSES: u32 = 10;

/// The bytes that a connection may still read. The stream counts down, the exchange sets the allowance.
#[derive(Debug, Default)]
pub(crate) struct ReadLimit {
    remaining: AtomicUsize,
    has_read: AtomicBool,
    interim: AtomicU32,
}

impl ReadLimit {
    /// Called before a handshake, and before a request, for the bytes below TLS.
    pub(crate) fn allow_tls(&self) {
        self.remaining.store(MAX_TLS, Relaxed);
    }

    /// Called before a request.
    pub(crate) fn allow_head(&self) {
        self.remaining.store(MAX_HEAD_SIZE, Relaxed);
        self.has_read.store(false, Relaxed);
        self.interim.store(0, Relaxed);
    }

    pub(crate) fn allow_body(&self) {
        self.remaining.store(MAX_BODY, Relaxed);
    }

    /// Once too many interim responses have come, nothing more is read.
    pub(crate) fn count_interim(&self) {
        if self.interim.fetch_add(1, Relaxed) >= MAX_INTERIM_RESPONSES {
            self.remaining.store(0, Relaxed);
        }
    }

    pub(crate) fn has_too_many_interim(&self) -> bool {
        self.interim.load(Relaxed) > MAX_INTERIM_RESPONSES
    }

    /// Whether any byte arrived since the request.
    pub(crate) fn has_read(&self) -> bool {
        self.has_read.load(Relaxed)
    }
}

/// What exceeds a limit, as a failure's reason.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct TooLong(pub(crate) &'static str);

pub(crate) struct LimitedReader<R> {
    pub(crate) reader: R,
    pub(crate) limit: Arc<ReadLimit>,
    pub(crate) beyond: &'static str,
}

impl<R: AsyncRead + Unpin> AsyncRead for LimitedReader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let remaining = self.limit.remaining.load(Relaxed);
        if remaining == 0 {
            return Poll::Ready(Err(io::Error::other(TooLong(self.beyond))));
        }
        let mut part = ReadBuf::new(buf.initialize_unfilled_to(remaining.min(buf.remaining())));
        ready!(Pin::new(&mut self.reader).poll_read(cx, &mut part))?;
        let read = part.filled().len();
        buf.advance(read);
        self.limit.has_read.fetch_or(read > 0, Relaxed);
        let remaining = self.limit.remaining.load(Relaxed);
        self.limit
            .remaining
            .store(remaining.saturating_sub(read), Relaxed);
        Poll::Ready(Ok(()))
    }
}
