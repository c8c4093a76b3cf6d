//! A stream to a server that is not authenticated: it keeps plaintext out of the TLS session, and replies short.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use lettre::transport::smtp::client::AsyncTokioStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// The most bytes of plaintext in one reply. The SMTP client has limits of its own, but looks at them once a line has
/// ended, and reads a reply from its start again at each line.
const MAX_REPLY: usize = 4096;

/// Returns one byte per read until TLS begins, if it does.
///
/// The SMTP client's read buffer survives the upgrade to TLS. A man in the middle could append replies to the
/// server's last plaintext reply; the client would later read them from the buffer as TLS-protected, and take
/// a mail for accepted that the server never got. With one byte per read, the buffer is empty at the end of
/// the reply's line. Appended bytes then reach the TLS handshake, which fails ("response injection", see RFC
/// 3207 §6).
#[derive(Debug)]
pub(super) struct StartTlsGuard {
    stream: TcpStream,
    phase: Phase,
    /// Bytes read since the last write.
    reply: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Plain,
    /// `STARTTLS` was sent. The next write begins the handshake.
    Upgrading,
    Tls,
}

impl StartTlsGuard {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            phase: Phase::Plain,
            reply: 0,
        }
    }
}

impl AsyncTokioStream for StartTlsGuard {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.stream.peer_addr()
    }
}

impl AsyncRead for StartTlsGuard {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.phase == Phase::Tls {
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        if buffer.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        if self.reply == MAX_REPLY {
            let text = format!("a reply of the mail server has {MAX_REPLY} bytes and no end");
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, text)));
        }
        let mut byte = [0];
        let mut one = ReadBuf::new(&mut byte);
        let read = Pin::new(&mut self.stream).poll_read(context, &mut one);
        self.reply += one.filled().len();
        buffer.put_slice(one.filled());
        read
    }
}

impl AsyncWrite for StartTlsGuard {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        if let Poll::Ready(Ok(_)) = &written {
            self.reply = 0;
            self.phase = match self.phase {
                Phase::Plain if bytes.starts_with(b"STARTTLS") => Phase::Upgrading,
                Phase::Plain => Phase::Plain,
                Phase::Upgrading | Phase::Tls => Phase::Tls,
            };
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
