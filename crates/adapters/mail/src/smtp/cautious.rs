//! A connection that will be upgraded by STARTTLS, and lets nothing slip from before the upgrade to behind it.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
};

use lettre::transport::smtp::client::AsyncTokioStream;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};

/// Gives out one byte at a time until TLS begins.
///
/// The SMTP client reads through a buffer that it keeps across the upgrade. Whoever sits on the way could append replies of
/// his own to the server's last plain one; they would wait in that buffer, and later pass for the server's protected replies:
/// a mail would count as accepted that the server never saw. Byte by byte, the buffer is empty when the reply's line ends, and
/// what was appended meets the TLS handshake instead, which fails (the "response injection" behind RFC 3207 §6).
#[derive(Debug)]
pub(super) struct Cautious {
    stream: TcpStream,
    phase: Phase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Plain,
    /// `STARTTLS` was sent. What is written next is the client's part of the handshake.
    Upgrading,
    Tls,
}

impl Cautious {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            phase: Phase::Plain,
        }
    }
}

impl AsyncTokioStream for Cautious {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.stream.peer_addr()
    }
}

impl AsyncRead for Cautious {
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
        let mut byte = [0];
        let mut one = ReadBuf::new(&mut byte);
        let read = Pin::new(&mut self.stream).poll_read(context, &mut one);
        buffer.put_slice(one.filled());
        read
    }
}

impl AsyncWrite for Cautious {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        if let Poll::Ready(Ok(_)) = &written {
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
