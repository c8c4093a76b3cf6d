//! Receivers on this machine: one that answers 204 at many addresses, as many integrators would, and one that is dead.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use chrono::{DateTime, Utc};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::load::Latency;

const ANSWER: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";
/// More header lines than a delivery has.
const MOST_HEADERS: usize = 32;
/// What stands before the instant of an event in a delivery's body (contract: Events).
const INSTANT: &str = r#""occurred_at":""#;

/// What has arrived.
#[derive(Debug)]
pub(super) struct Inbox {
    received: AtomicU64,
    /// From the events' instants to here, while it is to be known.
    latency: Mutex<Option<Latency>>,
}

impl Inbox {
    /// Deliveries so far.
    pub(super) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Begins to measure latencies.
    pub(super) fn begin(&self) -> anyhow::Result<()> {
        self.replace(Some(Latency::new()?));
        Ok(())
    }

    /// Ends that, and gives them.
    pub(super) fn end(&self) -> anyhow::Result<Latency> {
        self.replace(None).context("no latencies were measured")
    }

    fn replace(&self, latency: Option<Latency>) -> Option<Latency> {
        std::mem::replace(
            &mut *self.latency.lock().unwrap_or_else(PoisonError::into_inner),
            latency,
        )
    }

    fn take(&self, body: &[u8]) -> anyhow::Result<()> {
        self.received.fetch_add(1, Ordering::Relaxed);
        if let Some(latency) = &mut *self.latency.lock().unwrap_or_else(PoisonError::into_inner) {
            let taken = (now() - instant(body)?).to_std();
            latency.record(taken.unwrap_or(Duration::ZERO));
        }
        Ok(())
    }
}

/// All of them. They end with the value.
#[derive(Debug)]
pub(super) struct Receivers {
    /// What the answering one has got.
    pub(super) inbox: Arc<Inbox>,
    /// Its addresses: each has an IP address of its own, since the product bounds attempts for each host.
    pub(super) addresses: Vec<SocketAddr>,
    /// Where connections are taken and never answered.
    pub(super) dead: SocketAddr,
    _tasks: JoinSet<()>,
}

impl Receivers {
    /// Listens at so many addresses, at most 250, and at one more.
    pub(super) async fn open(count: u64) -> anyhow::Result<Self> {
        let inbox = Arc::new(Inbox {
            received: AtomicU64::new(0),
            latency: Mutex::new(None),
        });
        let (mut tasks, mut addresses) = (JoinSet::new(), Vec::new());
        for n in 0..count {
            let listener = listen(Ipv4Addr::new(127, 0, 1, u8::try_from(n + 1)?)).await?;
            addresses.push(listener.local_addr()?);
            tasks.spawn(accept(listener, Some(Arc::clone(&inbox))));
        }
        let listener = listen(Ipv4Addr::new(127, 0, 2, 1)).await?;
        let dead = listener.local_addr()?;
        tasks.spawn(accept(listener, None));
        Ok(Self {
            inbox,
            addresses,
            dead,
            _tasks: tasks,
        })
    }
}

async fn listen(address: Ipv4Addr) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind((address, 0)).await;
    listener.with_context(|| format!("{address} is not there to listen on"))
}

async fn accept(listener: TcpListener, inbox: Option<Arc<Inbox>>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        match inbox.clone() {
            Some(inbox) => connections.spawn(answer(stream, inbox)),
            None => connections.spawn(ignore(stream)),
        };
        while connections.try_join_next().is_some() {}
    }
}

/// Reads and says nothing, until the sender gives up.
async fn ignore(mut stream: TcpStream) -> anyhow::Result<()> {
    let mut received = [0; 1024];
    while stream.read(&mut received).await? > 0 {}
    Ok(())
}

async fn answer(mut stream: TcpStream, inbox: Arc<Inbox>) -> anyhow::Result<()> {
    stream.set_nodelay(true)?;
    let mut received = Vec::with_capacity(4 * 1024);
    while stream.read_buf(&mut received).await? > 0 {
        if let Some((head, length)) = whole(&received)? {
            inbox.take(received.get(head..length).unwrap_or_default())?;
            received.drain(..length);
            stream.write_all(ANSWER).await?;
        }
    }
    Ok(())
}

/// Where a request's body begins and where it ends, once all of it is there.
fn whole(received: &[u8]) -> anyhow::Result<Option<(usize, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let parsed = request.parse(received).context("a delivery is not HTTP")?;
    let httparse::Status::Complete(head) = parsed else {
        return Ok(None);
    };
    let mut lengths = request.headers.iter();
    let length = lengths.find(|header| header.name.eq_ignore_ascii_case("content-length"));
    let length = length.and_then(|header| std::str::from_utf8(header.value).ok()?.parse::<usize>().ok());
    let end = head + length.context("a delivery has no Content-Length")?;
    Ok((received.len() >= end).then_some((head, end)))
}

fn instant(body: &[u8]) -> anyhow::Result<DateTime<Utc>> {
    let text = std::str::from_utf8(body)?;
    let instant = text
        .split_once(INSTANT)
        .and_then(|(_, rest)| rest.split_once('"'));
    let (instant, _) = instant.context("a delivery has no instant")?;
    Ok(DateTime::parse_from_rfc3339(instant)?.to_utc())
}

fn now() -> DateTime<Utc> {
    #[expect(
        clippy::disallowed_methods,
        reason = "compared with the instants that a database on the same machine gave"
    )]
    let now = std::time::SystemTime::now();
    now.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str =
        r#"{"id":"x","event":"order.paid","occurred_at":"2026-01-02T03:04:05.000006Z","data":{}}"#;

    fn delivery() -> Vec<u8> {
        let head = format!(
            "POST /h HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n",
            BODY.len()
        );
        [head.as_bytes(), BODY.as_bytes()].concat()
    }

    #[test]
    fn a_delivery_counts_once_it_is_whole() {
        let delivery = delivery();
        let head = delivery.len() - BODY.len();
        assert_eq!(whole(&delivery).unwrap(), Some((head, delivery.len())));
        for cut in [10, head - 1, head, delivery.len() - 1] {
            assert_eq!(whole(&delivery[..cut]).unwrap(), None, "{cut}");
        }
        assert!(whole(b"POST / HTTP/1.1\r\n\r\n").is_err());
    }

    #[test]
    fn an_event_tells_its_instant() {
        let instant = instant(BODY.as_bytes()).unwrap();
        assert_eq!(instant.timestamp_subsec_micros(), 6);
        assert!(super::instant(b"{}").is_err());
    }

    #[tokio::test]
    async fn every_address_answers_and_the_dead_one_does_not() {
        let receivers = Receivers::open(2).await.unwrap();
        receivers.inbox.begin().unwrap();
        for address in &receivers.addresses {
            let mut stream = TcpStream::connect(address).await.unwrap();
            for _ in 0..2 {
                stream.write_all(&delivery()).await.unwrap();
                let mut answer = vec![0; ANSWER.len()];
                stream.read_exact(&mut answer).await.unwrap();
                assert_eq!(answer, ANSWER);
            }
        }
        assert_eq!(receivers.inbox.received(), 4);
        assert_eq!(receivers.inbox.end().unwrap().count(), 4);
        let mut stream = TcpStream::connect(receivers.dead).await.unwrap();
        stream.write_all(&delivery()).await.unwrap();
        stream.shutdown().await.unwrap();
        assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0);
        assert_eq!(receivers.inbox.received(), 4);
    }
}
