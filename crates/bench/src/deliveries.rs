//! Webhook deliveries: local receivers, subscriptions to them, and a backlog that is worked off.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::cluster::Cluster;
use crate::http::{Connection, Head, compose};
use crate::seed::Seed;

const ANSWER: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";
const EVENT: &str = "order.created";
/// Interval between checks whether a backlog is done.
const POLL: Duration = Duration::from_millis(20);
/// Minimum rate in deliveries a second. A slower worker counts as failed.
const SLOWEST: u64 = 50;

/// Receivers that answer 204. Each has a separate IP address, since the product limits concurrent attempts
/// per host. Dropping the value stops them.
pub(crate) struct Receivers {
    received: Arc<AtomicU64>,
    addresses: Vec<SocketAddr>,
    _tasks: JoinSet<()>,
}

impl Receivers {
    /// Starts a receiver for each subscriber and creates the subscriptions through the API.
    pub(crate) async fn subscribe(seed: &Seed, server: SocketAddr) -> anyhow::Result<Self> {
        let receivers = Self::open(seed.catalogue.subscriptions()).await?;
        let mut connection = Connection::open(server).await?;
        let mut request = Vec::new();
        for (token, address) in seed.tokens.iter().skip(1).zip(&receivers.addresses) {
            let body = format!(r#"{{"url":"http://{address}/hooks","events":["{EVENT}"]}}"#);
            let head = format_args!(
                "POST /v1/webhooks HTTP/1.1\r\nAuthorization: Bearer {token}\r\nIdempotency-Key: bench-subscription\r\n\
                 Content-Type: application/json"
            );
            compose(&mut request, head, &body)?;
            connection.exchange(&request).await?.expect(201)?;
        }
        Ok(receivers)
    }

    async fn open(count: u64) -> anyhow::Result<Self> {
        let (received, mut addresses, mut tasks) = (Arc::default(), Vec::new(), JoinSet::new());
        for n in 1..=count {
            let address = Ipv4Addr::new(127, 0, 1, u8::try_from(n)?);
            let listener = TcpListener::bind((address, 0)).await?;
            addresses.push(listener.local_addr()?);
            tasks.spawn(accept(listener, Arc::clone(&received)));
        }
        Ok(Self {
            received,
            addresses,
            _tasks: tasks,
        })
    }

    fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }
}

async fn accept(listener: TcpListener, received: Arc<AtomicU64>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(answer(stream, Arc::clone(&received)));
        while connections.try_join_next().is_some() {}
    }
}

async fn answer(mut stream: TcpStream, received: Arc<AtomicU64>) -> anyhow::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::with_capacity(4 * 1024);
    while stream.read_buf(&mut buffer).await? > 0 {
        if let Some(head) = Head::of_request(&buffer)?
            && buffer.len() >= head.end
        {
            buffer.drain(..head.end);
            received.fetch_add(1, Ordering::Relaxed);
            stream.write_all(ANSWER).await?;
        }
    }
    Ok(())
}

/// SQL that makes `count` deliveries due at once, spread evenly over all subscriptions, and wakes the
/// subscriptions, as one transaction's events do.
fn backlog(count: u64) -> String {
    format!(
        "begin; \
         insert into deliveries (seller_id, subscription_id, id, created_at, due_at, event, body) \
         select s.seller_id, s.id, e.id, e.at, e.at, '{EVENT}', convert_to(json_build_object('id', e.id, 'event', '{EVENT}', \
           'occurred_at', e.at, 'data', json_build_object('order_id', s.id, 'order_number', 'BENCH-' || e.n))::text, 'UTF8') \
         from (select n, at, api_uuid(at) as id from (select n, api_now() - ({count} - n) * interval '200 microseconds' as at \
           from generate_series(1, {count}) n offset 0) instants offset 0) e \
         join (select seller_id, id, row_number() over (order by seller_id) - 1 as n, count(*) over () as count \
           from subscriptions) s on s.n = e.n % s.count order by e.n; \
         update subscriptions set wake_at = api_now(); \
         commit"
    )
}

/// Deletes all deliveries.
pub(crate) async fn clear(cluster: &Cluster, database: &str) -> anyhow::Result<()> {
    for statement in [
        "truncate deliveries",
        "update subscriptions set leased = false, fence = null, in_hand = '{}', wake_at = null, failing = false",
        "vacuum (analyze) subscriptions",
    ] {
        cluster.sql(database, statement).await?;
    }
    Ok(())
}

/// Waits until a running worker has recorded the results of a backlog of `count`, and returns its rate a
/// second: from the backlog's commit to the last recorded answer, by the database's clock. Reads the meter at
/// both ends.
pub(crate) async fn drain<M>(
    cluster: &Cluster,
    database: &str,
    receivers: &Receivers,
    count: u64,
    meter: impl Fn() -> anyhow::Result<M>,
) -> anyhow::Result<(f64, [M; 2])> {
    let arrived = receivers.received() + count;
    cluster.sql(database, &backlog(count)).await?;
    let before = meter()?;
    let begun = cluster.value(database, "select api_now()").await?;
    let give_up = Instant::now() + Duration::from_secs(10 + count / SLOWEST);
    let waiting = "select count(*) from deliveries where due_at is not null";
    while receivers.received() < arrived || cluster.value(database, waiting).await? != "0" {
        ensure!(Instant::now() < give_up, "deliveries are still waiting");
        tokio::time::sleep(POLL).await;
    }
    let after = meter()?;
    let rate = format!("select {count} / extract(epoch from max(delivered_at) - '{begun}') from deliveries");
    let rate = cluster.value(database, &rate).await?;
    Ok((rate.parse().context("nothing was delivered")?, [before, after]))
}
