//! A stream that fails at a reply that is too long.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use lettre::transport::smtp::client::AsyncTokioStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How much of a reply is read. The SMTP client has limits of its own, but checks them only at the end of a line, and
/// parses the whole reply again at each.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    max_reply: usize,
    /// How many bytes one read returns at most.
    max_read: usize,
}

/// Without TLS anybody may answer. One byte at a time: nothing beyond a reply is read with it.
pub(super) const PLAIN: Limits = Limits {
    max_reply: 4 * 1024,
    max_read: 1,
};

pub(super) const WITHIN_TLS: Limits = Limits {
    max_reply: 16 * 1024,
    max_read: usize::MAX,
};

#[derive(Debug)]
pub(super) struct ReplyLimit<S> {
    pub(super) stream: S,
    pub(super) peer: SocketAddr,
    pub(super) limits: Limits,
    /// Bytes read since the last write.
    pub(super) reply: usize,
}

impl<S: AsyncRead + AsyncWrite + Send + Sync + Unpin + std::fmt::Debug> AsyncTokioStream for ReplyLimit<S> {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.peer)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ReplyLimit<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Limits { max_reply, max_read } = self.limits;
        if self.reply == max_reply {
            let text = format!("a reply of the mail server has more than {max_reply} bytes");
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, text)));
        }
        let most = buffer.remaining().min(max_read).min(max_reply - self.reply);
        let mut part = ReadBuf::new(buffer.initialize_unfilled_to(most));
        let read = Pin::new(&mut self.stream).poll_read(context, &mut part);
        let length = part.filled().len();
        buffer.advance(length);
        self.reply += length;
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ReplyLimit<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.reply = 0;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
