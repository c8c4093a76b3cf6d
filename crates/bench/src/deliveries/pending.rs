//! The worker's memory while very many deliveries wait.

use std::time::{Duration, Instant};

use super::backlog;
use super::site::Site;
use crate::figures::real;
use crate::memory::Memory;
use crate::options::DeliveriesOptions;
use crate::progress::Progress;

/// For how long the worker delivers before its memory is read.
const WORKED: Duration = Duration::from_secs(5);
/// Deliveries queued by one statement.
const CHUNK: u64 = 100_000;

/// What was found beside the backlog.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    /// Of a fresh process, with nothing to deliver yet.
    pub(super) before: Memory,
    /// After it has delivered for a while.
    pub(super) after: Memory,
    /// Deliveries a second meanwhile.
    pub(super) rate: f64,
}

/// Reads a fresh process before the deliveries are there and while it works on them.
pub(super) async fn measure(
    site: &Site<'_>,
    options: &DeliveriesOptions,
    progress: Progress,
) -> anyhow::Result<Pending> {
    let server = site.server().await?;
    let before = Memory::of(server.pid)?;
    server.stop().await?;
    let step = progress.counted("queueing deliveries", options.pending);
    let mut left = options.pending;
    while left > 0 {
        let count = left.min(CHUNK);
        site.sql(&backlog::queue(&site.lanes, count)).await?;
        left -= count;
        step.advance(count);
    }
    drop(step);
    site.sql("vacuum (analyze) deliveries").await?;
    let _step = progress.step("delivering beside them");
    let server = site.server().await?;
    let (received, begun) = (site.receivers.inbox.received(), Instant::now());
    tokio::time::sleep(WORKED).await;
    let received = site.receivers.inbox.received() - received;
    let rate = real(received) / begun.elapsed().as_secs_f64();
    let after = Memory::of(server.pid)?;
    server.stop().await?;
    Ok(Pending { before, after, rate })
}
