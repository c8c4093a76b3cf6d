//! Queues under churn: deliveries are queued, worked off and cleared in waves, and after each it is looked at what has become
//! of the tables and what it costs to claim.

use std::slice;
use std::time::{Duration, Instant};

use super::backlog;
use super::drain::work_off;
use super::site::{Lane, Site};
use crate::connections::raise_file_limit;
use crate::explained::{self, Cost, Execution, Watch};
use crate::figures::real;
use crate::options::{DeliveriesOptions, StorageOptions};
use crate::progress::Progress;
use crate::server::Server;
use crate::stand::Ground;
use crate::tables::{self, Table};
use crate::wal::{self, Place, Sample};

/// Subscriptions, each of another seller.
const SUBSCRIPTIONS: u64 = 200;
/// Deliveries that come alone, one after another, in each round.
const ALONE: usize = 20;
/// Time between waves: the server looks for what to vacuum every second.
const PAUSE: Duration = Duration::from_millis(1_500);
/// Both tables of the queue.
const TABLES: [&str; 2] = ["deliveries", "subscriptions"];
/// What only the statement has that claims lanes.
pub(crate) const CLAIM: &str = "troubled as materialized";

/// Everything that was found.
#[derive(Debug)]
pub(crate) struct Churned {
    /// What a delivery writes ahead that comes alone, and one of many: in each round.
    pub(crate) written: [Vec<Sample>; 2],
    /// Waves under the settings that the product brings.
    pub(crate) vacuumed: Vec<Wave>,
    /// Waves that nothing is vacuumed after.
    pub(crate) left: Vec<Wave>,
    /// What was updated by the former.
    pub(crate) updated: Vec<Table>,
    /// What was executed in the last of those.
    pub(crate) told: Vec<Execution>,
}

/// What there is after a wave.
#[derive(Debug)]
pub(crate) struct Wave {
    /// Deliveries a second.
    pub(crate) rate: f64,
    /// `deliveries` and `subscriptions`.
    pub(crate) tables: [Table; 2],
    /// What a claim cost that gave something out.
    pub(crate) claim: Cost,
}

/// Measures on a database of its own.
pub(crate) async fn measure(
    ground: &Ground,
    options: &StorageOptions,
    progress: Progress,
) -> anyhow::Result<Churned> {
    raise_file_limit(super::FILES)?;
    let of_site = DeliveriesOptions {
        deliveries: options.wave,
        subscriptions: SUBSCRIPTIONS,
        events: 0,
        dead: 0,
        pending: 0,
        stand: options.stand.clone(),
        report: options.report.clone(),
    };
    let site = Site::raise(&ground.cluster, &ground.program, &of_site, progress).await?;
    let written = written(&site, options, progress).await?;
    explained::turn_on(site.cluster, &site.database, 0.5).await?;
    let mut told = Vec::new();
    let vacuumed = waves(&site, options, true, &mut told, progress).await?;
    let updated = tables::updated(site.cluster, &site.database).await?;
    let left = waves(&site, options, false, &mut Vec::new(), progress).await?;
    ground.clear(&site.database).await?;
    Ok(Churned {
        written,
        vacuumed,
        left,
        updated,
        told,
    })
}

/// What deliveries write, from the queueing to the record of the answer, while nothing is vacuumed.
async fn written(
    site: &Site<'_>,
    options: &StorageOptions,
    progress: Progress,
) -> anyhow::Result<[Vec<Sample>; 2]> {
    let step = progress.counted("what a delivery writes", options.report.rounds + 1);
    wal::set_autovacuum(site.cluster, false).await?;
    let server = site.server().await?;
    let (mut alone, mut many) = (Vec::new(), Vec::new());
    for round in 0..=options.report.rounds {
        // The first round prepares statements.
        let counts = round > 0;
        let before = place(site).await?;
        let lanes = site.lanes.iter().take(ALONE);
        let operations = u64::try_from(lanes.len())?;
        for lane in lanes {
            deliver(site, slice::from_ref(lane), 1).await?;
        }
        let written = wal::since(site.cluster, &before).await?;
        alone.extend(counts.then_some(Sample { operations, written }));
        let (before, operations) = (place(site).await?, options.wave / 4);
        deliver(site, &site.lanes, operations).await?;
        let written = wal::since(site.cluster, &before).await?;
        many.extend(counts.then_some(Sample { operations, written }));
        step.advance(1);
    }
    server.stop().await?;
    wal::set_autovacuum(site.cluster, true).await?;
    Ok([alone, many])
}

/// Where the log ends after a checkpoint.
async fn place(site: &Site<'_>) -> anyhow::Result<Place> {
    site.sql("checkpoint").await?;
    wal::place(site.cluster).await
}

/// Queues deliveries to lanes, all of which it wakes, and waits until all are recorded.
async fn deliver(site: &Site<'_>, lanes: &[Lane], count: u64) -> anyhow::Result<Duration> {
    let arrived = site.receivers.inbox.received() + count;
    site.sql(&backlog::queue(lanes, count)).await?;
    let begun = Instant::now();
    work_off(site, arrived, count).await?;
    Ok(begun.elapsed())
}

/// Begins with empty tables. `told` gets what was executed in the last wave.
async fn waves(
    site: &Site<'_>,
    options: &StorageOptions,
    vacuumed: bool,
    told: &mut Vec<Execution>,
    progress: Progress,
) -> anyhow::Result<Vec<Wave>> {
    let title = if vacuumed { "waves" } else { "waves without vacuum" };
    let step = progress.counted(title, options.waves);
    site.sql("truncate deliveries").await?;
    for table in TABLES {
        site.sql(&format!("vacuum (full, analyze) {table}")).await?;
        site.sql(&format!(
            "alter table {table} set (autovacuum_enabled = {vacuumed})"
        ))
        .await?;
    }
    tables::forget(site.cluster, &site.database).await?;
    let mut waves = Vec::new();
    for _ in 0..options.waves {
        // Its connections hand in what they counted when they end.
        let server = site.server().await?;
        let (wave, executions) = wave(site, server, options.wave).await?;
        *told = executions;
        waves.push(wave);
        if vacuumed {
            tokio::time::sleep(PAUSE).await;
        }
        step.advance(1);
    }
    Ok(waves)
}

async fn wave(site: &Site<'_>, server: Server, count: u64) -> anyhow::Result<(Wave, Vec<Execution>)> {
    let watch = Watch::begin(site.cluster)?;
    let elapsed = deliver(site, &site.lanes, count).await?;
    server.stop().await?;
    let told = watch.end()?;
    site.sql(CLEAR).await?;
    let claims = told
        .iter()
        .filter(|one| one.sql.contains(CLAIM) && one.rows > 0.0);
    let wave = Wave {
        rate: real(count) / elapsed.as_secs_f64(),
        tables: [
            tables::one(site.cluster, &site.database, "deliveries").await?,
            tables::one(site.cluster, &site.database, "subscriptions").await?,
        ],
        claim: Cost::of(&claims.collect::<Vec<_>>())?,
    };
    Ok((wave, told))
}

/// Takes away what is done, but for the last hundred of each lane, as the product does with what is old.
const CLEAR: &str = "delete from deliveries d using (\
     select seller_id, subscription_id, id, row_number() over (partition by seller_id, subscription_id order by id desc) as n \
     from deliveries where due_at is null) x \
     where d.seller_id = x.seller_id and d.subscription_id = x.subscription_id and d.id = x.id and x.n > 100";
