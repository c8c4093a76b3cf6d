//! How long events take to their receivers: alone, and beside a subscription whose receiver is dead.

use std::time::{Duration, Instant};

use anyhow::ensure;

use super::backlog;
use super::events::Sources;
use super::site::Site;
use crate::load::Latency;
use crate::options::DeliveriesOptions;
use crate::server::Server;

/// For how long events come before latencies count.
const WARM_UP: Duration = Duration::from_secs(1);
/// How long what was told may be on its way.
const LAST: Duration = Duration::from_secs(10);

/// Latencies while nothing else goes on.
pub(super) async fn quiet(
    site: &Site<'_>,
    server: &Server,
    options: &DeliveriesOptions,
) -> anyhow::Result<Latency> {
    // The server closes connections that nothing came over for a while.
    let sources = Sources::open(site, server).await?;
    sources.flow(site, options.events, WARM_UP).await?;
    let inbox = &site.receivers.inbox;
    let before = settled(site).await?;
    inbox.begin()?;
    let duration = Duration::from_secs(options.stand.seconds);
    sources.flow(site, options.events, duration).await?;
    let after = settled(site).await?;
    let latency = inbox.end()?;
    ensure!(
        latency.count() >= after - before && latency.count() > 0,
        "deliveries were lost"
    );
    Ok(latency)
}

/// The same while many deliveries wait for the dead receiver, from their first attempts on.
pub(super) async fn beside(
    site: &Site<'_>,
    server: &Server,
    options: &DeliveriesOptions,
) -> anyhow::Result<Latency> {
    let dead = std::slice::from_ref(&site.dead);
    site.sql(&backlog::queue(dead, options.dead)).await?;
    let latency = quiet(site, server, options).await;
    let in_hand = format!(
        "select cardinality(in_hand) from subscriptions where id = '{}'",
        site.dead.id
    );
    ensure!(
        site.value(&in_hand).await? != "0",
        "nothing was sent to the dead receiver"
    );
    for sql in backlog::forget(&site.dead) {
        site.sql(&sql).await?;
    }
    site.sql("vacuum (analyze) deliveries").await?;
    latency
}

/// Waits until nothing waits in the living lanes, and gives what has arrived.
async fn settled(site: &Site<'_>) -> anyhow::Result<u64> {
    let end = Instant::now() + LAST;
    let waiting = format!(
        "select count(*) from subscriptions where id <> '{}' and wake_at is not null",
        site.dead.id
    );
    while site.value(&waiting).await? != "0" {
        ensure!(Instant::now() < end, "deliveries are still waiting");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(site.receivers.inbox.received())
}
