//! `/metrics`: the table of metrics, the recorder, and the gauges: the pool's are read at each scrape, the
//! database's every ten seconds.

mod table;

use std::sync::atomic::Ordering;
use std::time::Duration;

use adapter_postgres::{Database, Identity, Queues, Workers};
use adapter_sealing::SystemClock;
use anyhow::Context as _;
use chrono::TimeDelta;
use kernel::{Clock as _, error_chain};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use metrics_process::Collector;
use orders::Carrier;
use rlimit::{INFINITY, Resource};
use tokio::time::sleep;

use crate::{logging, readiness::Readiness};

pub use self::table::{Kind, Label, Metric, page, table};

impl Metric {
    fn describe(&self) {
        match self.kind {
            Kind::Counter => metrics::describe_counter!(self.name, self.help),
            Kind::Gauge => metrics::describe_gauge!(self.name, self.help),
            Kind::Histogram => metrics::describe_histogram!(self.name, self.help),
        }
    }

    /// Starts a counter at 0 for every combination of its labels: if a series begins with its first event,
    /// Prometheus sees no increase.
    fn start_at_zero(&self) {
        if self.kind == Kind::Counter && !self.name.starts_with("process_") {
            for labels in self.label_sets() {
                metrics::counter!(self.name, labels).increment(0);
            }
        }
    }

    /// Every combination of label values; empty if a label's values are not listed.
    fn label_sets(&self) -> Vec<Vec<metrics::Label>> {
        self.labels.iter().fold(vec![Vec::new()], |sets, label| {
            let with = |set: &Vec<_>, value| {
                let label = metrics::Label::from_static_parts(label.name, value);
                set.iter().cloned().chain([label]).collect()
            };
            let values = label.values.into_iter().flatten();
            values
                .flat_map(|value| sets.iter().map(move |set| with(set, value)))
                .collect()
        })
    }
}

/// How often histogram samples are aggregated. Otherwise they accumulate between scrapes.
const UPKEEP: Duration = Duration::from_secs(5);
/// Histogram buckets, in seconds.
const BUCKETS: [f64; 12] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 3.0,
];
/// Buckets for webhooks, whose receivers are slower.
const WEBHOOK_BUCKETS: [f64; 12] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 3.0, 10.0, 30.0, 120.0,
];
const BATCH_SIZE_BUCKETS: [f64; 8] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];

/// The recorder of this process. Clones share it.
#[derive(Clone)]
pub(crate) struct Metrics {
    recorder: PrometheusHandle,
    process: Collector,
}

impl Metrics {
    /// Installs the recorder. Metrics that are registered earlier are lost.
    pub(crate) fn install() -> anyhow::Result<Self> {
        let webhooks = Matcher::Prefix("webhook_".to_owned());
        let sizes = Matcher::Suffix("_size".to_owned());
        let recorder = PrometheusBuilder::new()
            .set_buckets(&BUCKETS)?
            .set_buckets_for_metric(webhooks, &WEBHOOK_BUCKETS)?
            .set_buckets_for_metric(sizes, &BATCH_SIZE_BUCKETS)?
            .install_recorder()
            .context("the recorder of metrics")?;
        for metric in table() {
            metric.describe();
            metric.start_at_zero();
        }
        metrics::gauge!("database_oldest_snapshot_seconds").set(f64::NAN);
        metrics::gauge!("database_clock_difference_seconds").set(f64::NAN);
        metrics::gauge!("sealing_keys_missing").set(f64::NAN);
        metrics::gauge!("build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
        Ok(Self {
            recorder,
            process: Collector::default(),
        })
    }

    /// All metrics in the Prometheus text format, with those of the database's pool.
    pub(crate) fn render(&self, database: &Database) -> String {
        self.process.collect();
        // The collector reports a missing limit as 0.
        if Resource::AS.get_soft().is_ok_and(|most| most == INFINITY) {
            metrics::gauge!("process_virtual_memory_max_bytes").set(f64::INFINITY);
        }
        measure_pool(database);
        logging::count_lost();
        self.recorder.render()
    }

    /// Aggregates histogram samples periodically, so that their memory stays bounded. Never ends.
    pub(crate) async fn run_upkeep_loop(self) {
        loop {
            sleep(UPKEEP).await;
            self.recorder.run_upkeep();
        }
    }
}

fn number(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::INFINITY, f64::from)
}

fn measure_pool(database: &Database) {
    let pool = database.pool_state();
    // Also those that are being opened for a caller.
    let in_use = pool.size.saturating_sub(pool.available);
    metrics::gauge!("database_pool_connections_max").set(number(pool.max_size));
    metrics::gauge!("database_pool_connections", "state" => "in_use").set(number(in_use));
    metrics::gauge!("database_pool_connections", "state" => "idle").set(number(pool.available));
    metrics::gauge!("database_pool_waiting").set(number(pool.waiting));
}

/// Sets the `ready` gauge.
pub(crate) fn set_ready(ready: bool) {
    metrics::gauge!("ready").set(if ready { 1.0 } else { 0.0 });
}

/// Shows which database the process works on, if any, in place of the one before.
pub(crate) fn set_database(before: Option<&Identity>, now: Option<&Identity>) {
    for (identity, shown) in [(before, 0.0), (now, 1.0)] {
        if let Some(identity) = identity {
            let (id, timeline) = (identity.here.clone(), identity.timeline().to_owned());
            metrics::gauge!("database_info", "id" => id, "timeline" => timeline).set(shown);
        }
    }
}

/// Sets the number of keys that stored values need and that are not configured, or differ from the one with
/// their id.
pub(crate) fn set_missing_keys(missing: usize) {
    metrics::gauge!("sealing_keys_missing").set(number(missing));
}

/// Sets the role of the process: `serve`, `worker`, or `both`.
pub(crate) fn set_role(role: &'static str) {
    metrics::gauge!("process_role", "role" => role).set(1.0);
}

/// How often the database is measured.
const MEASURE_INTERVAL: Duration = Duration::from_secs(10);
/// The log warns if the clocks differ by more.
const CLOCK_TOLERANCE: TimeDelta = TimeDelta::seconds(5);

/// Measures the queues of background work, the oldest snapshot, the clocks and Citus's workers, once the schema fits;
/// never ends. Every process does so, even without workers, so that missing workers show. What cannot be read is NaN.
pub(crate) async fn measure_database(database: Database, readiness: Readiness) {
    readiness.wait_until_ready().await;
    let is_ready = readiness.ready_flag();
    let (mut clock_differs, mut queues_unreadable, mut sees_all) = (false, false, true);
    loop {
        let queues = database.queues().await;
        match &queues {
            // Not in an outage that readiness has seen, and logs.
            Err(error) if !queues_unreadable && is_ready.load(Ordering::Relaxed) => {
                queues_unreadable = true;
                tracing::warn!(cause = error_chain(error), "the queues cannot be measured");
            }
            queues => queues_unreadable &= queues.is_err(),
        }
        set_queues(queues.ok().as_ref());
        let oldest = database.oldest_snapshot().await;
        if matches!(oldest, Ok(None)) && sees_all {
            sees_all = false;
            tracing::warn!(
                "long transactions of other roles are not seen: grant pg_read_all_stats to this role"
            );
        }
        let oldest = oldest.ok().flatten();
        metrics::gauge!("database_oldest_snapshot_seconds").set(oldest.unwrap_or(f64::NAN));
        let difference = clock_difference(&database).await;
        let seconds = difference.map_or(f64::NAN, TimeDelta::as_seconds_f64);
        metrics::gauge!("database_clock_difference_seconds").set(seconds);
        let difference = difference.unwrap_or_default();
        if difference.abs() <= CLOCK_TOLERANCE {
            clock_differs = false;
        } else if !clock_differs {
            clock_differs = true;
            tracing::warn!(
                seconds,
                "the database's clock differs from this machine's: keep both by NTP"
            );
        }
        if let Some(workers) = database.workers().await.transpose() {
            let workers = workers.ok();
            let number =
                |of: fn(&Workers) -> i32| workers.as_ref().map_or(f64::NAN, |workers| of(workers).into());
            metrics::gauge!("database_workers_unreachable").set(number(|workers| workers.unreachable));
            metrics::gauge!("database_transactions_in_doubt").set(number(|workers| workers.in_doubt));
        }
        sleep(MEASURE_INTERVAL).await;
    }
}

/// The database's clock minus this machine's. Zero while the database's time lies between the beginning and
/// the end of the look at it, which may wait for a connection.
async fn clock_difference(database: &Database) -> Option<TimeDelta> {
    let beginning = SystemClock.now();
    let now = database.now().await.ok()??;
    Some((now - beginning).min(TimeDelta::zero()) + (now - SystemClock.now()).max(TimeDelta::zero()))
}

fn set_queues(queues: Option<&Queues>) {
    let numbers = |queue: &str| {
        let backlog = queues.and_then(|queues| queues.of(queue));
        backlog.map_or((f64::NAN, f64::NAN), |backlog| {
            (backlog.waiting.into(), backlog.overdue)
        })
    };
    for attempt in ["first", "repeated"] {
        let (length, overdue) = numbers(attempt);
        metrics::gauge!("webhook_queue_deliveries", "attempt" => attempt).set(length);
        metrics::gauge!("webhook_queue_oldest_due_seconds", "attempt" => attempt).set(overdue);
    }
    for (about, queue) in [("shipment", "shipment_mails"), ("account", "account_mails")] {
        let (length, overdue) = numbers(queue);
        metrics::gauge!("mail_queue_mails", "about" => about).set(length);
        metrics::gauge!("mail_queue_oldest_due_seconds", "about" => about).set(overdue);
    }
    let carriers = Carrier::ALL.into_iter();
    for carrier in carriers.filter(|carrier| *carrier != Carrier::Other) {
        let (length, overdue) = numbers(carrier.as_str());
        metrics::gauge!("tracking_queue_parcels", "carrier" => carrier.as_str()).set(length);
        metrics::gauge!("tracking_queue_oldest_due_seconds", "carrier" => carrier.as_str()).set(overdue);
    }
}

#[cfg(test)]
mod tests;
