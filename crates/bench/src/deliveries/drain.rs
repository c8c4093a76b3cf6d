//! A backlog that is worked off: from the commit of the events to the record of the last answer.

use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

use super::backlog;
use super::site::{Lane, Site};
use crate::counts::Asked;
use crate::cpu;
use crate::figures::real;
use crate::measure::{CpuEach, Spent};
use crate::noise::Stretch;
use crate::options::DeliveriesOptions;
use crate::progress::Progress;
use crate::server::Server;
use crate::tap::Tap;

/// How often it is looked whether all is done.
const POLL: Duration = Duration::from_millis(20);
/// The slowest that is waited for, in deliveries a second.
const SLOWEST: u64 = 50;

/// How a backlog was worked off.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drained {
    /// Deliveries a second.
    pub(super) rate: f64,
    /// CPU microseconds of each process per delivery; the client is the receiver.
    pub(super) cpu: CpuEach,
    /// The share of the machine that other processes took meanwhile.
    pub(super) others: f64,
}

/// Queues so many deliveries to the first lanes and waits until all are recorded.
pub(super) async fn measure(
    site: &Site<'_>,
    server: &Server,
    lanes: u64,
    count: u64,
) -> anyhow::Result<Drained> {
    let lanes = some(site, lanes)?;
    site.sql("vacuum (analyze) deliveries").await?;
    site.sql("vacuum (analyze) subscriptions").await?;
    let (postgres, own) = (site.cluster.server()?, std::process::id());
    let used = || {
        anyhow::Ok([
            cpu::family(postgres)?,
            cpu::process(server.pid)?,
            cpu::process(own)?,
        ])
    };
    let before_all = site.receivers.inbox.received();
    site.sql(&backlog::queue(lanes, count)).await?;
    let (stretch, before) = (Stretch::begin()?, used()?);
    let begun = site.value("select clock_timestamp()").await?;
    work_off(site, before_all + count, count).await?;
    let spent = Spent::between(before, used()?);
    let others = stretch.others(spent.sum())?;
    let seconds = format!("select extract(epoch from max(delivered_at) - '{begun}') from deliveries");
    let seconds: f64 = site.value(&seconds).await?.parse()?;
    server.clear_log()?;
    Ok(Drained {
        rate: real(count) / seconds,
        cpu: spent.each(count),
        others,
    })
}

/// Waits until so many deliveries have arrived in all, and nothing waits any more.
pub(super) async fn work_off(site: &Site<'_>, arrived: u64, count: u64) -> anyhow::Result<()> {
    let end = Instant::now() + Duration::from_secs(10 + count / SLOWEST);
    while site.receivers.inbox.received() < arrived || site.value(backlog::WAITING).await? != "0" {
        ensure!(Instant::now() < end, "deliveries are still waiting");
        tokio::time::sleep(POLL).await;
    }
    Ok(())
}

fn some<'s>(site: &'s Site<'_>, lanes: u64) -> anyhow::Result<&'s [Lane]> {
    let lanes = site.lanes.get(..usize::try_from(lanes)?);
    lanes.context("there are fewer subscriptions")
}

/// What a delivery asks of PostgreSQL, on the wire, with one subscription and with all.
pub(super) async fn counted(
    site: &Site<'_>,
    options: &DeliveriesOptions,
    progress: Progress,
) -> anyhow::Result<[Asked; 2]> {
    let _step = progress.step("counting statements");
    let tap = Tap::open(site.cluster)?;
    let server = site
        .server_at(&site.cluster.url_through(tap.folder(), &site.database))
        .await?;
    let count = options.deliveries;
    let mut asked = Vec::new();
    for lanes in [1, options.subscriptions] {
        // Every connection has its statements prepared after this.
        measure(site, &server, lanes, count / 10).await?;
        tap.take();
        measure(site, &server, lanes, count).await?;
        asked.push(Asked::of_all(&tap.take(), count));
    }
    server.stop().await?;
    <[Asked; 2]>::try_from(asked).map_err(|_| anyhow::anyhow!("not both were counted"))
}
