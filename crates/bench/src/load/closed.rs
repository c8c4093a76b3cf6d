//! The closed loop.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use tokio::task::JoinSet;

use super::Latency;
use crate::http::Connection;
use crate::requests::{Requests, of_connection};

/// What is sent, where, and how.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    /// The server.
    pub(crate) server: SocketAddr,
    /// How many connections send at once.
    pub(crate) connections: usize,
    /// What they send.
    pub(crate) requests: Requests,
    /// The status that every answer has to have.
    pub(crate) expected: u16,
    /// For how long nothing is counted, at first.
    pub(crate) warm_up: Duration,
    /// For how long it is counted then.
    pub(crate) measured: Duration,
}

/// What was counted.
#[derive(Debug)]
pub(crate) struct Interval {
    /// The latencies, one for each request.
    pub(crate) latency: Latency,
    /// For how long.
    pub(crate) elapsed: Duration,
    /// How many requests were made in all, before and after it too.
    pub(crate) requests: u64,
}

/// Applies the load. `begun` is called when counting begins, and `ended` with what it gave when counting ends, for what
/// else is measured over the same time. Any answer with another status than the expected one is an error.
pub(crate) async fn run<B, E>(
    load: &Load,
    begun: impl FnOnce() -> anyhow::Result<B>,
    ended: impl FnOnce(B) -> anyhow::Result<E>,
) -> anyhow::Result<(Interval, E)> {
    let latency = Arc::new(Mutex::new(Latency::new()?));
    let mut connections = Vec::with_capacity(load.connections);
    for _ in 0..load.connections {
        connections.push(Connection::open(load.server).await?);
    }
    let start = Instant::now() + load.warm_up;
    let end = start + load.measured;
    let mut tasks = JoinSet::new();
    for (n, connection) in connections.into_iter().enumerate() {
        let random = fastrand::Rng::with_seed(u64::try_from(n)?);
        let counted = Counted {
            expected: load.expected,
            start,
            end,
            latency: Arc::clone(&latency),
        };
        tasks.spawn(send_all(
            connection,
            of_connection(&load.requests, n),
            random,
            counted,
        ));
    }
    tokio::time::sleep_until(start.into()).await;
    let (began_at, at_begin) = (Instant::now(), begun()?);
    tokio::time::sleep_until(end.into()).await;
    let (elapsed, also) = (began_at.elapsed(), ended(at_begin)?);
    let mut requests = 0;
    while let Some(task) = tasks.join_next().await {
        requests += task.context("a connection's task ended early")??;
    }
    let latency = latency.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Ok((
        Interval {
            latency,
            elapsed,
            requests,
        },
        also,
    ))
}

/// Which answers count, when, and where.
struct Counted {
    expected: u16,
    start: Instant,
    end: Instant,
    latency: Arc<Mutex<Latency>>,
}

async fn send_all(
    mut connection: Connection,
    requests: Requests,
    mut random: fastrand::Rng,
    counted: Counted,
) -> anyhow::Result<u64> {
    let mut request = Vec::new();
    let mut sent = 0;
    let mut sent_at = Instant::now();
    loop {
        requests.write(&mut random, &mut request)?;
        sent += 1;
        let response = connection.exchange(&request).await?;
        if response.status != counted.expected {
            bail!(
                "a request was answered {}: {}",
                response.status,
                response.excerpt()
            );
        }
        let received_at = Instant::now();
        requests.answered(response.body)?;
        if received_at >= counted.end {
            return Ok(sent);
        }
        if received_at >= counted.start {
            let mut latency = counted.latency.lock().unwrap_or_else(PoisonError::into_inner);
            latency.record(received_at - sent_at);
        }
        sent_at = received_at;
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::requests::any_of;

    /// Answers every request on every connection with `answer`, in two pieces.
    async fn serve(listener: TcpListener, answer: &'static [u8]) {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            tokio::spawn(serve_one(stream, answer));
        }
    }

    async fn serve_one(mut stream: TcpStream, answer: &'static [u8]) {
        let mut received = [0; 1024];
        while stream.read(&mut received).await.is_ok_and(|count| count > 0) {
            let (first, rest) = answer.split_at(30);
            stream.write_all(first).await.unwrap();
            stream.flush().await.unwrap();
            tokio::task::yield_now().await;
            stream.write_all(rest).await.unwrap();
        }
    }

    async fn load_on(answer: &'static [u8]) -> anyhow::Result<(Interval, u8)> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let load = Load {
            server: listener.local_addr().unwrap(),
            connections: 3,
            requests: any_of(vec![b"GET / HTTP/1.1\r\n\r\n".to_vec()]),
            expected: 200,
            warm_up: Duration::from_millis(10),
            measured: Duration::from_millis(500),
        };
        tokio::spawn(serve(listener, answer));
        run(&load, || Ok(1), |begun| Ok(begun + 1)).await
    }

    #[tokio::test]
    async fn counts_answers() {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
        let (interval, also) = load_on(answer).await.unwrap();
        assert_eq!(also, 2);
        assert!(interval.latency.count() > 3, "{}", interval.latency.count());
        assert!(interval.elapsed > Duration::ZERO);
    }

    #[tokio::test]
    async fn any_other_status_is_an_error() {
        let answer = b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 4\r\n\r\nslow";
        let error = load_on(answer).await.unwrap_err().to_string();
        assert!(error.contains("429") && error.contains("slow"), "{error}");
    }
}
