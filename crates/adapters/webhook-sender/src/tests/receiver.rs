//! Scripted receivers on loopback addresses.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::AbortHandle,
};

pub(super) const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// A listener that counts its connections.
pub(super) struct Receiver {
    pub address: SocketAddr,
    taken: Arc<AtomicUsize>,
    task: AbortHandle,
}

impl Receiver {
    /// `behave` handles each connection; its argument is the connection's number, from 0.
    pub(super) async fn start<B, F>(behave: B) -> Self
    where
        B: Fn(TcpStream, usize) -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        Self::at((Ipv4Addr::LOCALHOST, 0).into(), behave).await
    }

    pub(super) async fn at<B, F>(address: SocketAddr, behave: B) -> Self
    where
        B: Fn(TcpStream, usize) -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let taken = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&taken);
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(behave(stream, counted.fetch_add(1, SeqCst)));
            }
        });
        Self {
            address,
            taken,
            task: task.abort_handle(),
        }
    }

    /// Sends the same answer to every request.
    pub(super) async fn answering(answer: &'static [u8]) -> Self {
        Self::start(move |stream, _| serve(stream, answer)).await
    }

    /// Reads one request, sends these bytes, and then neither reads, writes nor closes.
    pub(super) async fn stalling_after(answer: impl Into<Arc<[u8]>>) -> Self {
        let answer = answer.into();
        Self::start(move |mut stream, _| {
            let answer = Arc::clone(&answer);
            async move {
                read_request(&mut stream).await;
                let _ = stream.write_all(&answer).await;
                std::future::pending::<()>().await;
            }
        })
        .await
    }

    pub(super) fn taken(&self) -> usize {
        self.taken.load(SeqCst)
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Answers request after request until the other side closes.
pub(super) async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, answer: &[u8]) {
    while read_request(&mut stream).await.is_some() {
        if stream.write_all(answer).await.is_err() {
            return;
        }
    }
}

/// Reads one request, head and body. None once the connection is closed.
pub(super) async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> Option<Vec<u8>> {
    let mut request = Vec::new();
    loop {
        if let Some(head) = request.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            let body = length(std::str::from_utf8(&request[..head]).unwrap());
            if request.len() >= head + 4 + body {
                return Some(request);
            }
        }
        if stream.read_buf(&mut request).await.ok()? == 0 {
            return None;
        }
    }
}

fn length(head: &str) -> usize {
    let line = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    line.unwrap().parse().unwrap()
}
