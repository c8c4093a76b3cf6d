//! What a connection's bytes travel by: TCP alone, or TLS over it.

use std::{
    io::{self, ErrorKind, IoSlice},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::stopping::Stopping;

/// An open connection.
pub(super) enum Transport {
    /// As it comes.
    Plain(TcpStream),
    /// After its handshake; apart, since it is ten times as big.
    Tls(Box<TlsStream<TcpStream>>),
    /// None any more: it has gone elsewhere, and what is left has ended.
    Gone,
}

impl Transport {
    /// Shakes hands where the listener speaks TLS, for which a client has so long, and no longer than the program takes
    /// connections. Until then it counts as a connection like all others.
    pub(super) async fn open(
        stream: TcpStream,
        tls: Option<TlsAcceptor>,
        within: Duration,
        stopping: &Arc<Stopping>,
    ) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let Some(tls) = tls else {
            return Ok(Self::Plain(stream));
        };
        // In a place of its own: what a handshake needs is much, and plain connections are to cost nothing for it.
        Box::pin(Self::shake_hands(stream, tls, within, stopping)).await
    }

    async fn shake_hands(
        stream: TcpStream,
        tls: TlsAcceptor,
        within: Duration,
        stopping: &Arc<Stopping>,
    ) -> io::Result<Self> {
        tokio::select! {
            shaken = timeout(within, tls.accept(stream)) => match shaken {
                Ok(stream) => Ok(Self::Tls(Box::new(stream?))),
                Err(_) => Err(io::Error::new(ErrorKind::TimedOut, "the client was too slow to shake hands")),
            },
            () = stopping.ended() => Err(ErrorKind::ConnectionAborted.into()),
        }
    }
}

impl AsyncRead for Transport {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Tls(stream) => match Pin::new(stream).poll_read(cx, buffer) {
                // Many clients close without the word that TLS has for it. HTTP tells the length of what it sends, so nothing
                // is taken for whole that was cut off.
                Poll::Ready(Err(error)) if error.kind() == ErrorKind::UnexpectedEof => Poll::Ready(Ok(())),
                read => read,
            },
            Self::Gone => Poll::Ready(Ok(())),
        }
    }
}

impl AsyncWrite for Transport {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Gone => Poll::Ready(Err(ErrorKind::NotConnected.into())),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, bytes),
            Self::Gone => Poll::Ready(Err(ErrorKind::NotConnected.into())),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Tls(stream) => stream.is_write_vectored(),
            Self::Gone => false,
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
            Self::Gone => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Gone => Poll::Ready(Ok(())),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// An open connection and its client.
    pub(in crate::connections) async fn pair() -> (Transport, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (client, taken) = tokio::join!(TcpStream::connect(address), listener.accept());
        (Transport::Plain(taken.unwrap().0), client.unwrap())
    }
}
