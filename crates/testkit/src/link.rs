//! The network between a program and a proxy: latency, bandwidth, and an outage during which bytes wait.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

/// Bytes buffered in one direction of a connection. A sender waits when the buffer is full.
const BUFFER: usize = 1 << 20;

/// Latency and bandwidth of each direction.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pace {
    /// Latency of all bytes.
    pub delay: Duration,
    /// Additional random latency, at most this.
    pub jitter: Duration,
    /// Bytes a second on each connection; `None` for no limit.
    pub bandwidth: Option<u32>,
}

/// State shared by all connections.
#[derive(Debug, Clone, Default)]
pub(crate) struct LinkState {
    pub(crate) blocked: Arc<watch::Sender<bool>>,
    pub(crate) pace: Arc<watch::Sender<Pace>>,
}

impl LinkState {
    /// The proxy's end of a client's connection.
    pub(crate) fn connect(&self, client: UnixStream) -> DuplexStream {
        let (near, far) = tokio::io::duplex(BUFFER);
        let ((from_client, to_client), (from_proxy, to_proxy)) = (client.into_split(), tokio::io::split(far));
        tokio::spawn(self.clone().copy(from_client, to_proxy));
        tokio::spawn(self.clone().copy(from_proxy, to_client));
        near
    }

    /// Copies bytes, each after its delay and in order, until either side closes.
    async fn copy(self, mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) {
        let (sent, mut arriving) = mpsc::unbounded_channel();
        let pace = self.pace;
        let read = async move {
            let (mut free, mut bytes) = (Instant::now(), Vec::new());
            while matches!(from.read_buf(&mut bytes).await, Ok(1..)) {
                let pace = *pace.borrow();
                let chance = RandomState::new().build_hasher().finish() % 1_000;
                let late = pace
                    .jitter
                    .mul_f64(f64::from(u32::try_from(chance).unwrap_or(0)) / 1_000.0);
                let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
                let passing = pace
                    .bandwidth
                    .map_or(Duration::ZERO, |most| Duration::from_secs(1) * length / most);
                free = free.max(Instant::now()) + passing;
                let due = free + pace.delay + late;
                if sent.send((due, std::mem::take(&mut bytes))).is_err() {
                    return;
                }
            }
        };
        let write = async move {
            let mut blocked = self.blocked.subscribe();
            while let Some((due, bytes)) = arriving.recv().await {
                // A timer that is due already would take a millisecond.
                if due > Instant::now() {
                    sleep_until(due).await;
                }
                let unblocked = blocked.wait_for(|blocked| !blocked).await.is_ok();
                if !unblocked || to.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            // The other side may have closed its connection already.
            drop(to.shutdown().await);
        };
        tokio::join!(read, write);
    }
}
