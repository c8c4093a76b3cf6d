//! Load generators. In the closed loop, a connection sends its next request after the answer. In the open
//! loop, requests arrive at random, whether or not earlier ones have been answered.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use hdrhistogram::Histogram;
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;

use crate::http::Connection;
use crate::scenario::Requests;

/// Connections of the open loop: enough that requests rarely wait for a free one.
pub(crate) const OPEN_CONNECTIONS: u16 = 256;
/// Time before measurements count.
const WARM_UP: Duration = Duration::from_millis(500);
/// How long the answers to overdue requests may take.
const OVERDUE: Duration = Duration::from_mins(1);

/// Latencies in microseconds, accurate to 0.1 %.
pub(crate) type Latency = Histogram<u64>;

/// An empty histogram. Latencies above one minute count as one minute.
pub(crate) fn no_latencies() -> anyhow::Result<Latency> {
    Ok(Histogram::new_with_bounds(1, 60_000_000, 3)?)
}

/// Adds one latency.
pub(crate) fn record(latencies: &mut Latency, latency: Duration) {
    latencies.saturating_record(u64::try_from(latency.as_micros()).unwrap_or(u64::MAX));
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
                    record(&mut latencies, received_at - sent_at);
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

/// Sends `rate` requests a second on average, at instants of a Poisson process.
///
/// A latency starts when the request is due, so it includes the wait for a stalled server, for a free
/// connection or for a late generator. This avoids "coordinated omission".
pub(crate) async fn open(load: &Load, rate: f64, measured: Duration) -> anyhow::Result<Latency> {
    ensure!(rate.is_finite() && rate > 0.0, "nothing can be sent at {rate}/s");
    let mut senders = Vec::new();
    for n in 0..OPEN_CONNECTIONS {
        senders.push(Sender::open(load, n.into()).await?);
    }
    let (due, queue) = mpsc::unbounded_channel::<Instant>();
    let queue = Arc::new(Mutex::new(queue));
    let start = Instant::now() + WARM_UP;
    let mut tasks = JoinSet::new();
    for mut sender in senders {
        let queue = Arc::clone(&queue);
        tasks.spawn(async move {
            let mut latencies = no_latencies()?;
            loop {
                let next = queue.lock().await.recv().await;
                let Some(due_at) = next else {
                    return anyhow::Ok(latencies);
                };
                sender.exchange().await?;
                if due_at >= start {
                    record(&mut latencies, due_at.elapsed());
                }
            }
        });
    }
    // A separate thread, since the runtime's timers have a resolution of one millisecond.
    std::thread::spawn(move || arrive(rate, start + measured, &due));
    let all = tokio::time::timeout(WARM_UP + measured + OVERDUE, sum(tasks));
    all.await
        .context("requests are unanswered a minute after they were due")?
}

fn arrive(rate: f64, end: Instant, due: &mpsc::UnboundedSender<Instant>) {
    let mut random = fastrand::Rng::new();
    let mut next = Instant::now();
    loop {
        // Intervals of a Poisson process are distributed exponentially.
        next += Duration::from_secs_f64(-(1.0 - random.f64()).ln() / rate);
        if next >= end {
            return;
        }
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        if due.send(next).is_err() {
            return;
        }
    }
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
