//! A stream to a server of which every reply is short.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use lettre::transport::smtp::client::AsyncTokioStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The most bytes in one reply. The SMTP client has limits of its own, but looks at them once a line has ended, and reads a
/// reply from its start again at each line.
pub(super) const MAX_REPLY: usize = 4096;

#[derive(Debug)]
pub(super) struct ShortReplies<S> {
    pub(super) stream: S,
    pub(super) peer: SocketAddr,
    /// How many bytes one read returns at most.
    pub(super) at_once: usize,
    /// Bytes read since the last write.
    pub(super) reply: usize,
}

impl<S: AsyncRead + AsyncWrite + Send + Sync + Unpin + std::fmt::Debug> AsyncTokioStream for ShortReplies<S> {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.peer)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ShortReplies<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.reply == MAX_REPLY {
            let text = format!("a reply of the mail server has {MAX_REPLY} bytes and no end");
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, text)));
        }
        let most = buffer.remaining().min(self.at_once).min(MAX_REPLY - self.reply);
        let mut part = ReadBuf::new(buffer.initialize_unfilled_to(most));
        let read = Pin::new(&mut self.stream).poll_read(context, &mut part);
        let length = part.filled().len();
        buffer.advance(length);
        self.reply += length;
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ShortReplies<S> {
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
