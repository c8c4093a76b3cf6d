//! The open loop: requests come when they come, as those of many clients who do not know of each other, and not when the
//! server has answered others.
//!
//! A latency is counted from the instant at which its request was due. What waits because the server is slow, because no
//! connection is free or because this generator is late has waited all the same: nothing is left out that a closed loop
//! would not have sent ("coordinated omission").

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::timer::Timer;
use super::{Latency, Load};
use crate::http::Connection;
use crate::requests::{Requests, of_connection};

/// Connections, so many that requests rarely wait for a free one.
pub(crate) const CONNECTIONS: u16 = 256;
/// How long what was due may take to be answered in the end.
const LAST: Duration = Duration::from_mins(1);

/// What came of it.
#[derive(Debug)]
pub(crate) struct Arrived {
    /// From the instants at which requests were due until they were answered.
    pub(crate) latency: Latency,
    /// Requests a second that were due.
    pub(crate) offered: f64,
    /// The most requests that waited for a free connection at any time.
    pub(crate) waited: usize,
}

/// Sends `rate` requests a second of the load, on average, at random instants (a Poisson process) that `seed` decides. All
/// that became due while it was measured counts, however late it is answered.
pub(crate) async fn run(load: &Load, rate: f64, seed: u64) -> anyhow::Result<Arrived> {
    ensure!(rate.is_finite() && rate > 0.0, "nothing can be sent at {rate}/s");
    let mut connections = Vec::with_capacity(CONNECTIONS.into());
    for _ in 0..CONNECTIONS {
        connections.push(Connection::open(load.server).await?);
    }
    let start = Instant::now() + load.warm_up;
    let line = Arc::new(Line::new(start)?);
    let mut tasks = JoinSet::new();
    for (n, connection) in connections.into_iter().enumerate() {
        let random = fastrand::Rng::with_seed(u64::try_from(n)?);
        let requests = of_connection(&load.requests, n);
        tasks.spawn(answer(
            connection,
            requests,
            random,
            load.expected,
            Arc::clone(&line),
        ));
    }
    let due = tokio::select! {
        due = line_up(&line, rate, seed, start, start + load.measured) => due?,
        failed = tasks.join_next() => {
            failed.context("no connections")?.context("a connection's task ended early")??;
            bail!("a connection ended early");
        }
    };
    line.close();
    let all = async {
        while let Some(task) = tasks.join_next().await {
            task.context("a connection's task ended early")??;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(LAST, all)
        .await
        .context("requests are unanswered a minute after they were due")??;
    let latency = line.latency().clone();
    ensure!(
        latency.count() == due,
        "{} of {due} requests were counted",
        latency.count()
    );
    Ok(Arrived {
        latency,
        offered: crate::figures::real(due) / load.measured.as_secs_f64(),
        waited: line.waiting().most,
    })
}

/// Requests that are due and wait for a free connection, and what came of those that did.
#[derive(Debug)]
struct Line {
    /// What was due before does not count.
    start: Instant,
    free: Semaphore,
    waiting: Mutex<Waiting>,
    latency: Mutex<Latency>,
}

#[derive(Debug, Default)]
struct Waiting {
    due: VecDeque<Instant>,
    most: usize,
}

impl Line {
    fn new(start: Instant) -> anyhow::Result<Self> {
        Ok(Self {
            start,
            free: Semaphore::new(0),
            waiting: Mutex::default(),
            latency: Mutex::new(Latency::new()?),
        })
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn latency(&self) -> MutexGuard<'_, Latency> {
        self.latency.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn join(&self, due: Instant) {
        let mut waiting = self.waiting();
        waiting.due.push_back(due);
        waiting.most = waiting.most.max(waiting.due.len());
        drop(waiting);
        self.free.add_permits(1);
    }

    /// The one that has waited longest; nothing once the line is closed and empty.
    async fn next(&self) -> Option<Instant> {
        if let Ok(permit) = self.free.acquire().await {
            permit.forget();
        }
        self.waiting().due.pop_front()
    }

    fn close(&self) {
        self.free.close();
    }

    fn answered(&self, due: Instant) {
        if due >= self.start {
            self.latency().record(due.elapsed());
        }
    }
}

/// Lets requests become due until `end`; gives how many were from `start` on.
async fn line_up(line: &Line, rate: f64, seed: u64, start: Instant, end: Instant) -> anyhow::Result<u64> {
    let timer = Timer::new()?;
    let mut random = fastrand::Rng::with_seed(seed);
    let (mut due, mut counted) = (Instant::now(), 0);
    loop {
        // The time between two of a Poisson process's events is distributed exponentially.
        due += Duration::from_secs_f64(-(1.0 - random.f64()).ln() / rate);
        if due >= end {
            timer.wait_until(end).await?;
            return Ok(counted);
        }
        timer.wait_until(due).await?;
        line.join(due);
        counted += u64::from(due >= start);
        // What is overdue must not keep connections from sending.
        tokio::task::consume_budget().await;
    }
}

async fn answer(
    mut connection: Connection,
    requests: Requests,
    mut random: fastrand::Rng,
    expected: u16,
    line: Arc<Line>,
) -> anyhow::Result<()> {
    let mut request = Vec::new();
    while let Some(due) = line.next().await {
        requests.write(&mut random, &mut request)?;
        let response = connection.exchange(&request).await?;
        let status = response.status;
        ensure!(
            status == expected,
            "a request was answered {status}: {}",
            response.excerpt()
        );
        line.answered(due);
        requests.answered(response.body)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;
    use crate::requests::{Source, any_of};

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\n\r\n";
    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

    /// Answers at once; but the first request that comes after `until` stops everything for `pause`.
    async fn serve(listener: TcpListener, until: Instant, pause: Duration) {
        let paused = Arc::new(AtomicBool::new(false));
        while let Ok((mut stream, _)) = listener.accept().await {
            let paused = Arc::clone(&paused);
            tokio::spawn(async move {
                let mut received = [0; 1024];
                while stream.read(&mut received).await.is_ok_and(|count| count > 0) {
                    if Instant::now() > until && !paused.swap(true, Ordering::Relaxed) {
                        std::thread::sleep(pause);
                    }
                    stream.write_all(ANSWER).await.unwrap();
                }
            });
        }
    }

    async fn arrivals(pause: Duration) -> Arrived {
        let requests = any_of(vec![REQUEST.to_vec()]);
        arrivals_of(requests, 500.0, pause).await
    }

    async fn arrivals_of(requests: Requests, rate: f64, pause: Duration) -> Arrived {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let load = Load {
            server: listener.local_addr().unwrap(),
            connections: 1,
            requests,
            expected: 200,
            warm_up: Duration::from_millis(20),
            measured: Duration::from_millis(400),
        };
        let until = Instant::now() + Duration::from_millis(100);
        tokio::spawn(serve(listener, until, pause));
        run(&load, rate, 1).await.unwrap()
    }

    #[tokio::test]
    async fn the_rate_is_kept() {
        let arrived = arrivals(Duration::ZERO).await;
        assert!((150..=250).contains(&arrived.latency.count()), "{arrived:?}");
        assert!((arrived.offered / 500.0 - 1.0).abs() < 0.25, "{arrived:?}");
    }

    /// A closed loop would have seen one slow request of two hundred. Here all that became due meanwhile have waited.
    #[tokio::test]
    async fn a_pause_is_seen_by_all_that_were_due_in_it() {
        let arrived = arrivals(Duration::from_millis(200)).await;
        assert!(
            arrived.latency.quantile(0.6) > Duration::from_millis(2),
            "{arrived:?}"
        );
        assert!(
            arrived.latency.quantile(0.9) > Duration::from_millis(80),
            "{arrived:?}"
        );
    }

    /// One connection's chain, in which each request needs the answer of the one before it.
    #[derive(Debug, Default)]
    struct Chain {
        unanswered: AtomicBool,
        sent: AtomicU64,
    }

    impl Source for Chain {
        fn write(&self, _: &mut fastrand::Rng, into: &mut Vec<u8>) -> anyhow::Result<()> {
            ensure!(!self.unanswered.swap(true, Ordering::Relaxed), "sent too early");
            self.sent.fetch_add(1, Ordering::Relaxed);
            *into = REQUEST.to_vec();
            Ok(())
        }

        fn answered(&self, _: &[u8]) -> anyhow::Result<()> {
            self.unanswered.store(false, Ordering::Relaxed);
            Ok(())
        }
    }

    #[derive(Debug)]
    struct Chains(Vec<Arc<Chain>>);

    impl Source for Chains {
        fn write(&self, _: &mut fastrand::Rng, _: &mut Vec<u8>) -> anyhow::Result<()> {
            bail!("a connection has no chain")
        }

        fn of_connection(&self, n: usize) -> Option<Requests> {
            let chain: Requests = self.0.get(n)?.clone();
            Some(chain)
        }
    }

    #[tokio::test]
    async fn every_connection_has_a_chain_and_hears_its_answers() {
        let chains: Vec<Arc<Chain>> = (0..CONNECTIONS).map(|_| Arc::default()).collect();
        // So many that each connection has its turn more than once.
        let arrived = arrivals_of(Arc::new(Chains(chains.clone())), 2_500.0, Duration::ZERO).await;
        let sent: Vec<_> = chains
            .iter()
            .map(|chain| chain.sent.load(Ordering::Relaxed))
            .collect();
        assert!(sent.iter().sum::<u64>() >= arrived.latency.count(), "{sent:?}");
        assert!(sent.iter().any(|sent| *sent > 1), "{sent:?}");
    }
}
