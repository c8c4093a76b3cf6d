//! The load generator: each connection sends its next request after the answer to the last one.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use hdrhistogram::Histogram;
use tokio::task::JoinSet;

use crate::http::Connection;
use crate::scenario::Requests;

/// Time before measurements count.
const WARM_UP: Duration = Duration::from_millis(500);

/// Latencies in microseconds, accurate to 0.1 %.
pub(crate) type Latency = Histogram<u64>;

/// An empty histogram. Latencies above one minute count as one minute.
pub(crate) fn no_latencies() -> anyhow::Result<Latency> {
    Ok(Histogram::new_with_bounds(1, 60_000_000, 3)?)
}

/// The requests and the server they go to.
#[derive(Clone)]
pub(crate) struct Load {
    pub(crate) server: SocketAddr,
    pub(crate) requests: Arc<Requests>,
}

/// Results of a closed loop.
pub(crate) struct Counted<M> {
    pub(crate) latencies: Latency,
    pub(crate) elapsed: Duration,
    /// The meter's readings at the start and the end of the measurement.
    pub(crate) meter: [M; 2],
}

/// Sends each next request as soon as an answer arrives. Reads the meter when counting starts and when it
/// ends.
pub(crate) async fn closed<M>(
    load: &Load,
    connections: u16,
    measured: Duration,
    meter: impl Fn() -> anyhow::Result<M>,
) -> anyhow::Result<Counted<M>> {
    let start = Instant::now() + WARM_UP;
    let end = start + measured;
    let mut tasks = JoinSet::new();
    for n in 0..usize::from(connections) {
        let mut sender = Sender::open(load, n).await?;
        tasks.spawn(async move {
            let mut latencies = no_latencies()?;
            loop {
                let sent_at = Instant::now();
                sender.exchange().await?;
                let received_at = Instant::now();
                if received_at >= end {
                    return anyhow::Ok(latencies);
                }
                if received_at >= start {
                    let latency = received_at - sent_at;
                    latencies.saturating_record(u64::try_from(latency.as_micros())?);
                }
            }
        });
    }
    tokio::time::sleep_until(start.into()).await;
    let (began_at, before) = (Instant::now(), meter()?);
    tokio::time::sleep_until(end.into()).await;
    let (elapsed, after) = (began_at.elapsed(), meter()?);
    Ok(Counted {
        latencies: sum(tasks).await?,
        elapsed,
        meter: [before, after],
    })
}

/// A connection with its requests.
pub(crate) struct Sender {
    connection: Connection,
    n: usize,
    requests: Arc<Requests>,
    random: fastrand::Rng,
    request: Vec<u8>,
}

impl Sender {
    pub(crate) async fn open(load: &Load, n: usize) -> anyhow::Result<Self> {
        Ok(Self {
            connection: Connection::open(load.server).await?,
            n,
            requests: Arc::clone(&load.requests),
            random: fastrand::Rng::new(),
            request: Vec::new(),
        })
    }

    pub(crate) async fn exchange(&mut self) -> anyhow::Result<()> {
        self.requests.write(self.n, &mut self.random, &mut self.request)?;
        let answer = self.connection.exchange(&self.request).await?;
        let body = answer.expect(self.requests.status())?;
        if self.requests.answered(self.n, body, &mut self.request)? {
            self.connection.exchange(&self.request).await?.expect(200)?;
        }
        Ok(())
    }
}

async fn sum(mut tasks: JoinSet<anyhow::Result<Latency>>) -> anyhow::Result<Latency> {
    let mut all = no_latencies()?;
    while let Some(task) = tasks.join_next().await {
        all.add(task.context("a connection's task ended early")??)?;
    }
    Ok(all)
}
