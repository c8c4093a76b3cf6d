//! How much a receiver may say: what is read of it is counted, and the reading fails where the allowance ends.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The longest head of an answer in bytes, interim answers included (D94).
pub(crate) const HEAD_MAX: usize = 16 * 1024;

/// How much of an answer's body is read, in bytes, beyond what came along with the head (D52).
pub(crate) const BODY_MAX: usize = 16 * 1024;

/// How many interim answers (1xx) are skipped (D94).
pub(crate) const INTERIM_MAX: u32 = 10;

/// What one connection may still read. Shared by the stream, which counts, and the exchange, which allows.
#[derive(Debug, Default)]
pub(crate) struct Allowance {
    left: AtomicUsize,
    heard: AtomicBool,
    interim: AtomicU32,
}

impl Allowance {
    /// Before a request: a head may be read.
    pub(crate) fn await_head(&self) {
        self.left.store(HEAD_MAX, Relaxed);
        self.heard.store(false, Relaxed);
        self.interim.store(0, Relaxed);
    }

    /// After the head: some of the body may be read.
    pub(crate) fn await_body(&self) {
        self.left.store(BODY_MAX, Relaxed);
    }

    /// Counts an interim answer. One too many, and nothing more is read.
    pub(crate) fn skip_interim(&self) {
        if self.interim.fetch_add(1, Relaxed) >= INTERIM_MAX {
            self.left.store(0, Relaxed);
        }
    }

    /// True when more interim answers came than are skipped.
    pub(crate) fn too_many_interim(&self) -> bool {
        self.interim.load(Relaxed) > INTERIM_MAX
    }

    /// True when any byte was read since the request.
    pub(crate) fn heard(&self) -> bool {
        self.heard.load(Relaxed)
    }

    fn count(&self, bytes: usize) {
        self.heard.fetch_or(bytes > 0, Relaxed);
        self.left
            .store(self.left.load(Relaxed).saturating_sub(bytes), Relaxed);
    }
}

/// The receiver said more than is read.
#[derive(Debug, thiserror::Error)]
#[error("the answer is longer than what is read of it")]
pub(crate) struct TooLong;

/// A stream that reads no more than allowed.
pub(crate) struct Counted<S> {
    stream: S,
    allowance: Arc<Allowance>,
}

impl<S> Counted<S> {
    pub(crate) fn new(stream: S, allowance: Arc<Allowance>) -> Self {
        Self { stream, allowance }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let left = self.allowance.left.load(Relaxed);
        if left == 0 {
            return Poll::Ready(Err(io::Error::other(TooLong)));
        }
        let before = buf.filled().len();
        if buf.remaining() <= left {
            ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        } else {
            let mut part = ReadBuf::new(buf.initialize_unfilled_to(left));
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut part))?;
            let read = part.filled().len();
            buf.advance(read);
        }
        self.allowance.count(buf.filled().len() - before);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, repeat};

    use super::*;

    #[tokio::test]
    async fn exactly_what_is_allowed_is_read() {
        let allowance = Arc::new(Allowance::default());
        let mut stream = Counted::new(repeat(b'x'), Arc::clone(&allowance));
        assert!(stream.read_u8().await.is_err());
        allowance.await_head();
        assert!(!allowance.heard());
        let mut read = Vec::new();
        let refused = stream.read_to_end(&mut read).await.unwrap_err();
        assert!(refused.get_ref().unwrap().is::<TooLong>());
        assert_eq!((read.len(), allowance.heard()), (HEAD_MAX, true));
    }

    #[test]
    fn the_eleventh_interim_answer_ends_the_reading() {
        let allowance = Allowance::default();
        allowance.await_head();
        for _ in 0..INTERIM_MAX {
            allowance.skip_interim();
        }
        assert!(!allowance.too_many_interim() && allowance.left.load(Relaxed) == HEAD_MAX);
        allowance.skip_interim();
        assert!(allowance.too_many_interim() && allowance.left.load(Relaxed) == 0);
    }
}
